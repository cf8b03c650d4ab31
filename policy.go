package s2n

import (
	"crypto/tls"
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

// Two policies of ours, which allow what 20251015 does, or less, and never change.
// Under DefaultFIPS a ClientHello carries X25519MLKEM768 and a separate key for
// P-256: X25519 by itself is no approved algorithm, so the hybrid's own cannot be
// sent again (KeyShareMode). These are for clients that should not pay for both.
const (
	// FIPSPQ2026 sends X25519MLKEM768 alone. P-256, P-384, P-521 and the other
	// hybrids are still offered: a server that has none but those asks for one with
	// a HelloRetryRequest, which costs a round trip.
	FIPSPQ2026 Policy = "s2ngo-fips-pq-2026"
	// FIPSNIST2026 has NIST's curves only: SecP256r1MLKEM768, and its own P-256 key
	// again for servers without hybrids, which costs them no round trip. P-256 takes
	// the FIPS module longer than X25519.
	FIPSNIST2026 Policy = "s2ngo-fips-nist-2026"
)

// PolicyInfo is what a policy holds, in the order of preference.
type PolicyInfo struct {
	Name             Policy
	FIPS             bool   // s2n's FIPS 140-3 rule holds
	MinVersion       uint16 // tls.VersionTLS12 and so on
	MaxVersion       uint16
	CipherSuites     []uint16 // as in crypto/tls and IANA's registry
	Groups           []Group  // those with ML-KEM first
	SignatureSchemes []tls.SignatureScheme
}

// Policies lists the policies that can be used: s2n's in its order, ours, and
// those of NewPolicy.
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

// Info returns what a policy holds; an error for a name that nothing has, or that
// s2n knows only to refuse.
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
