package main

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// One line that fails, for whatever reason, fails the demo, and the others still run.
func TestAnyFailedLineFailsTheDemo(t *testing.T) {
	answer := func(change func(*negotiated), err error) func(context.Context, *line) (*negotiated, error) {
		return func(context.Context, *line) (*negotiated, error) {
			n := &negotiated{Version: "TLS 1.3", Suite: "SUITE", Group: "P-256", FIPS: true}
			n.Module.Enabled, n.Module.Standing = true, "the standing"
			if change != nil {
				change(n)
			}
			return n, err
		}
	}
	good := line{"good", "TLS 1.3", "P-256", answer(nil, nil)}
	var out bytes.Buffer
	require.NoError(t, (&demo{}).print(t.Context(), &out, []line{good, good}))
	require.Contains(t, out.String(), "SUITE")
	require.Contains(t, out.String(), "the standing")

	for name, do := range map[string]func(context.Context, *line) (*negotiated, error){
		"an error":        answer(nil, errors.New("an error")),
		"another version": answer(func(n *negotiated) { n.Version = "TLS 1.2" }, nil),
		"another group":   answer(func(n *negotiated) { n.Group = "X25519" }, nil),
		"outside FIPS":    answer(func(n *negotiated) { n.FIPS = false }, nil),
		"no module":       answer(func(n *negotiated) { n.Module.Enabled = false }, nil),
	} {
		out.Reset()
		require.Error(t, (&demo{}).print(t.Context(), &out, []line{{"bad", "TLS 1.3", "P-256", do}, good}), name)
		require.Contains(t, out.String(), "FAILED", name)
		require.Contains(t, out.String(), "good", name)
	}
}
