package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// markdown is the report as docs/BENCHMARKING.md shows it: one table for each kind
// of case, a column for each side.
func (r *Report) markdown() string {
	var w strings.Builder
	fmt.Fprintf(&w, "%s on %s, %s CPUs, Linux %s, %s, commit %s. The load was %.2f at the start; %d rounds of %s.\n",
		r.Begun.Format("2 January 2006"), r.Machine["cpu"], r.Machine["cpus"], r.Machine["kernel"], r.Machine["go"], r.Machine["commit"],
		r.Load, r.Rounds, r.Turn)

	if len(r.Reach) > 0 {
		w.WriteString("\n### What was promised\n\n| case | what | at most | measured |  |\n| --- | --- | --- | --- | --- |\n")
		for _, l := range r.Reach {
			got, verdict := l.verdict()
			fmt.Fprintf(&w, "| %s | %s, %s against %s | %s | %s | %s |\n", l.Case, l.Metric, l.Side, l.Against, l.atMost(), got, verdict)
		}
	}
	for _, part := range []struct {
		title, kind string
		sides       []string
		m           Metric
	}{
		{"Handshakes: µs of CPU time, both ends; module 3", "handshake",
			[]string{"go-fips", "go", "go-boring", "s2n3", "s2n3-2026", "c3", "c3-one-share", "rustls3", "tcp"}, cpu},
		{"Handshakes: µs of CPU time, both ends; module 4", "handshake",
			[]string{"go-fips", "s2n4", "s2n4-2026", "c4", "c4-one-share", "rustls4"}, cpu},
		{"5,000 handshakes at once: 99th percentile, ms", "storm", nil, p99},
		{"A connection for each request: µs", "newconn", nil, wall},
		{"Data: µs for each operation", "bulk pingpong write parallel", []string{"go-fips", "go", "go-boring", "s2n3", "s2n4", "c3", "c4", "rustls3", "rustls4", "tcp"}, wall},
		{"Data: µs of CPU time for each operation, both ends", "bulk pingpong write parallel",
			[]string{"go-fips", "go", "go-boring", "s2n3", "s2n4", "c3", "c4", "rustls3", "rustls4", "tcp"}, cpu},
		{"AES-GCM: µs of CPU time", "aead", []string{"go-fips", "go", "go-boring", "s2n3", "s2n4", "c3", "c4"}, cpu},
	} {
		r.matrix(&w, part.title+fmt.Sprintf(" (and the ratio against %s)", r.Against), part.kind, part.sides, func(c *CaseResult, side string) string {
			s := c.Sides[side]
			if s == nil || s.Summaries == nil {
				return ""
			}
			cell := s.median(part.m)
			if ratio, ok := c.ratio(side, r.Against, part.m); ok && side != r.Against {
				cell += fmt.Sprintf(" (%.2f)", ratio.OfMedians)
			}
			return cell
		})
	}
	r.matrix(&w, "What an operation costs beside time: allocations on Go's heap / crossings into C / system calls", "handshake newconn bulk pingpong write parallel",
		[]string{"go-fips", "go", "s2n3", "s2n3-2026", "c3", "rustls3", "tcp"}, func(c *CaseResult, side string) string {
			s := c.Sides[side]
			if s == nil || s.Summaries == nil || s.Syscalls == nil {
				return ""
			}
			return s.median(allocs) + " / " + s.median(crossings) + " / " + number(*s.Syscalls)
		})
	r.matrix(&w, "Key shares that a client sends, and the bytes of its ClientHello", "handshake", nil, func(c *CaseResult, side string) string {
		s := c.Sides[side]
		if s == nil || s.Hello == nil || c.Spec.Transport != "tcp" || c.Spec.Mutual || c.Spec.Cert != "ecdsa-p256" {
			return ""
		}
		return fmt.Sprintf("%s, %d B", strings.Join(s.Hello.Shares, " + "), s.Hello.Bytes)
	})
	return w.String()
}

// matrix is a table of the cases of some kinds; columns and rows with nothing in them are left out.
func (r *Report) matrix(w *strings.Builder, title, kinds string, sides []string, cell func(*CaseResult, string) string) {
	if sides == nil {
		for _, s := range r.Sides {
			sides = append(sides, s.ID)
		}
	}
	var rows []*CaseResult
	for _, c := range r.Cases {
		if slices.Contains(strings.Fields(kinds), c.Spec.Kind) && slices.ContainsFunc(sides, func(s string) bool { return cell(c, s) != "" }) {
			rows = append(rows, c)
		}
	}
	used := slices.DeleteFunc(slices.Clone(sides), func(s string) bool {
		return !slices.ContainsFunc(rows, func(c *CaseResult) bool { return cell(c, s) != "" })
	})
	if len(rows) == 0 || len(used) == 0 {
		return
	}
	fmt.Fprintf(w, "\n### %s\n\n| case | %s |\n|%s\n", title, strings.Join(used, " | "), strings.Repeat(" --- |", len(used)+1))
	for _, c := range rows {
		fmt.Fprintf(w, "| %s |", c.Name)
		for _, s := range used {
			fmt.Fprintf(w, " %s |", cell(c, s))
		}
		w.WriteString("\n")
	}
}

const (
	docsBegin = "<!-- Made by the driver, from here: -->"
	docsEnd   = "<!-- to here. -->"
)

// updateDocs puts tables and plot where docs/BENCHMARKING.md shows them, and beside
// it the text with all that was measured.
func (r *Report) updateDocs(dir string) error {
	file := filepath.Join(dir, "BENCHMARKING.md")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	updated, err := splice(string(text), "![Ratios against "+r.Against+"](bench.svg)\n\nAll of it, with spreads: [bench.txt](bench.txt).\n\n"+r.markdown())
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return errors.Join(
		os.WriteFile(file, []byte(updated), 0o644),
		os.WriteFile(filepath.Join(dir, "bench.svg"), []byte(r.plot()), 0o644),
		os.WriteFile(filepath.Join(dir, "bench.txt"), []byte(r.text()), 0o644),
	)
}

// splice replaces what is between the two marks.
func splice(text, part string) (string, error) {
	before, rest, ok := strings.Cut(text, docsBegin)
	_, after, ok2 := strings.Cut(rest, docsEnd)
	if !ok || !ok2 {
		return "", errors.New("the two marks of the driver are not there")
	}
	return before + docsBegin + "\n\n" + strings.TrimSpace(part) + "\n\n" + docsEnd + after, nil
}
