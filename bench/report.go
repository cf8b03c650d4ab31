package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// fair is what makes the comparison one. It is printed with every result.
var fair = []string{
	"Both ends of a connection are in one process, and every number is for both ends together.",
	"All sides read the same PEM files: a chain of leaf and authority, made anew for each run. Clients verify chain and name, servers verify the client's chain where there is one.",
	"No tickets and no resumption; no ALPN. Each handshake is checked to be full, without HelloRetryRequest, of the version, group, suite and key that the case is named after; anything else is an error and no number.",
	"Where connections are compared, the state of both ends is read, certificates included.",
	"All else is each library's default, but for rustls, which prefers AES-128-GCM as the others do by themselves. How many key shares a client sends is its own choice, and is told.",
	"Sides take turns, round after round, so that a slow minute is one for all. Spreads are quartiles of the rounds; ratios are those of medians, with the quartiles of each round's own ratio.",
	"CPU time is user and system of the whole process by getrusage: collector, threads and the kernel's part of its calls are in it.",
}

// Report is what becomes of a run.
type Report struct {
	Begun   time.Time                    `json:"begun"`
	Machine map[string]string            `json:"machine"`
	Load    float64                      `json:"load_at_start"`
	Fair    []string                     `json:"fair"`
	Against string                       `json:"against"`
	Rounds  int                          `json:"rounds"`
	Turn    string                       `json:"turn"`
	Counter string                       `json:"syscalls_by"`
	Sides   []Side                       `json:"sides"`
	Facts   map[string]map[string]string `json:"facts"` // of each side, by itself
	Cases   []*CaseResult                `json:"cases"`
	Reach   []ReachLine                  `json:"reach"`
}

func newReport(p *plan, against string, load float64) *Report {
	r := &Report{
		Begun: time.Now().UTC().Truncate(time.Second), Machine: machine(), Load: load, Fair: fair, Against: against,
		Rounds: p.rounds, Turn: p.turn().Round(time.Millisecond).String(), Sides: p.sides, Facts: map[string]map[string]string{},
	}
	if p.counter != nil {
		r.Counter = p.counter.name
	}
	return r
}

func (r *Report) head(w io.Writer) {
	fmt.Fprintf(w, "%s, %s CPUs, Linux %s, %s, commit %s; load %.2f at the start; %d rounds of %s\n",
		r.Machine["cpu"], r.Machine["cpus"], r.Machine["kernel"], r.Machine["go"], r.Machine["commit"], r.Load, r.Rounds, r.Turn)
	for _, f := range r.Fair {
		fmt.Fprintf(w, "  - %s\n", f)
	}
}

// primary is the metric that a case is about.
func primary(c *CaseResult) Metric {
	switch c.Spec.Kind {
	case "handshake", "aead":
		return cpu
	case "storm":
		return p99
	}
	return wall
}

// ratio of a side against another, by a metric.
func (c *CaseResult) ratio(side, against string, m Metric) (Ratio, bool) {
	a, b := c.Sides[side], c.Sides[against]
	if a == nil || b == nil {
		return Ratio{}, false
	}
	return compare(values(a.Rounds, m), values(b.Rounds, m))
}

func (s Ratio) String() string {
	return fmt.Sprintf("%.2f [%.2f, %.2f]", s.OfMedians, s.Rounds.Q1, s.Rounds.Q3)
}

// number is short: three digits that count.
func number(v float64) string {
	switch {
	case v >= 100 || v == 0:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

func (s *SideResult) median(m Metric) string {
	if v, ok := s.Summaries[m.Name]; ok {
		return number(v.Median)
	}
	return "-"
}

func (s *SideResult) spread(m Metric) string {
	if v, ok := s.Summaries[m.Name]; ok {
		return fmt.Sprintf("%s [%s, %s]", number(v.Median), number(v.Q1), number(v.Q3))
	}
	return "-"
}

// table prints a case, a line for each side.
func (r *Report) table(w io.Writer, c *CaseResult) {
	procs := "GOMAXPROCS=" + r.Machine["cpus"]
	if c.Procs > 0 {
		procs = fmt.Sprintf("GOMAXPROCS=%d", c.Procs)
	}
	suite := ""
	if c.Suite > 0 {
		suite = ", " + tls.CipherSuiteName(uint16(c.Suite))
	}
	fmt.Fprintf(w, "\n%s (%s%s; %.0f%% of the CPUs were others')\n", c.Name, procs, suite, c.Foreign*100)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "  side\tshares\tCPU µs/op\t× %s\twall µs/op\t× %s", r.Against, r.Against)
	stream, storm := c.Spec.Size > 0, c.Spec.Kind == "storm"
	if stream {
		fmt.Fprint(t, "\tMB/s")
	}
	if storm {
		fmt.Fprintf(t, "\tp99 ms\t× %s", r.Against)
	}
	fmt.Fprintln(t, "\tallocs\tB\tcrossings\tsyscalls\tfaults\tswitches")
	for _, side := range r.Sides {
		s := c.Sides[side.ID]
		switch {
		case s == nil || s.Unsupported != "":
			continue
		case s.Error != "":
			fmt.Fprintf(t, "  %s\tFAILED: %s\n", side.ID, s.Error)
			continue
		}
		shares := "-"
		if s.Hello != nil && len(s.Hello.Shares) > 0 {
			shares = strings.Join(s.Hello.Shares, "+")
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\t%s", side.ID, shares,
			s.spread(cpu), r.ratioText(c, side.ID, cpu), s.spread(wall), r.ratioText(c, side.ID, wall))
		if stream {
			fmt.Fprintf(t, "\t%s", s.median(throughput))
		}
		if storm {
			fmt.Fprintf(t, "\t%s\t%s", s.spread(p99), r.ratioText(c, side.ID, p99))
		}
		calls := "-"
		if s.Syscalls != nil {
			calls = number(*s.Syscalls)
		}
		fmt.Fprintf(t, "\t%s\t%s\t%s\t%s\t%s\t%s\n",
			s.median(allocs), s.median(heap), s.median(crossings), calls, s.median(faults), s.median(switches))
	}
	_ = t.Flush()
	for _, side := range r.Sides {
		if s := c.Sides[side.ID]; s != nil && s.Unsupported != "" {
			fmt.Fprintf(w, "  %s: %s\n", side.ID, s.Unsupported)
		}
	}
}

func (r *Report) ratioText(c *CaseResult, side string, m Metric) string {
	if ratio, ok := c.ratio(side, r.Against, m); ok {
		return ratio.String()
	}
	return "-"
}

// ReachLine is a promise: a ratio that must not be exceeded.
type ReachLine struct {
	Case    string  `json:"case"`
	Side    string  `json:"side"`
	Against string  `json:"against"`
	Metric  string  `json:"metric"`
	AtMost  float64 `json:"at_most"`
	Aim     float64 `json:"aim,omitempty"`
	Got     *Ratio  `json:"got"` // nil: one of the two was not measured
}

// reachLines are what this module is to reach.
var reachLines = []ReachLine{
	{Case: "Handshake/tls13/X25519MLKEM768/ecdsa-p256/tcp", Side: "s2n3-2026", Against: "go-fips", Metric: "cpu", AtMost: 0.85, Aim: 0.75},
	{Case: "Handshake/tls13/X25519MLKEM768/ecdsa-p256/tcp", Side: "s2n4-2026", Against: "go-fips", Metric: "cpu", AtMost: 0.70},
	{Case: "Handshake/tls13/X25519MLKEM768/rsa-2048/tcp", Side: "s2n3-2026", Against: "go-fips", Metric: "cpu", AtMost: 0.62},
	{Case: "Handshake/tls13/P-256/ecdsa-p256/tcp", Side: "s2n3", Against: "go-fips", Metric: "cpu", AtMost: 1.15},
	{Case: "Handshake/tls13/P-256/ecdsa-p256/tcp", Side: "s2n4", Against: "go-fips", Metric: "cpu", AtMost: 0.95},
	{Case: "Handshake/tls13/X25519MLKEM768/ecdsa-p256/mem", Side: "s2n3", Against: "c3", Metric: "cpu", AtMost: 1.10, Aim: 1.05},
	{Case: "Handshake/tls13/X25519MLKEM768/ecdsa-p256/mem", Side: "s2n3-2026", Against: "c3-one-share", Metric: "cpu", AtMost: 1.10, Aim: 1.05},
	{Case: "Handshake/tls13/P-256/ecdsa-p256/mem", Side: "s2n3", Against: "c3", Metric: "cpu", AtMost: 1.10, Aim: 1.05},
	{Case: "Handshake/tls13/X25519MLKEM768/rsa-2048/mtls/mem", Side: "s2n3", Against: "c3", Metric: "cpu", AtMost: 1.10, Aim: 1.05},
	{Case: "Handshake/tls13/X25519MLKEM768/ecdsa-p256/mem", Side: "s2n3-2026", Against: "rustls3", Metric: "cpu", AtMost: 1.10, Aim: 1.00},
	{Case: "Handshake/tls13/P-256/ecdsa-p256/mem", Side: "s2n3", Against: "rustls3", Metric: "cpu", AtMost: 1.10, Aim: 1.00},
	{Case: "Bulk/oneway/tcp", Side: "s2n3", Against: "go-fips", Metric: "wall", AtMost: 0.62},
	{Case: "PingPong/128/tcp", Side: "s2n3", Against: "go-fips", Metric: "wall", AtMost: 1.03, Aim: 1.00},
	{Case: "Storm/5000/tls13/X25519MLKEM768/ecdsa-p256/tcp", Side: "s2n3", Against: "go-fips", Metric: "p99", AtMost: 1.10},
	{Case: "Storm/5000/tls13/X25519MLKEM768/ecdsa-p256/tcp", Side: "s2n3-2026", Against: "go-fips", Metric: "p99", AtMost: 1.10},
}

// reach fills in what was measured, for the lines whose case was run.
func (r *Report) reach() {
	for _, line := range reachLines {
		i := slices.IndexFunc(r.Cases, func(c *CaseResult) bool { return c.Name == line.Case })
		m := slices.IndexFunc(metrics, func(m Metric) bool { return m.Name == line.Metric })
		if i < 0 || m < 0 {
			continue
		}
		if ratio, ok := r.Cases[i].ratio(line.Side, line.Against, metrics[m]); ok {
			line.Got = &ratio
		}
		r.Reach = append(r.Reach, line)
	}
}

func (l ReachLine) atMost() string {
	if l.Aim > 0 {
		return fmt.Sprintf("%.2f, aim %.2f", l.AtMost, l.Aim)
	}
	return fmt.Sprintf("%.2f", l.AtMost)
}

func (l ReachLine) verdict() (got, verdict string) {
	switch {
	case l.Got == nil:
		return "-", "not measured"
	case l.Got.OfMedians > l.AtMost:
		return l.Got.String(), "missed"
	case l.Aim > 0 && l.Got.OfMedians > l.Aim:
		return l.Got.String(), "held"
	}
	return l.Got.String(), "reached"
}

func (r *Report) printReach(w io.Writer) {
	if len(r.Reach) == 0 {
		return
	}
	fmt.Fprintln(w, "\nReach")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range r.Reach {
		got, verdict := l.verdict()
		fmt.Fprintf(t, "  %s\t%s\t%s against %s\tat most %s\t%s\t%s\n", l.Case, l.Metric, l.Side, l.Against, l.atMost(), got, verdict)
	}
	_ = t.Flush()
}

// text is all that was printed.
func (r *Report) text() string {
	var text strings.Builder
	r.head(&text)
	for _, c := range r.Cases {
		r.table(&text, c)
	}
	r.printReach(&text)
	return text.String()
}

// write puts the report beside what was built.
func (r *Report) write(dir string) error {
	err := errors.Join(
		writeJSON(filepath.Join(dir, "bench.json"), r),
		os.WriteFile(filepath.Join(dir, "bench.txt"), []byte(r.text()), 0o644),
		os.WriteFile(filepath.Join(dir, "bench.md"), []byte(r.markdown()), 0o644),
		os.WriteFile(filepath.Join(dir, "bench.svg"), []byte(r.plot()), 0o644),
	)
	if err == nil {
		fmt.Printf("\n%s holds all rounds, bench.txt, bench.md and bench.svg beside it what can be read\n", filepath.Join(dir, "bench.json"))
	}
	return err
}
