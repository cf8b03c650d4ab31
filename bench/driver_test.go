package main

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n/bench/internal/proto"
)

func TestCasesAndSides(t *testing.T) {
	cases, sides := map[string]bool{}, map[string]bool{}
	for _, s := range allSides() {
		require.False(t, sides[s.ID], s.ID)
		sides[s.ID] = true
	}
	for _, c := range allCases() {
		require.False(t, cases[c.Name], c.Name)
		cases[c.Name] = true
		require.True(t, slices.ContainsFunc(allSides(), func(s Side) bool { return s.takes(c) }), c.Name)
		for _, id := range c.Only {
			require.True(t, sides[id], id)
		}
	}
	// A promise that names what does not exist would never be missed.
	for _, l := range reachLines {
		require.True(t, cases[l.Case], l.Case)
		require.True(t, sides[l.Side] && sides[l.Against], l.Case)
		require.True(t, slices.ContainsFunc(metrics, func(m Metric) bool { return m.Name == l.Metric }), l.Metric)
		for _, c := range allCases() {
			for _, s := range allSides() {
				if c.Name == l.Case && (s.ID == l.Side || s.ID == l.Against) {
					require.True(t, s.takes(c), "%s in %s", s.ID, c.Name)
				}
			}
		}
	}
	for _, s := range plotSides {
		require.True(t, sides[s.id], s.id)
	}
}

func TestSelect(t *testing.T) {
	c, err := selectCases("pingpong")
	require.NoError(t, err)
	require.Len(t, c, 2)
	_, err = selectCases("nothing like that")
	require.ErrorContains(t, err, "no case matches")
	_, err = selectCases("(")
	require.Error(t, err)

	s, err := selectSides("tcp,s2n3")
	require.NoError(t, err)
	require.Equal(t, "s2n3", s[0].ID) // in the order of turns, whatever that of the list
	require.Len(t, s, 2)
	_, err = selectSides("openssl")
	require.ErrorContains(t, err, `no side "openssl"`)
}

// The whole must end within its budget, and one case alone must not take all of it.
func TestTurn(t *testing.T) {
	p := &plan{cases: allCases(), sides: allSides(), rounds: 7, budget: 15 * time.Minute, counter: &counter{}}
	turn := p.turn()
	require.Greater(t, turn, minTurn)
	require.Less(t, turn, maxTurn)

	p.cases = p.cases[:1]
	require.Equal(t, maxTurn, p.turn())

	p.cases, p.budget = allCases(), time.Second
	require.Equal(t, minTurn, p.turn())
}

// shell is a side in a few words of sh.
func shell(t *testing.T, script string) *process {
	t.Helper()
	p, err := start("shell", nil, []string{"sh", "-c", script}, nil, 1)
	require.NoError(t, err)
	return p
}

func TestProcess(t *testing.T) {
	p := shell(t, `echo "ready library=sh procs=$GOMAXPROCS"
		while read verb rest; do
			case $verb in
				run) echo "ok ops=2 wall_ns=20 user_ns=5 sys_ns=5" ;;
				*) echo "unsupported no $verb here" ;;
			esac
		done`)
	require.Equal(t, map[string]string{"library": "sh", "procs": "1"}, p.facts)
	a, err := p.ask(proto.Request{Verb: "run", N: 2})
	require.NoError(t, err)
	require.EqualValues(t, 20, a.Result.WallNS)
	_, err = p.ask(proto.Request{Verb: "hello", N: 1})
	u, ok := errors.AsType[*proto.UnsupportedError](err)
	require.True(t, ok)
	require.Equal(t, "no hello here", u.Reason)
	require.NoError(t, p.stop())
}

func TestProcessThatDies(t *testing.T) {
	_, err := start("dead", nil, []string{"sh", "-c", "echo no library >&2; exit 3"}, nil, 0)
	require.ErrorContains(t, err, "no library")

	p := shell(t, `echo ready; read line; echo broken >&2; exit 1`)
	_, err = p.ask(proto.Request{Verb: "run", N: 1})
	require.ErrorContains(t, err, "broken")
	require.Error(t, p.stop())
}

func exampleReport() *Report {
	round := func(ns int64) proto.Result {
		r := proto.NewResult()
		r.Ops, r.UserNS, r.SysNS, r.WallNS = 1, ns/2, ns/2, ns
		return r
	}
	c := &CaseResult{Name: "Handshake/tls13/X25519MLKEM768/ecdsa-p256/tcp", Spec: with("handshake", nil), Sides: map[string]*SideResult{}}
	for id, ns := range map[string]int64{"go-fips": 1000_000, "s2n3": 700_000, "s2n3-2026": 400_000} {
		s := &SideResult{Rounds: []proto.Result{round(ns), round(2 * ns), round(ns)}, Summaries: map[string]Summary{}}
		s.Hello = &Hello{Bytes: 1400, Shares: []string{"X25519MLKEM768"}}
		s.Summaries["cpu"] = summarize(values(s.Rounds, cpu))
		s.Summaries["wall"] = summarize(values(s.Rounds, wall))
		c.Sides[id] = s
	}
	c.Sides["go"] = &SideResult{Error: "it fell over"}
	c.Sides["rustls3"] = &SideResult{Unsupported: "it has no <such> thing"}
	r := newReport(&plan{cases: allCases(), sides: allSides(), rounds: 3, budget: time.Minute}, "go-fips", 0.2)
	r.Cases = []*CaseResult{c}
	r.reach()
	return r
}

func TestReport(t *testing.T) {
	r := exampleReport()
	var w strings.Builder
	r.table(&w, r.Cases[0])
	r.printReach(&w)
	text := w.String()
	require.Contains(t, text, "0.70 [0.70, 0.70]")
	require.Contains(t, text, "FAILED: it fell over")
	require.Contains(t, text, "rustls3: it has no <such> thing")
	require.Regexp(t, `s2n3-2026 against go-fips +at most 0.85, aim 0.75 +0.40 .* reached`, text)
	require.Regexp(t, `s2n4-2026 against go-fips +at most 0.70 +- +not measured`, text)
	require.Equal(t, []string{"Handshake/tls13/X25519MLKEM768/ecdsa-p256/tcp: go: it fell over"}, failed(r.Cases))

	require.Contains(t, r.markdown(), "| Handshake/tls13/X25519MLKEM768/ecdsa-p256/tcp | 1000 | 700 (0.70) | 400 (0.40) |")
}

func TestVerdict(t *testing.T) {
	for got, want := range map[float64]string{0.7: "reached", 0.8: "held", 0.9: "missed"} {
		_, verdict := ReachLine{AtMost: 0.85, Aim: 0.75, Got: &Ratio{OfMedians: got}}.verdict()
		require.Equal(t, want, verdict)
	}
}

func TestPlotIsXML(t *testing.T) {
	plot := exampleReport().plot()
	require.Contains(t, plot, "<circle")
	d := xml.NewDecoder(strings.NewReader(plot))
	for {
		_, err := d.Token()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
	}
}

func TestSplice(t *testing.T) {
	got, err := splice("a\n"+docsBegin+"\nold\n"+docsEnd+"\nz\n", "new\n")
	require.NoError(t, err)
	require.Equal(t, "a\n"+docsBegin+"\n\nnew\n\n"+docsEnd+"\nz\n", got)
	_, err = splice("a", "new")
	require.Error(t, err)
}

func TestForeignCPUSources(t *testing.T) {
	busy, all := machineTicks()
	require.Positive(t, busy)
	require.Greater(t, all, busy)
	require.GreaterOrEqual(t, (&process{cmd: self}).cpuTime(), int64(0))
	require.GreaterOrEqual(t, loadAverage(), 0.0)
}

func TestMissingToolIsNamed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	b := &builder{}
	require.ErrorContains(t, b.run("", nil, "cargo", "build"), "cargo not found; install cargo (Debian")
	for _, tool := range []string{"go", "cmake", "bash"} {
		require.ErrorContains(t, b.run("", nil, tool), packages[tool])
	}
}

func TestPinned(t *testing.T) {
	b, err := newBuilder(".", t.TempDir())
	require.NoError(t, err)
	for _, module := range []string{"3", "4"} {
		lock := "bench/rustls/module-" + module + "/Cargo.lock"
		// Both locks hold the crate that build.sh has for the module.
		require.Equal(t, b.pinned("third_party/aws-lc-fips-"+module+"/Cargo.lock", "aws-lc-fips-sys"), b.pinned(lock, "aws-lc-fips-sys"))
		require.Regexp(t, `^0\.23\.`, b.pinned(lock, "rustls"))
	}
	require.Equal(t, "none", b.pinned("no such file", "rustls"))
}
