package s2n_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
	"github.com/s2n-go/s2n/cshim"
)

// The process whose memory is read: this test binary again, with one s2n connection
// that it makes and ends as its parent says, a JSON object a line each way.

type secretsCommand struct {
	Do string // start, wait, cancel, close, drop, read, status, exit

	// start: dial Addr, which both roles do, and begin the handshake.
	Addr       string
	Server     bool
	Buffers    bool // the buffer transport, not the socket's
	Policy     s2n.Policy
	Cert, Key  string
	CA         string
	ClientAuth tls.ClientAuthType

	N int // read: bytes; drop: how many connections may stay, which blinding holds
}

type secretsReply struct {
	Err    string // of the command; for wait the handshake's
	WireIn uint64
	Conns  int64 // in C
	Data   string
}

type secretsChild struct {
	t       testing.TB
	before  memory // before this connection
	blinded int    // connections that a timer holds
	cmd     *exec.Cmd
	in      *json.Encoder
	pipe    io.Closer
	out     *json.Decoder
}

func startSecretsChild(t testing.TB) *secretsChild {
	t.Helper()
	if raceEnabled || cshim.BuildFlavour() == "asan" {
		t.Skip("the race detector has nothing to find here and is slow at it; AddressSanitizer keeps memory of its own in which freed blocks lie")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestSecretsChild$", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), "S2N_TEST_SECRETS_CHILD=1")
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	c := &secretsChild{t: t, cmd: cmd, in: json.NewEncoder(stdin), pipe: stdin, out: json.NewDecoder(stdout)}
	t.Cleanup(func() { stdin.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return c
}

func (c *secretsChild) do(cmd secretsCommand) secretsReply {
	c.t.Helper()
	require.NoError(c.t, c.in.Encode(cmd))
	var r secretsReply
	require.NoError(c.t, c.out.Decode(&r))
	return r
}

// memory reads the child's memory once it has nothing more to do with the n bytes
// that it got.
func (c *secretsChild) memory(n uint64) memory {
	c.t.Helper()
	require.Eventually(c.t, func() bool { return c.do(secretsCommand{Do: "status"}).WireIn == n }, 20*time.Second, 5*time.Millisecond)
	// Bytes count as read a moment before they are handled. Then no thread has anything to do.
	idle := 0
	require.Eventually(c.t, func() bool {
		if c.busy() {
			idle = 0
		} else {
			idle++
		}
		return idle == 3
	}, 20*time.Second, 5*time.Millisecond)
	return readMemory(c.t, c.cmd.Process.Pid)
}

// busy reports that one of the child's threads runs or is about to.
func (c *secretsChild) busy() bool {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", c.cmd.Process.Pid))
	for _, file := range stats {
		stat, err := os.ReadFile(file)
		if _, after, ok := bytes.Cut(stat, []byte(") ")); err == nil && ok && after[0] == 'R' {
			return true
		}
	}
	return len(stats) == 0
}

// TestSecretsChild is that process; a test only by form.
func TestSecretsChild(t *testing.T) {
	if os.Getenv("S2N_TEST_SECRETS_CHILD") == "" {
		t.Skip("a part of TestSecrets…")
	}
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	var conn *s2n.Conn
	var cancel context.CancelFunc
	var done chan error
	for {
		var cmd secretsCommand
		if in.Decode(&cmd) != nil {
			os.Exit(0)
		}
		var r secretsReply
		say := func(err error) {
			if err != nil {
				r.Err = err.Error()
			}
		}
		switch cmd.Do {
		case "start":
			made, err := cmd.conn()
			if err != nil {
				say(err)
				break
			}
			var ctx context.Context
			ctx, cancel = context.WithCancel(context.Background())
			done = make(chan error, 1)
			conn = made
			go func(done chan error) { done <- made.HandshakeContext(ctx) }(done)
		case "wait":
			select {
			case err := <-done:
				say(err)
			case <-time.After(20 * time.Second):
				r.Err = "the handshake goes on"
			}
		case "cancel":
			cancel()
		case "close":
			if conn != nil {
				say(conn.Close())
			}
		case "drop":
			conn, cancel, done = nil, nil, nil
			for range 200 {
				runtime.GC()
				if cshim.GetMemStats().Conns <= int64(cmd.N) {
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
		case "read":
			buf := make([]byte, cmd.N)
			n, err := io.ReadFull(conn, buf)
			r.Data = string(buf[:n])
			say(err)
		}
		if conn != nil {
			r.WireIn = conn.State().WireIn
		}
		r.Conns = cshim.GetMemStats().Conns
		if out.Encode(r) != nil {
			os.Exit(1)
		}
	}
}

func (cmd *secretsCommand) conn() (*s2n.Conn, error) {
	config := &s2n.Config{Policy: cmd.Policy, ClientAuth: cmd.ClientAuth, ServerName: "localhost"}
	if cmd.Cert != "" {
		cert, err := s2n.X509KeyPair([]byte(cmd.Cert), []byte(cmd.Key))
		if err != nil {
			return nil, err
		}
		config.Certificates = []s2n.Certificate{cert}
	}
	config.RootCAs = s2n.NewCertPool()
	config.RootCAs.AppendCertsFromPEM([]byte(cmd.CA))
	config.ClientCAs = config.RootCAs
	raw, err := net.Dial("tcp", cmd.Addr)
	if err != nil {
		return nil, err
	}
	if cmd.Buffers {
		raw = struct{ net.Conn }{raw}
	}
	if cmd.Server {
		return s2n.Server(raw, config), nil
	}
	return s2n.Client(raw, config), nil
}

func (r secretsReply) ok(t testing.TB) secretsReply {
	t.Helper()
	require.Empty(t, r.Err)
	return r
}

func (r secretsReply) failed(t testing.TB, part string) {
	t.Helper()
	require.True(t, strings.Contains(r.Err, part), "%q does not say %q", r.Err, part)
}
