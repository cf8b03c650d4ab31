package main

import (
	"context"
	"fmt"

	"github.com/s2n-go/s2n"
)

// fips tells of the module. It fails where there is none, or its tests fail.
func fips(_ context.Context, t *tool, args []string) int {
	f := t.flags("[-self-test] [-json]")
	selfTest := f.Bool("self-test", false, "run the module's integrity and known-answer tests now")
	if code, ok := t.parse(f, args, 0, 0); !ok {
		return code
	}
	out := struct {
		s2n.FIPSStatus
		SelfTest string `json:"self_test,omitempty"`
	}{FIPSStatus: s2n.FIPS()}
	code := exitOK
	if s2n.RequireFIPS() != nil {
		code = exitFailed
	}
	if *selfTest {
		out.SelfTest = "passed"
		if err := s2n.SelfTest(); err != nil {
			out.SelfTest, code = errorText(err), exitFailed
		}
	}
	if t.json {
		writeJSON(t.out, out)
		return code
	}
	certificate := out.Certificate
	if certificate == "" {
		certificate = "none for this version"
	}
	fmt.Fprintf(t.out, "module       %s %s\nFIPS mode    %v\ncertificate  %s\nstanding     %s\n",
		out.Module, out.Version, onOff(out.Enabled), certificate, out.Standing)
	if *selfTest {
		fmt.Fprintf(t.out, "self-test    %s\n", out.SelfTest)
	}
	return code
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}
