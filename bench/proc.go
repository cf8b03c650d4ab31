package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/s2n-go/s2n/bench/internal/proto"
)

// process is a side that runs.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string
	exit   error // once lines is closed
	stderr *bytes.Buffer
	facts  map[string]string
	name   string
}

// startTimeout is for a start in which the module tests itself, on a busy machine.
const startTimeout = time.Minute

// start runs a program; wrap is what comes before its name, for counting.
func start(name string, wrap, args, env []string, procs int) (*process, error) {
	args = append(append([]string{}, wrap...), args...)
	c := exec.Command(args[0], args[1:]...)
	// Whatever the caller has set for his own Go programs would not be the defaults.
	for _, e := range os.Environ() {
		key, _, _ := strings.Cut(e, "=")
		switch key {
		case "GODEBUG", "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GOTRACEBACK":
		default:
			c.Env = append(c.Env, e)
		}
	}
	c.Env = append(c.Env, env...)
	if procs > 0 {
		c.Env = append(c.Env, "GOMAXPROCS="+strconv.Itoa(procs))
	}
	p := &process{cmd: c, name: name, lines: make(chan string), stderr: &bytes.Buffer{}}
	c.Stderr = p.stderr
	var err error
	if p.in, err = c.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	go func() {
		r := bufio.NewReader(out)
		for line, err := r.ReadString('\n'); err == nil; line, err = r.ReadString('\n') {
			p.lines <- line
		}
		p.exit = c.Wait() // not before all is read
		close(p.lines)
	}()
	line, err := p.line(startTimeout)
	if err == nil {
		p.facts, err = proto.ParseReady(line)
	}
	if err != nil {
		_ = p.stop()
		return nil, fmt.Errorf("%s did not start: %w", name, err)
	}
	return p, nil
}

func (p *process) line(timeout time.Duration) (string, error) {
	select {
	case line, ok := <-p.lines:
		if !ok {
			return "", fmt.Errorf("%s ended: %s", p.name, tail(p.stderr.Bytes(), 500))
		}
		return line, nil
	case <-time.After(timeout):
		_ = p.cmd.Process.Kill()
		return "", fmt.Errorf("%s: no answer in %v", p.name, timeout)
	}
}

// askTimeout is far above any turn.
const askTimeout = 2 * time.Minute

func (p *process) ask(r proto.Request) (*proto.Answer, error) {
	if _, err := io.WriteString(p.in, r.String()+"\n"); err != nil {
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	line, err := p.line(askTimeout)
	if err != nil {
		return nil, err
	}
	return proto.ParseAnswer(line)
}

// stop ends a side by the end of its input.
func (p *process) stop() error {
	_ = p.in.Close()
	killed := time.AfterFunc(10*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer killed.Stop()
	for range p.lines {
	}
	return p.exit
}

// cpuTime is what a process has used, in the kernel's ticks of 10 ms.
func (p *process) cpuTime() int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	// The name in brackets may hold anything; utime and stime are the 14th and 15th word.
	f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(f) < 13 {
		return 0
	}
	u, _ := strconv.ParseInt(f[11], 10, 64)
	s, _ := strconv.ParseInt(f[12], 10, 64)
	return u + s
}

// machineTicks are those of all CPUs, in work and in all.
func machineTicks() (busy, all int64) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, f := range strings.Fields(line) {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil || i > 8 { // guest time is in user time already
			continue
		}
		all += n
		if i != 4 && i != 5 { // idle, iowait
			busy += n
		}
	}
	return busy, all
}

func loadAverage() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return -1
	}
	load, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	if err != nil {
		return -1
	}
	return load
}

// counter counts system calls of a whole process from outside: by a tracepoint if
// the kernel lets us, else by ptrace, which is much slower and so makes other waits.
type counter struct {
	name string
	wrap func(file string) []string
	read func(file string) (float64, error)
}

func findCounter() *counter {
	perf := &counter{
		name: "perf",
		wrap: func(file string) []string {
			return []string{"perf", "stat", "-x", ",", "-e", "raw_syscalls:sys_enter", "-o", file, "--"}
		},
		read: func(file string) (float64, error) {
			text, err := os.ReadFile(file)
			if err != nil {
				return 0, err
			}
			for line := range strings.Lines(string(text)) {
				if f := strings.Split(line, ","); len(f) > 2 && strings.HasPrefix(f[2], "raw_syscalls") {
					return strconv.ParseFloat(f[0], 64)
				}
			}
			return 0, errors.New("perf counted nothing")
		},
	}
	strace := &counter{
		name: "strace",
		wrap: func(file string) []string { return []string{"strace", "-f", "-c", "-U", "calls,name", "-o", file} },
		read: func(file string) (float64, error) {
			text, err := os.ReadFile(file)
			if err != nil {
				return 0, err
			}
			for line := range strings.Lines(string(text)) {
				if f := strings.Fields(line); len(f) == 2 && f[1] == "total" {
					return strconv.ParseFloat(f[0], 64)
				}
			}
			return 0, errors.New("strace counted nothing")
		},
	}
	for _, c := range []*counter{perf, strace} {
		file, err := os.CreateTemp("", "count")
		if err != nil {
			return nil
		}
		_ = file.Close()
		args := append(c.wrap(file.Name()), "true")
		ok := exec.Command(args[0], args[1:]...).Run() == nil
		if ok {
			_, err = c.read(file.Name())
			ok = err == nil
		}
		_ = os.Remove(file.Name())
		if ok {
			return c
		}
	}
	return nil
}

// syscalls counts those of an operation: the slope between few and many.
func (c *counter) syscalls(name string, args, env []string, procs int, spec proto.Spec, n int) (float64, error) {
	file, err := os.CreateTemp("", "count")
	if err != nil {
		return 0, err
	}
	_ = file.Close()
	defer os.Remove(file.Name())
	total := func(n int) (calls float64, ops int64, err error) {
		p, err := start(name, c.wrap(file.Name()), args, env, procs)
		if err != nil {
			return 0, 0, err
		}
		a, err := p.ask(proto.Request{Verb: "run", Spec: spec, N: n})
		if stopErr := p.stop(); err == nil {
			err = stopErr
		}
		if err != nil {
			return 0, 0, err
		}
		calls, err = c.read(file.Name())
		return calls, a.Result.Ops, err
	}
	few, opsFew, err := total(n)
	if err != nil {
		return 0, err
	}
	many, opsMany, err := total(4 * n)
	if err != nil {
		return 0, err
	}
	return max(0, (many-few)/float64(opsMany-opsFew)), nil
}
