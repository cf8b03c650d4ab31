// Command s2n serves and connects with package s2n, and tells what is linked: to
// try it, to look at a peer, and as the peer that tests talk to.
//
// "s2n help" lists the subcommands. Exit codes: 0 done, 1 failed, 2 used wrongly,
// 130 interrupted (connect).
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/s2n-go/s2n"
)

const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// command is one subcommand; each has a file of its own.
type command struct {
	name, short string
	run         func(ctx context.Context, t *tool, args []string) int
}

var commands = []command{
	{"serve", "serve HTTP/1.1, or echo, over TLS", serve},
	{"connect", "connect to a TLS server", connect},
	{"fips", "tell which FIPS module is linked, and its standing", fips},
	{"policies", "list the security policies, or show one", policies},
	{"version", "tell what this program is made of", version},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the next one ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	if len(args) == 0 {
		usage(errs)
		return exitUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		usage(out)
		return exitOK
	}
	for _, c := range commands {
		if c.name == args[0] {
			return c.run(ctx, &tool{name: c.name, in: in, out: out, errs: errs, events: out}, args[1:])
		}
	}
	fmt.Fprintf(errs, "s2n: there is no command %q\n\n", args[0])
	usage(errs)
	return exitUsage
}

func usage(w io.Writer) {
	fmt.Fprint(w, "usage: s2n COMMAND [flags]\n\n")
	for _, c := range commands {
		fmt.Fprintf(w, "  %-9s %s\n", c.name, c.short)
	}
	fmt.Fprint(w, "\n\"s2n COMMAND -h\" lists the flags of a command.\n")
}

// tool is what a subcommand has: its streams, and one way to print.
type tool struct {
	name      string
	in        io.Reader
	out, errs io.Writer
	events    io.Writer // where the lines of -json go: out, or errs where out is the peer's
	json      bool
	mu        sync.Mutex // of the streams, once goroutines print
}

// flags makes the subcommand's flag set; synopsis follows its name in the usage line.
func (t *tool) flags(synopsis string) *flag.FlagSet {
	f := flag.NewFlagSet(t.name, flag.ContinueOnError)
	f.SetOutput(t.errs)
	f.Usage = func() {
		fmt.Fprintf(f.Output(), "usage: s2n %s %s\n\n", t.name, synopsis)
		f.PrintDefaults()
	}
	f.BoolVar(&t.json, "json", false, "print JSON, one object a line")
	return f
}

// parse reads the flags and between low and high arguments. Its exit code counts
// if it returns false.
func (t *tool) parse(f *flag.FlagSet, args []string, low, high int) (int, bool) {
	if len(args) > 0 && (args[0] == "-h" || args[0] == "-help" || args[0] == "--help") {
		f.SetOutput(t.out)
	}
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return exitOK, false
	} else if err != nil {
		return exitUsage, false // flag said what and how
	}
	switch n := f.NArg(); {
	case n < low:
		return t.misused("an argument is missing"), false
	case n > high:
		return t.misused("unexpected argument %q; flags come before arguments", f.Arg(high)), false
	}
	return exitOK, true
}

// misused says what is wrong with the command line.
func (t *tool) misused(format string, args ...any) int {
	fmt.Fprintf(t.errs, "s2n %s: %s\n\"s2n %s -h\" lists its flags\n", t.name, fmt.Sprintf(format, args...), t.name)
	return exitUsage
}

// failed says what went wrong.
func (t *tool) failed(err error) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.json {
		writeJSON(t.events, event{Event: "error", Error: newErrorJSON(err)})
	} else {
		fmt.Fprintf(t.errs, "s2n %s: %s\n", t.name, errorText(err))
	}
	return exitFailed
}

// ready is the first line of all that uses TLS: no FIPS module, no service.
func (t *tool) ready(policy string) (int, bool) {
	if err := s2n.RequireFIPS(); err != nil {
		return t.failed(err), false
	}
	if _, err := s2n.Policy(policy).Info(); err != nil {
		return t.misused("-policy: there is no policy %q that can be used; \"s2n policies\" lists them", policy), false
	}
	return exitOK, true
}

// event is a line of serve -json and connect -json.
type event struct {
	Event      string      `json:"event"` // listening, handshake, response, closed, error
	Addr       string      `json:"addr,omitempty"`
	Mode       string      `json:"mode,omitempty"`
	Remote     string      `json:"remote,omitempty"`
	Negotiated *negotiated `json:"negotiated,omitempty"`
	Status     int         `json:"status,omitempty"`
	Body       string      `json:"body,omitempty"`
	Error      *errorJSON  `json:"error,omitempty"`

	Policy string          `json:"policy,omitempty"`
	Module *s2n.FIPSStatus `json:"module,omitempty"`
}

type errorJSON struct {
	Message string `json:"message"`
	Kind    string `json:"kind,omitempty"`  // s2n.Kind
	Name    string `json:"name,omitempty"`  // s2n-tls's name
	Alert   string `json:"alert,omitempty"` // the peer's, or the one sent to it
}

func newErrorJSON(err error) *errorJSON {
	e := &errorJSON{Message: errorText(err)}
	if te, ok := errors.AsType[*s2n.Error](err); ok {
		e.Kind, e.Name = te.Kind.String(), te.Name
		if te.Alert != 0 {
			e.Alert = strings.TrimPrefix(te.Alert.Error(), "tls: ")
		}
	}
	return e
}

func errorText(err error) string { return strings.TrimPrefix(err.Error(), "s2n: ") }

// writeJSON writes v on one line. What is written here always encodes; a stream
// that takes no more is for the next write to find.
func writeJSON(w io.Writer, v any) {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
}

// words splits a comma-separated flag.
func words(list string) []string {
	var out []string
	for _, w := range strings.Split(list, ",") {
		if w = strings.TrimSpace(w); w != "" {
			out = append(out, w)
		}
	}
	return out
}

// loadRoots reads a PEM bundle of trusted roots; "" is the system's.
func loadRoots(flagName, file string) (*s2n.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	bundle, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flagName, err)
	}
	pool := s2n.NewCertPool()
	if !pool.AppendCertsFromPEM(bundle) {
		return nil, fmt.Errorf("%s: %s holds no certificate in PEM form", flagName, file)
	}
	return pool, nil
}
