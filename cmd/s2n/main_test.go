package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n/internal/testcert"
)

// Made once: the program as users have it, and certificates for its peers.
var (
	binary string
	dir    string
	ca     = testcert.New("test root")
	leaf   = ca.Issue(testcert.Options{}, "localhost", "127.0.0.1")
	client = ca.Issue(testcert.Options{}, "client")
)

func TestMain(m *testing.M) {
	code, err := setUp(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func setUp(m *testing.M) (int, error) {
	var err error
	if dir, err = os.MkdirTemp("", "s2n-cmd-"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	for name, pem := range map[string][]byte{
		"ca.pem": ca.PEM, "cert.pem": leaf.CertPEM, "key.pem": leaf.KeyPEM,
		"client.pem": client.CertPEM, "client-key.pem": client.KeyPEM,
		"other.pem": testcert.New("another root").PEM, "junk.pem": []byte("this is no PEM\n"),
	} {
		if err := os.WriteFile(file(name), pem, 0o600); err != nil {
			return 0, err
		}
	}
	binary = file("s2n")
	build := []string{"build", "-o", binary}
	if asan {
		build = append(build, "-asan")
	}
	if out, err := exec.Command("go", append(build, ".")...).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("go build: %w\n%s", err, out)
	}
	return m.Run(), nil
}

func file(name string) string { return filepath.Join(dir, name) }

// ended is what a run of the program left.
type ended struct {
	code      int
	out, errs string
}

// s2nRun runs the program to its end.
func s2nRun(t *testing.T, stdin string, args ...string) ended {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	_ = cmd.Run()
	require.NoError(t, ctx.Err(), "s2n %s did not end; %s %s", strings.Join(args, " "), &out, &errs)
	return ended{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// server is a running "s2n serve -json".
type server struct {
	addr   string
	cmd    *exec.Cmd
	events chan event
}

func startServer(t *testing.T, args ...string) *server {
	t.Helper()
	s := &server{events: make(chan event, 1000)}
	s.cmd = exec.Command(binary, append([]string{"serve", "-json", "-addr", "127.0.0.1:0", "-cert", file("cert.pem"), "-key", file("key.pem")}, args...)...)
	s.cmd.Stderr = os.Stderr
	stdout, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	go func() {
		defer close(s.events)
		in := bufio.NewScanner(stdout)
		for in.Scan() {
			var e event
			if json.Unmarshal(in.Bytes(), &e) == nil {
				s.events <- e
			}
		}
	}()
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = s.cmd.Wait() })
	first := s.next(t)
	require.Equal(t, "listening", first.Event, "%+v", first)
	require.True(t, first.Module.Enabled)
	s.addr = first.Addr
	return s
}

func (s *server) next(t *testing.T) event {
	t.Helper()
	select {
	case e, ok := <-s.events:
		require.True(t, ok, "the server ended")
		return e
	case <-time.After(20 * time.Second):
		require.Fail(t, "the server prints nothing")
		return event{}
	}
}

// stop sends a signal and wants a clean end.
func (s *server) stop(t *testing.T, sig syscall.Signal) {
	t.Helper()
	require.NoError(t, s.cmd.Process.Signal(sig))
	for s.next(t).Event != "closed" {
	}
	require.NoError(t, s.cmd.Wait())
}

func TestUsageErrorsExitWith2(t *testing.T) {
	cert, key := file("cert.pem"), file("key.pem")
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "usage"},
		{[]string{"sevre"}, `no command "sevre"`},
		{[]string{"serve", "-nonsense"}, "-nonsense"},
		{[]string{"serve"}, "-cert and -key are needed"},
		{[]string{"serve", "-cert", cert}, "-cert and -key are needed"},
		{[]string{"serve", "-http", "-echo", "-cert", cert, "-key", key}, "exclude"},
		{[]string{"serve", "-cert", cert, "-key", key, "-client-auth", "maybe"}, `no "maybe"`},
		{[]string{"serve", "-cert", cert, "-key", key, "-client-ca", cert}, "verifies nothing"},
		{[]string{"serve", "-cert", cert, "-key", key, "-policy", "nonsense"}, `"s2n policies" lists them`},
		{[]string{"connect"}, "argument is missing"},
		{[]string{"connect", "localhost"}, "HOST:PORT"},
		{[]string{"connect", ":443"}, "HOST:PORT"},
		{[]string{"connect", "localhost:443", "-json"}, "flags come before"},
		{[]string{"connect", "-cert", cert, "localhost:443"}, "go together"},
		{[]string{"connect", "-get", "x", "localhost:443"}, "begins with /"},
		{[]string{"connect", "-policy", "nonsense", "localhost:443"}, "nonsense"},
		{[]string{"policies", "nonsense"}, "nonsense"},
		{[]string{"fips", "x"}, "unexpected"},
	} {
		r := s2nRun(t, "", c.args...)
		require.Equal(t, 2, r.code, "%q", c.args)
		require.Contains(t, r.errs, c.says, "%q", c.args)
		require.Empty(t, r.out, "%q", c.args)
	}
	for _, c := range commands {
		r := s2nRun(t, "", c.name, "-h")
		require.Zero(t, r.code)
		require.Contains(t, r.out, "-json")
	}
	require.Zero(t, s2nRun(t, "", "help").code)
}

func TestFIPS(t *testing.T) {
	r := s2nRun(t, "", "fips", "-json", "-self-test")
	require.Zero(t, r.code, r.errs)
	var out map[string]any
	require.NoError(t, json.Unmarshal([]byte(r.out), &out))
	require.Equal(t, true, out["enabled"])
	require.Equal(t, "AWS-LC FIPS", out["module"])
	require.Equal(t, "passed", out["self_test"])
	require.NotEmpty(t, out["standing"])

	r = s2nRun(t, "", "fips")
	require.Zero(t, r.code)
	require.Contains(t, r.out, out["version"])
	require.Contains(t, r.out, out["standing"])
	require.NotContains(t, r.out, "self-test")
}

func TestVersion(t *testing.T) {
	r := s2nRun(t, "", "version", "-json")
	require.Zero(t, r.code)
	var out map[string]string
	require.NoError(t, json.Unmarshal([]byte(r.out), &out))
	for _, k := range []string{"s2n_go", "s2n_tls", "aws_lc", "linked", "go"} {
		require.NotEmpty(t, out[k], k)
	}
	require.Contains(t, s2nRun(t, "", "version").out, out["aws_lc"])
}

func TestPolicies(t *testing.T) {
	list := s2nRun(t, "", "policies")
	require.Zero(t, list.code)
	seen := map[string]bool{}
	for l := range strings.Lines(s2nRun(t, "", "policies", "-json").out) {
		var p policyJSON
		require.NoError(t, json.Unmarshal([]byte(l), &p))
		require.NotEmpty(t, p.CipherSuites, p.Name)
		for _, name := range append(p.CipherSuites, p.SignatureSchemes...) {
			require.NotContains(t, name, "0x", "%s: a name is missing", p.Name)
			require.NotContains(t, name, "(", "%s: a name is missing", p.Name)
		}
		require.Contains(t, list.out, p.Name+" ")
		seen[p.Name] = p.FIPS
	}
	require.True(t, seen["default_fips"])
	require.Greater(t, len(seen), 50)

	one := s2nRun(t, "", "policies", "default_fips")
	require.Zero(t, one.code)
	require.Contains(t, one.out, "TLS 1.2 to 1.3")
	require.Contains(t, one.out, "  SecP256r1MLKEM768\n")
	require.Contains(t, one.out, "  ecdsa_secp256r1_sha256\n")
}
