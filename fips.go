package s2n

import (
	"fmt"
	"strings"

	"github.com/s2n-go/s2n/cshim"
)

// FIPSStatus is what can be said of the linked module, and no more.
type FIPSStatus struct {
	Enabled     bool   `json:"enabled"`     // the module runs in FIPS mode and its self tests passed
	Module      string `json:"module"`      // "AWS-LC FIPS"
	Version     string `json:"version"`     // as the module reports it, "3.6.0"
	Certificate string `json:"certificate"` // "CMVP #5314" only where the linked version is the one on that certificate; else ""
	Standing    string `json:"standing"`    // plain words: the version's standing, and that this build and platform may not be a tested one
}

// notTested belongs to every standing: a certificate names tested platforms and
// compilers, and a build made elsewhere is not one of them.
const notTested = "This build, its compiler and this platform may not be a tested configuration of any certificate."

// FIPS tells which module is linked and its exact standing (FIPS_mode,
// awslc_version_string). It runs no test: the module ran its own before main, and
// a process in which one failed never gets here.
func FIPS() FIPSStatus {
	m := cshim.GetModule()
	name, version := "AWS-LC", m.Version
	if v, ok := strings.CutPrefix(m.Version, "AWS-LC FIPS "); ok {
		name, version = "AWS-LC FIPS", v
	} else if v, ok := strings.CutPrefix(m.Version, "AWS-LC "); ok {
		version = v
	}
	s := FIPSStatus{Enabled: m.FIPS && name == "AWS-LC FIPS", Module: name, Version: version}
	s.Certificate, s.Standing = standing(version)
	if !s.Enabled {
		s.Certificate, s.Standing = "", "The linked library does not run as a FIPS module."
	}
	return s
}

// standing is the record of the module's versions; docs/FIPS.md has the sources.
func standing(version string) (certificate, words string) {
	switch {
	case version == "3.1.0":
		return "CMVP #5314", "Version 3.1.0 is the one on CMVP certificate #5314 (static library). " +
			"It lacks the fixes of 2026 for CRL distribution points and AES-CCM. " + notTested
	case strings.HasPrefix(version, "3."):
		return "", "Version " + version + " is a patched update of 3.1.0, which is on CMVP certificate #5314; " +
			"it has no certificate of its own. " + notTested
	case strings.HasPrefix(version, "4."):
		return "", "Version " + version + " belongs to a module that was submitted for validation and has no certificate yet. " + notTested
	}
	return "", "Nothing is known here of version " + version + ", so nothing is claimed. " + notTested
}

// RequireFIPS returns nil only if FIPS().Enabled and s2n-tls runs on it: for the
// first line of a service's main.
func RequireFIPS() error {
	if r := cshim.Init(); r.Status != cshim.OK {
		return s2nError("init", r)
	}
	if s := FIPS(); !s.Enabled {
		return &Error{Op: "fips", Kind: KindConfig,
			Message: fmt.Sprintf("%s %s is linked, which is no FIPS module; build it with ./build.sh", s.Module, s.Version)}
	}
	return nil
}

// SelfTest runs the module's integrity test and known-answer tests now
// (BORINGSSL_integrity_test, BORINGSSL_self_test); some tens of milliseconds of
// CPU. Safe beside anything else. An error means that the module must not be used
// on; most failures end the process inside the module before this can return.
func SelfTest() error {
	switch cshim.SelfTest() {
	case 1:
		return nil
	case -1:
		return &Error{Op: "fips", Kind: KindInternal, Message: "the module's integrity test failed: its code in memory is not what was built"}
	}
	return &Error{Op: "fips", Kind: KindInternal, Message: "a known-answer test of the module failed"}
}

// VersionInfo names what a program is made of.
type VersionInfo struct {
	S2N    string // s2n-tls, as its Rust crate counts: "0.3.47"
	AWSLC  string // "AWS-LC FIPS 3.6.0", as the module reports it
	Shim   string // this package
	Linked string // hash of the C library that is linked
}

// shimVersion is this package's own version; CHANGELOG.md has what each brought.
const shimVersion = "0.1.0"

// Version tells what is linked.
func Version() VersionInfo {
	return VersionInfo{
		S2N: cshim.S2NVersion(), AWSLC: cshim.GetModule().Version, Shim: shimVersion, Linked: cshim.BuildID(),
	}
}
