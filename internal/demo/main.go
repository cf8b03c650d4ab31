// Command demo has "s2n serve" and "s2n connect" talk to programs that know
// nothing of them: curl, OpenSSL and Go's crypto/tls. It prints a line for each
// and fails if one of them did not negotiate what it should have.
//
// "make demo" builds all that it needs and runs it.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/s2n-go/s2n/internal/testcert"
)

func main() {
	tool := flag.String("s2n", "bin/s2n", "the `program` of cmd/s2n")
	flag.Parse()
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt) // until the process ends
	if err := run(ctx, *tool, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// line is one handshake of the demo.
type line struct {
	peer    string
	version string // wanted
	group   string // wanted
	// do makes the handshake and a request, and returns what our side says of it.
	do func(context.Context, *line) (*negotiated, error)
}

// negotiated is what "s2n serve" answers and "s2n connect -json" prints.
type negotiated struct {
	Version string `json:"version"`
	Suite   string `json:"suite"`
	Group   string `json:"group"`
	FIPS    bool   `json:"fips"`
	Module  struct {
		Enabled     bool   `json:"enabled"`
		Module      string `json:"module"`
		Version     string `json:"version"`
		Certificate string `json:"certificate"`
		Standing    string `json:"standing"`
	} `json:"module"`
}

// demo is what the lines share.
type demo struct {
	tool  string // path of s2n
	dir   string // of the certificates
	leaf  *testcert.Leaf
	ca    *testcert.Authority
	serve string // address of "s2n serve"
}

func (d *demo) file(name string) string { return filepath.Join(d.dir, name) }

func run(ctx context.Context, tool string, out io.Writer) (err error) {
	for _, need := range []string{"curl", "openssl"} {
		if _, err := exec.LookPath(need); err != nil {
			return fmt.Errorf("%s not found. Install it: Debian/Ubuntu: apt install %[1]s; Fedora: dnf install %[1]s; Alpine: apk add %[1]s", need)
		}
	}
	d := &demo{tool: tool, ca: testcert.New("demo root")}
	d.leaf = d.ca.Issue(testcert.Options{}, "localhost", "127.0.0.1")
	if d.dir, err = os.MkdirTemp("", "s2n-demo-"); err != nil {
		return err
	}
	defer os.RemoveAll(d.dir)
	for name, pem := range map[string][]byte{"ca.pem": d.ca.PEM, "cert.pem": d.leaf.CertPEM, "key.pem": d.leaf.KeyPEM} {
		if err := os.WriteFile(d.file(name), pem, 0o600); err != nil {
			return err
		}
	}
	stop, err := d.startServe(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()

	lines, err := d.lines(ctx)
	if err != nil {
		return err
	}
	return d.print(ctx, out, lines)
}

// print runs the lines and prints the table.
func (d *demo) print(ctx context.Context, out io.Writer, lines []line) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PEER\tPROTOCOL\tSUITE\tGROUP\tFIPS MODULE\tSTANDING")
	var failures []error
	standing := ""
	for i := range lines {
		l := &lines[i]
		bounded, cancel := context.WithTimeout(ctx, 20*time.Second)
		n, err := l.do(bounded, l)
		cancel()
		if err == nil {
			err = l.check(n)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("%s, %s, %s: %w", l.peer, l.version, l.group, err))
			fmt.Fprintf(w, "%s\t%s\tFAILED\t%s\t\t\n", l.peer, l.version, l.group)
			continue
		}
		standing = n.Module.Standing
		short := "no certificate of its own"
		if n.Module.Certificate != "" {
			short = n.Module.Certificate
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s %s\t%s\n", l.peer, n.Version, n.Suite, n.Group, n.Module.Module, n.Module.Version, short)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if standing != "" {
		fmt.Fprintf(out, "\n%s\n", standing)
	}
	return errors.Join(failures...)
}

func (l *line) check(n *negotiated) error {
	switch {
	case n.Version != l.version || n.Group != l.group:
		return fmt.Errorf("negotiated %s with %s", n.Version, n.Group)
	case !n.Module.Enabled || !n.FIPS:
		return errors.New("not within FIPS 140-3's rules")
	}
	return nil
}

// startServe starts "s2n serve"; stop ends it as Ctrl-C does, and wants it to end well.
func (d *demo) startServe(ctx context.Context) (stop func() error, err error) {
	cmd := exec.CommandContext(ctx, d.tool, "serve", "-json", "-addr", "127.0.0.1:0", "-cert", d.file("cert.pem"), "-key", d.file("key.pem"))
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	in := bufio.NewReader(stdout)
	first, err := in.ReadBytes('\n')
	var listening struct {
		Event, Addr string
		Error       struct{ Message string }
	}
	if err == nil {
		err = json.Unmarshal(first, &listening)
	}
	if err != nil || listening.Event != "listening" {
		_ = cmd.Process.Kill()
		return nil, fmt.Errorf("s2n serve did not start: %s: %w", listening.Error.Message, errors.Join(err, cmd.Wait()))
	}
	d.serve = listening.Addr
	drained := make(chan struct{})
	go func() { // or it would wait for a reader of its lines
		defer close(drained)
		_, _ = io.Copy(io.Discard, in)
	}()
	return func() error {
		_ = cmd.Process.Signal(os.Interrupt)
		<-drained
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("s2n serve, after an interrupt: %w", err)
		}
		return nil
	}, nil
}

// lineWith returns the first line of output that has part in it, "" if none does.
func lineWith(output, part string) string {
	for l := range strings.Lines(output) {
		if strings.Contains(l, part) {
			return strings.TrimSpace(l)
		}
	}
	return ""
}
