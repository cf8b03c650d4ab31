// Command bench compares package s2n with crypto/tls, plain C over s2n-tls, rustls
// and plain TCP. It builds each side, lets them run in turn, several rounds, and
// writes medians, spreads and ratios as text, JSON and a plot.
// docs/BENCHMARKING.md says what the numbers are good for.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

var self = &exec.Cmd{Process: &os.Process{Pid: os.Getpid()}}

// busyLoad is above what a machine has that does nothing else.
const busyLoad = 1.5

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	pattern := flag.String("case", "", "only cases whose name has a match of this regular expression; without case")
	sideList := flag.String("sides", "", "only these sides, with commas")
	rounds := flag.Int("rounds", 7, "turns of each side")
	budget := flag.Duration("budget", 15*time.Minute, "how long all of it may take, about")
	against := flag.String("against", "go-fips", "the side that ratios are against")
	out := flag.String("out", "out", "folder for what is built and written")
	docs := flag.String("docs", "", "folder with BENCHMARKING.md, whose tables and plot are brought up to date")
	smoke := flag.Bool("smoke", false, "everything once and as short as it gets: that it runs, not how fast")
	counting := flag.Bool("syscalls", true, "count system calls, with perf or strace")
	list := flag.Bool("list", false, "list cases and sides, and do nothing")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("what is %q? see -help", flag.Arg(0))
	}

	p := &plan{rounds: *rounds, budget: *budget, smoke: *smoke}
	var err error
	if p.cases, err = selectCases(*pattern); err != nil {
		return err
	}
	if p.sides, err = selectSides(*sideList); err != nil {
		return err
	}
	if p.rounds < 1 {
		return errors.New("-rounds must be 1 at least")
	}
	if *list {
		for _, c := range p.cases {
			fmt.Println(c.Name)
		}
		fmt.Println()
		for _, s := range p.sides {
			fmt.Printf("%-14s %s\n", s.ID, s.Title)
		}
		return nil
	}
	if p.smoke {
		p.rounds = 1
		for i := range p.cases {
			if p.cases[i].N > 0 {
				p.cases[i].N = 100
			}
		}
	} else if *counting {
		if p.counter = findCounter(); p.counter == nil {
			fmt.Fprintln(os.Stderr, "bench: system calls are not counted: install linux-perf (Debian), perf (Fedora, Alpine) or strace, or run as root")
		}
	}
	load := loadAverage()
	if load > busyLoad && !p.smoke {
		fmt.Fprintf(os.Stderr, "bench: the load is %.1f: others use this machine, so spreads will be wide and single numbers mean little\n", load)
		if *docs != "" {
			return errors.New("numbers for the documents need a machine that does nothing else")
		}
	}

	b, err := newBuilder(".", *out)
	if err != nil {
		return err
	}
	if err := build(b, p); err != nil {
		return err
	}
	certs := filepath.Join(b.out, "certs")
	if err := writeCerts(certs); err != nil {
		return err
	}
	r := &runner{plan: p, builder: b, certs: certs, procs: map[string]*process{}}
	defer r.stop()
	report := newReport(p, *against, load)
	report.head(os.Stdout)
	for _, c := range p.cases {
		res := r.runCase(c)
		report.Cases = append(report.Cases, res)
		for key, proc := range r.procs {
			id, _, _ := strings.Cut(key, "/")
			report.Facts[id] = proc.facts
		}
		report.table(os.Stdout, res)
	}
	if !p.smoke { // whose numbers are none
		report.reach()
		report.printReach(os.Stdout)
		if err := report.write(b.out); err != nil {
			return err
		}
		if *docs != "" {
			if err := report.updateDocs(*docs); err != nil {
				return err
			}
		}
	}
	if f := failed(report.Cases); f != nil {
		return fmt.Errorf("%d failed:\n  %s", len(f), strings.Join(f, "\n  "))
	}
	return nil
}

// build makes the programs of all sides. It goes on after one that fails, so that
// all that is missing is told at once.
func build(b *builder, p *plan) error {
	var errs []error
	for _, s := range p.sides {
		if !slices.ContainsFunc(p.cases, s.takes) {
			continue
		}
		if err := s.build(b); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.ID, err))
		}
	}
	if len(b.libraries) > 0 {
		errs = append(errs, b.restore())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w\n(-sides leaves sides out; -list lists them)", err)
	}
	return nil
}

func selectCases(pattern string) ([]Case, error) {
	re, err := regexp.Compile("(?i)" + pattern)
	if err != nil {
		return nil, fmt.Errorf("-case: %w", err)
	}
	cases := slices.DeleteFunc(allCases(), func(c Case) bool { return !re.MatchString(c.Name) })
	if len(cases) == 0 {
		return nil, fmt.Errorf("no case matches %q; -list lists them", pattern)
	}
	return cases, nil
}

func selectSides(list string) ([]Side, error) {
	all := allSides()
	if list == "" {
		return all, nil
	}
	wanted := strings.Split(list, ",")
	for _, id := range wanted {
		if !slices.ContainsFunc(all, func(s Side) bool { return s.ID == id }) {
			return nil, fmt.Errorf("no side %q; -list lists them", id)
		}
	}
	return slices.DeleteFunc(all, func(s Side) bool { return !slices.Contains(wanted, s.ID) }), nil
}

// machine is what a number without it is worth nothing.
func machine() map[string]string {
	m := map[string]string{"cpus": fmt.Sprint(runtime.NumCPU()), "go": runtime.Version(), "arch": runtime.GOARCH}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
				m["cpu"] = strings.TrimSpace(v)
				break
			}
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m["kernel"], _, _ = strings.Cut(strings.TrimSpace(string(text)), "-") // what follows names a builder
	}
	if text, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output(); err == nil {
		m["commit"] = strings.TrimSpace(string(text))
		if text, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no").Output(); err == nil && len(text) > 0 {
			m["commit"] += " and changes"
		}
	}
	return m
}

func writeJSON(file string, v any) error {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
