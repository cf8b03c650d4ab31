package s2n

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"

	"github.com/s2n-go/s2n/cshim"
)

// Policy is the name of an s2n security policy: the versions, cipher suites,
// groups and signatures that may be negotiated. "" is DefaultFIPS.
type Policy string

// The names that begin with "default" are s2n's moving aliases; the dated ones
// behind them never change.
const (
	DefaultFIPS  Policy = "default_fips"  // 20251015 in the pinned s2n
	DefaultTLS13 Policy = "default_tls13" // 20240503
	DefaultPQ    Policy = "default_pq"    // 20250721
)

// PolicyInfo is what a policy holds, in the order of preference.
type PolicyInfo struct {
	Name             Policy
	FIPS             bool   // s2n's FIPS 140-3 rule holds
	MinVersion       uint16 // tls.VersionTLS12 and so on
	MaxVersion       uint16
	CipherSuites     []uint16 // as in crypto/tls and IANA's registry
	Groups           []Group  // hybrids first, in the order of preference
	SignatureSchemes []tls.SignatureScheme
}

// Policies lists the policies that can be used, in s2n's order.
func Policies() []PolicyInfo {
	if r := cshim.Init(); r.Status != cshim.OK {
		return nil
	}
	var all []PolicyInfo
	for _, name := range cshim.PolicyNames() {
		if info, err := Policy(name).Info(); err == nil {
			all = append(all, info)
		}
	}
	return all
}

// Info returns what a policy holds; an error for a name that s2n does not know,
// or knows only to refuse.
func (p Policy) Info() (PolicyInfo, error) {
	if r := cshim.Init(); r.Status != cshim.OK {
		return PolicyInfo{}, s2nError("policy", r)
	}
	if strings.IndexByte(string(p), 0) >= 0 { // C would read a part of it
		return PolicyInfo{}, configError("policy", "there is no policy %q; s2n.Policies lists those that exist", string(p))
	}
	info, found, usable := cshim.GetPolicy(string(p.orDefault()))
	if !found {
		return PolicyInfo{}, configError("policy", "there is no policy %q; s2n.Policies lists those that exist", string(p))
	}
	if !usable {
		return PolicyInfo{}, configError("policy", "s2n no longer allows policy %q; s2n.Policies lists those that it does", string(p))
	}
	if slices.Contains(info.Suites, nullSuite) {
		return PolicyInfo{}, configError("policy", "policy %q encrypts nothing; s2n.Policies lists those that do", string(p))
	}
	out := PolicyInfo{
		Name: p.orDefault(), FIPS: info.FIPS, MinVersion: info.MinVersion, MaxVersion: info.MaxVersion, CipherSuites: info.Suites,
	}
	for _, g := range info.Groups {
		out.Groups = append(out.Groups, Group(g))
	}
	for _, s := range info.Schemes {
		out.SignatureSchemes = append(out.SignatureSchemes, tls.SignatureScheme(s))
	}
	return out, nil
}

// nullSuite is TLS_NULL_WITH_NULL_NULL, which s2n keeps for tests.
const nullSuite = 0

func (p Policy) orDefault() Policy {
	if p == "" {
		return DefaultFIPS
	}
	return p
}

// Group is a key exchange group, IANA's TLS Supported Groups.
type Group uint16

const (
	P256               Group = 23
	P384               Group = 24
	P521               Group = 25
	X25519             Group = 29
	MLKEM1024          Group = 0x0202
	SecP256r1MLKEM768  Group = 0x11eb
	X25519MLKEM768     Group = 0x11ec
	SecP384r1MLKEM1024 Group = 0x11ed
)

var groupNames = map[Group]string{
	P256: "P-256", P384: "P-384", P521: "P-521", X25519: "X25519", MLKEM1024: "MLKEM1024",
	SecP256r1MLKEM768: "SecP256r1MLKEM768", X25519MLKEM768: "X25519MLKEM768", SecP384r1MLKEM1024: "SecP384r1MLKEM1024",
}

// String is the group's name, "X25519MLKEM768".
func (g Group) String() string {
	if name, ok := groupNames[g]; ok {
		return name
	}
	return fmt.Sprintf("Group(0x%04x)", uint16(g))
}
