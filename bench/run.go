package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/s2n-go/s2n/bench/internal/proto"
)

// SideResult is what one side did in one case.
type SideResult struct {
	Unsupported string             `json:"unsupported,omitempty"` // why the side does not have the case
	Error       string             `json:"error,omitempty"`       // it has it, and failed: no numbers then
	Hello       *Hello             `json:"hello,omitempty"`
	N           int                `json:"n,omitempty"` // operations of a turn
	Rounds      []proto.Result     `json:"rounds,omitempty"`
	Summaries   map[string]Summary `json:"summaries,omitempty"` // by metric
	Syscalls    *float64           `json:"syscalls,omitempty"`  // of an operation, counted apart
}

// CaseResult is one case with all its sides.
type CaseResult struct {
	Name    string                 `json:"name"`
	Procs   int                    `json:"gomaxprocs"` // 0: as many as CPUs
	Spec    proto.Spec             `json:"spec"`
	Suite   int64                  `json:"suite,omitempty"`
	Sides   map[string]*SideResult `json:"sides"`
	Foreign float64                `json:"foreign_cpu"` // share of all CPUs that neither sides nor driver used
}

// plan is what a run is made of.
type plan struct {
	cases   []Case
	sides   []Side
	rounds  int
	budget  time.Duration
	smoke   bool
	counter *counter
}

// stormRounds are enough for what has thousands of values in each.
const stormRounds = 5

func (p *plan) roundsOf(c Case) int {
	if c.N > 0 {
		return min(p.rounds, stormRounds)
	}
	return p.rounds
}

// counts says for which cases system calls are counted.
func (p *plan) counts(c Case) bool {
	return p.counter != nil && c.Spec.Transport == "tcp" && !c.Spec.Mutual && c.N == 0
}

// turn is how long one side runs at a time, so that the whole takes the budget.
func (p *plan) turn() time.Duration {
	var fixed time.Duration
	turns := 0.0
	for _, c := range p.cases {
		for _, s := range p.sides {
			if !s.takes(c) {
				continue
			}
			rounds := float64(p.roundsOf(c))
			fixed += 50 * time.Millisecond // to begin
			if p.counts(c) {
				fixed += 300 * time.Millisecond
			}
			switch {
			case c.N > 0:
				fixed += time.Duration(float64(c.Turn) * rounds)
			case c.Short:
				turns += rounds / 10
			default:
				turns += rounds + 1
			}
		}
	}
	if turns == 0 {
		return maxTurn
	}
	return min(max(time.Duration(float64(p.budget-fixed)/turns), minTurn), maxTurn)
}

const (
	minTurn = 50 * time.Millisecond // getrusage is exact, but page faults and collections come in lumps
	maxTurn = 500 * time.Millisecond
)

// runner keeps a process of each side at hand.
type runner struct {
	plan    *plan
	builder *builder
	certs   string
	procs   map[string]*process
}

func (r *runner) args(s Side) []string { return append(s.args(r.builder), "-certs", r.certs) }

func (r *runner) process(s Side, procs int) (*process, error) {
	key := fmt.Sprintf("%s/%d", s.ID, procs)
	if p := r.procs[key]; p != nil {
		return p, nil
	}
	p, err := start(s.ID, nil, r.args(s), s.env, procs)
	if err == nil {
		r.procs[key] = p
	}
	return p, err
}

func (r *runner) drop(s Side, procs int) {
	key := fmt.Sprintf("%s/%d", s.ID, procs)
	if p := r.procs[key]; p != nil {
		_ = p.stop()
		delete(r.procs, key)
	}
}

func (r *runner) stop() {
	for _, p := range r.procs {
		_ = p.stop()
	}
}

// cpuTicks are those of all sides that run, and ours.
func (r *runner) cpuTicks() int64 {
	sum := (&process{cmd: self}).cpuTime()
	for _, p := range r.procs {
		sum += p.cpuTime()
	}
	return sum
}

// runCase lets the sides take turns.
func (r *runner) runCase(c Case) *CaseResult {
	out := &CaseResult{Name: c.Name, Procs: c.Procs, Spec: c.Spec, Sides: map[string]*SideResult{}}
	var ready []Side
	for _, s := range r.plan.sides {
		if !s.takes(c) {
			continue
		}
		res := &SideResult{}
		out.Sides[s.ID] = res
		if err := r.begin(s, c, res); err != nil {
			r.fail(s, c, res, err)
			continue
		}
		ready = append(ready, s)
	}
	own0 := r.cpuTicks()
	busy0, all0 := machineTicks()
	for range r.plan.roundsOf(c) {
		ready = slices.DeleteFunc(ready, func(s Side) bool {
			res := out.Sides[s.ID]
			got, err := r.ask(s, c, res.N)
			if err != nil {
				r.fail(s, c, res, err)
				return true
			}
			res.Rounds = append(res.Rounds, got)
			return false
		})
	}
	busy1, all1 := machineTicks()
	if all1 > all0 {
		out.Foreign = max(0, float64(busy1-busy0-(r.cpuTicks()-own0))/float64(all1-all0))
	}
	for _, s := range ready {
		res := out.Sides[s.ID]
		res.Summaries = map[string]Summary{}
		for _, m := range metrics {
			if v := values(res.Rounds, m); known(v) {
				res.Summaries[m.Name] = summarize(v)
			}
		}
		if suite := res.Rounds[0].Suite; suite > 0 {
			if out.Suite == 0 {
				out.Suite = suite
			}
			if suite != out.Suite {
				r.fail(s, c, res, fmt.Errorf("suite %#04x, and the others have %#04x", suite, out.Suite))
			}
		}
		if r.plan.counts(c) {
			n := min(max(res.N/20, 5), 50)
			if calls, err := r.plan.counter.syscalls(s.ID, r.args(s), s.env, c.Procs, c.Spec, n); err == nil {
				res.Syscalls = &calls
			} else {
				fmt.Fprintf(os.Stderr, "bench: %s: %s: system calls: %v\n", c.Name, s.ID, err)
			}
		}
	}
	return out
}

// begin finds out whether a side has the case, what its ClientHello offers, and how
// many operations fill a turn. It also warms up.
func (r *runner) begin(s Side, c Case, res *SideResult) error {
	p, err := r.process(s, c.Procs)
	if err != nil {
		return err
	}
	n := 1
	if c.N > 0 {
		n = 50
	}
	if _, err := r.ask(s, c, n); err != nil {
		return err
	}
	if c.Spec.Kind != "aead" {
		a, err := p.ask(proto.Request{Verb: "hello", Spec: c.Spec, N: 1})
		if err == nil {
			var h Hello
			if h, err = parseHello(a.Hello); err == nil {
				res.Hello = &h
			}
		}
		if _, no := errors.AsType[*proto.UnsupportedError](err); err != nil && !no {
			return err
		}
	}
	if c.N > 0 {
		res.N = c.N
		return nil
	}
	if r.plan.smoke {
		res.N = max(2, c.Spec.Conns)
		return nil
	}
	turn := r.plan.turn()
	if c.Short {
		turn /= 10
	}
	for n = max(4, c.Spec.Conns); ; n *= 4 {
		got, err := r.ask(s, c, n)
		if err != nil {
			return err
		}
		if took := time.Duration(got.WallNS); took >= turn/4 {
			res.N = max(1, int(float64(n)*float64(turn)/float64(took)))
			return nil
		}
	}
}

// ask has a side do n operations, and holds what it says against the case.
func (r *runner) ask(s Side, c Case, n int) (proto.Result, error) {
	p, err := r.process(s, c.Procs)
	if err != nil {
		return proto.Result{}, err
	}
	a, err := p.ask(proto.Request{Verb: "run", Spec: c.Spec, N: n})
	if err != nil {
		return proto.Result{}, err
	}
	got := a.Result
	switch {
	case got.Ops < 1 || got.WallNS < 0 || got.UserNS < 0 || got.SysNS < 0:
		return got, errors.New("it did not measure")
	case c.Spec.Kind == "aead" || s.ID == "tcp":
	case got.Version != int64(c.Spec.Version) || got.Group != int64(c.Spec.Group) || (got.Mutual == 1) != c.Spec.Mutual:
		return got, fmt.Errorf("it had version %#04x, group %s, mutual %v", got.Version, groupName(uint16(got.Group)), got.Mutual == 1)
	}
	return got, nil
}

func (r *runner) fail(s Side, c Case, res *SideResult, err error) {
	if u, ok := errors.AsType[*proto.UnsupportedError](err); ok {
		res.Unsupported = u.Reason
		return
	}
	*res = SideResult{Error: err.Error(), Hello: res.Hello}
	r.drop(s, c.Procs) // its state is nobody's guess
	fmt.Fprintf(os.Stderr, "bench: %s: %s: %v\n", c.Name, s.ID, err)
}

// failed lists what went wrong, so that a run with holes does not end well.
func failed(results []*CaseResult) []string {
	var all []string
	for _, c := range results {
		for id, s := range c.Sides {
			if s.Error != "" {
				all = append(all, strings.Join([]string{c.Name, id, s.Error}, ": "))
			}
		}
	}
	slices.Sort(all)
	return all
}
