package s2n

import (
	"crypto/tls"
	"fmt"
	"strings"

	"github.com/s2n-go/s2n/cshim"
)

// NewPolicy registers a policy of one's own under info.Name, for the life of the
// process, and returns that name, which then works as any other. Several goroutines
// may call it at once.
//
// It is refused where it breaks s2n's own rules, could not negotiate what it names,
// has duplicates or an order that s2n does not keep (groups with ML-KEM come first),
// holds what this library does not have, or claims FIPS and breaks s2n's FIPS 140-3
// rule. The error, an *Error of KindConfig, names each point.
//
// SignatureSchemes are for the handshake. Certificates may be signed with what
// s2n's defaults allow, SHA-2 of any kind, and ML-DSA where SignatureSchemes has it;
// a policy that lists a scheme with SHA-1 takes all.
func NewPolicy(info PolicyInfo) (Policy, error) {
	if r := cshim.Init(); r.Status != cshim.OK {
		return "", s2nError("policy", r)
	}
	in := cshim.PolicyInfo{
		Name: string(info.Name), FIPS: info.FIPS, MinVersion: info.MinVersion, MaxVersion: info.MaxVersion, Suites: info.CipherSuites,
	}
	for _, g := range info.Groups {
		in.Groups = append(in.Groups, uint16(g))
	}
	for _, s := range info.SignatureSchemes {
		in.Schemes = append(in.Schemes, uint16(s))
	}
	badName := badPolicyName(in.Name)
	if badName != "" {
		in.Name = "" // never free
	}
	var points []string
	for _, list := range []struct {
		id     uint8
		values *[]uint16
	}{{cshim.ListSuites, &in.Suites}, {cshim.ListGroups, &in.Groups}, {cshim.ListSchemes, &in.Schemes}} {
		if n := len(*list.values); n > cshim.PolicyMax {
			points = append(points, fmt.Sprintf("%s: %d of them, of which the first %d were looked at", policyLists[list.id], n, cshim.PolicyMax))
			*list.values = (*list.values)[:cshim.PolicyMax]
			in.Name = ""
		}
	}
	for _, f := range cshim.NewPolicy(&in) {
		switch {
		case f.Kind != cshim.FaultName:
			points = append(points, policyFault(f))
		case badName != "":
			points = append(points, badName)
		case in.Name != "":
			points = append(points, "Name: there is a policy of that name")
		}
	}
	if len(points) > 0 {
		return "", configError("policy", "%q is refused: %s", string(info.Name), strings.Join(points, "; "))
	}
	return info.Name, nil
}

func badPolicyName(name string) string {
	if name == "" {
		return "Name: there is none"
	}
	if len(name) > 255 {
		return fmt.Sprintf("Name: %d bytes, where 255 are the most", len(name))
	}
	for i := 0; i < len(name); i++ {
		if name[i] <= ' ' || name[i] >= 0x7f {
			return fmt.Sprintf("Name: byte %#02x, which is not visible ASCII", name[i])
		}
	}
	return ""
}

var policyLists = [...]string{
	cshim.ListSuites: "CipherSuites", cshim.ListGroups: "Groups", cshim.ListSchemes: "SignatureSchemes", cshim.ListMin: "MinVersion", cshim.ListMax: "MaxVersion",
}

// policyFault says in words what C found.
func policyFault(f cshim.PolicyFault) string {
	list := policyLists[f.List]
	var value string
	switch f.List {
	case cshim.ListSuites:
		value = tls.CipherSuiteName(f.Value)
	case cshim.ListGroups:
		value = Group(f.Value).String()
	case cshim.ListSchemes:
		value = tls.SignatureScheme(f.Value).String()
	case cshim.ListMin, cshim.ListMax:
		value = tls.VersionName(f.Value)
	}
	switch f.Kind {
	case cshim.FaultEmpty:
		return list + " is empty"
	case cshim.FaultTooMany:
		return fmt.Sprintf("%s: s2n has room for %d of this kind", list, f.Value)
	case cshim.FaultUnknown:
		switch f.List {
		case cshim.ListMin:
			return fmt.Sprintf("%s: %s is none of TLS 1.0 to TLS 1.3", list, value)
		case cshim.ListMax:
			return fmt.Sprintf("%s: %s is not TLS 1.2 or TLS 1.3, where s2n's policies end", list, value)
		}
		return fmt.Sprintf("%s: s2n does not know %s", list, value)
	case cshim.FaultUnavailable:
		return fmt.Sprintf("%s: the linked module does not have %s", list, value)
	case cshim.FaultDuplicate:
		return fmt.Sprintf("%s: %s is there more than once", list, value)
	case cshim.FaultNotFIPS:
		return fmt.Sprintf("%s: FIPS is claimed, and s2n's FIPS 140-3 rule does not allow %s", list, value)
	case cshim.FaultOrder:
		return fmt.Sprintf("%s: %s has ML-KEM and s2n prefers it to any group without, so it must stand before those", list, value)
	case cshim.FaultMinOverMax:
		return "MinVersion is above MaxVersion"
	case cshim.FaultNeedsTLS13:
		return fmt.Sprintf("%s: %s needs TLS 1.3, which is above MaxVersion", list, value)
	case cshim.FaultNoTLS13:
		return list + ": MaxVersion is TLS 1.3, and none of them works with that"
	case cshim.FaultNoCurve:
		return "Groups: MinVersion is below TLS 1.3, which needs a group without ML-KEM"
	case cshim.FaultRules:
		return "s2n's validation of policies refuses it"
	}
	return "no memory"
}
