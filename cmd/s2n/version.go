package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/s2n-go/s2n"
)

func version(_ context.Context, t *tool, args []string) int {
	f := t.flags("[-json]")
	if code, ok := t.parse(f, args, 0, 0); !ok {
		return code
	}
	v := s2n.Version()
	if t.json {
		writeJSON(t.out, struct {
			S2NGo  string `json:"s2n_go"`
			S2N    string `json:"s2n_tls"`
			AWSLC  string `json:"aws_lc"`
			Linked string `json:"linked"`
			Go     string `json:"go"`
		}{v.Shim, v.S2N, v.AWSLC, v.Linked, runtime.Version()})
		return exitOK
	}
	fmt.Fprintf(t.out, "s2n-go %s, s2n-tls %s, %s, %s\nlibrary %s\n", v.Shim, v.S2N, v.AWSLC, runtime.Version(), v.Linked)
	return exitOK
}
