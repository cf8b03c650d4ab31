package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/s2n-go/s2n"
)

type policyJSON struct {
	Name             string   `json:"name"`
	FIPS             bool     `json:"fips"`
	MinVersion       string   `json:"min_version"`
	MaxVersion       string   `json:"max_version"`
	CipherSuites     []string `json:"cipher_suites"`
	Groups           []string `json:"groups"`
	SignatureSchemes []string `json:"signature_schemes"`
}

func newPolicyJSON(p s2n.PolicyInfo) policyJSON {
	j := policyJSON{
		Name: string(p.Name), FIPS: p.FIPS,
		MinVersion: tls.VersionName(p.MinVersion), MaxVersion: tls.VersionName(p.MaxVersion),
		CipherSuites: []string{}, Groups: []string{}, SignatureSchemes: []string{},
	}
	for _, s := range p.CipherSuites {
		j.CipherSuites = append(j.CipherSuites, suiteName(s))
	}
	for _, g := range p.Groups {
		j.Groups = append(j.Groups, groupName(g))
	}
	for _, s := range p.SignatureSchemes {
		j.SignatureSchemes = append(j.SignatureSchemes, schemeName(s))
	}
	return j
}

// policies lists all policies, a line each, or shows one in full.
func policies(_ context.Context, t *tool, args []string) int {
	f := t.flags("[-json] [NAME]")
	if code, ok := t.parse(f, args, 0, 1); !ok {
		return code
	}
	if f.NArg() == 1 {
		p, err := s2n.Policy(f.Arg(0)).Info()
		if err != nil {
			return t.misused("there is no policy %q that can be used; \"s2n policies\" lists them", f.Arg(0))
		}
		if t.json {
			writeJSON(t.out, newPolicyJSON(p))
		} else {
			showPolicy(t.out, newPolicyJSON(p))
		}
		return exitOK
	}
	all := s2n.Policies()
	if len(all) == 0 {
		return t.failed(fmt.Errorf("s2n-tls cannot be used: %w", s2n.RequireFIPS()))
	}
	if t.json {
		for _, p := range all {
			writeJSON(t.out, newPolicyJSON(p))
		}
		return exitOK
	}
	w := tabwriter.NewWriter(t.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "POLICY\tFIPS\tVERSIONS\tSUITES\tGROUPS")
	for _, p := range all {
		j := newPolicyJSON(p)
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", j.Name, yesNo(j.FIPS), versions(j), len(j.CipherSuites), strings.Join(j.Groups, " "))
	}
	_ = w.Flush() // a closed pipe is no fault of ours
	return exitOK
}

func showPolicy(w io.Writer, j policyJSON) {
	fmt.Fprintf(w, "%s: %s; s2n's FIPS 140-3 rule holds: %s\n", j.Name, versions(j), yesNo(j.FIPS))
	for _, part := range []struct {
		title string
		list  []string
	}{{"cipher suites", j.CipherSuites}, {"groups", j.Groups}, {"signature schemes", j.SignatureSchemes}} {
		fmt.Fprintf(w, "\n%s, by preference\n", part.title)
		for _, s := range part.list {
			fmt.Fprintf(w, "  %s\n", s)
		}
	}
}

func versions(j policyJSON) string {
	if j.MinVersion == j.MaxVersion {
		return j.MinVersion + " only"
	}
	return j.MinVersion + " to " + strings.TrimPrefix(j.MaxVersion, "TLS ")
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
