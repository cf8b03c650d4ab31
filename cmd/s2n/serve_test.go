package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func goConfig() *tls.Config { return &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost"} }

// need fails, rather than skips, where a peer is missing: a test without its peer shows nothing.
func need(t *testing.T, name string) {
	t.Helper()
	_, err := exec.LookPath(name)
	require.NoError(t, err, "install %s (apt install %[1]s)", name)
}

func TestServeCurl(t *testing.T) {
	need(t, "curl")
	s := startServer(t)
	for _, version := range []string{"1.2", "1.3"} {
		_, port, err := net.SplitHostPort(s.addr)
		require.NoError(t, err)
		out, err := exec.Command("curl", "-sSf", "--noproxy", "*", "--tlsv"+version, "--tls-max", version, "--cacert", file("ca.pem"),
			"-H", "Accept: application/json", "--resolve", "localhost:"+port+":127.0.0.1", "https://localhost:"+port+"/").CombinedOutput()
		require.NoError(t, err, string(out))
		var answer negotiated
		require.NoError(t, json.Unmarshal(out, &answer), string(out))
		require.Equal(t, "TLS "+version, answer.Version)
		require.Equal(t, "http/1.1", answer.Protocol)
		require.True(t, answer.FIPS)
		require.Equal(t, answer, *s.next(t).Negotiated, "what it answers and what it prints")
	}
	// Who does not trust the root is told so, and the server tells of it.
	require.Error(t, exec.Command("curl", "-sS", "--noproxy", "*", "https://"+s.addr).Run())
	e := s.next(t)
	require.NotNil(t, e.Error)
	require.Equal(t, "alert", e.Error.Kind)
	require.Equal(t, "unknown certificate authority", e.Error.Alert)
	s.stop(t, syscall.SIGTERM)
}

func TestServeOpenSSL(t *testing.T) {
	need(t, "openssl")
	s := startServer(t, "-echo")
	for flag, version := range map[string]string{"-tls1_2": "TLS 1.2", "-tls1_3": "TLS 1.3"} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		cmd := exec.CommandContext(ctx, "openssl", "s_client", "-connect", s.addr, "-servername", "localhost", "-CAfile", file("ca.pem"),
			"-verify_return_error", "-quiet", "-no_ign_eof", flag)
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, err = io.WriteString(in, "hello\n")
		require.NoError(t, err)
		back, err := bufio.NewReader(stdout).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "hello\n", back)
		in.Close()
		require.NoError(t, cmd.Wait())
		cancel()
		require.Equal(t, version, s.next(t).Negotiated.Version)
	}
	s.stop(t, syscall.SIGINT)
}

// A signal gives every client that is connected a close_notify, and the exit code 0.
func TestServeClosesCleanly(t *testing.T) {
	for _, mode := range []string{"-http", "-echo"} {
		s := startServer(t, mode)
		c, err := tls.Dial("tcp", s.addr, goConfig())
		require.NoError(t, err)
		defer c.Close()
		silent, err := net.Dial("tcp", s.addr) // it holds nothing up
		require.NoError(t, err)
		defer silent.Close()
		in := bufio.NewReader(c)
		_, err = io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, err)
		_, err = in.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "handshake", s.next(t).Event)
		s.stop(t, syscall.SIGINT)
		_, err = io.Copy(io.Discard, in)
		require.NoError(t, err, "%s: crypto/tls wants a close_notify", mode)
	}
}

func TestServeClientAuth(t *testing.T) {
	anonymous, known := goConfig(), goConfig()
	known.Certificates = []tls.Certificate{client.TLS}
	stranger := goConfig()
	stranger.Certificates = []tls.Certificate{strangersCert(t)}
	for _, c := range []struct {
		mode   string
		config *tls.Config
		ok     bool
		asked  bool // the certificate arrived
	}{
		{"none", known, true, false},
		{"request", anonymous, true, false},
		{"request", stranger, true, true},
		{"require-any", anonymous, false, false},
		{"require-any", stranger, true, true},
		{"verify-if-given", anonymous, true, false},
		{"verify-if-given", stranger, false, false},
		{"verify-if-given", known, true, true},
		{"require-and-verify", anonymous, false, false},
		{"require-and-verify", stranger, false, false},
		{"require-and-verify", known, true, true},
	} {
		args := []string{"-echo", "-client-auth", c.mode}
		if strings.Contains(c.mode, "verify") {
			args = append(args, "-client-ca", file("ca.pem"))
		}
		s := startServer(t, args...)
		raw, err := tls.Dial("tcp", s.addr, c.config)
		if err == nil {
			_, err = raw.Write([]byte("x"))
			if err == nil {
				_, err = raw.Read(make([]byte, 1))
			}
			raw.Close()
		}
		require.Equal(t, c.ok, err == nil, "%s: %v", c.mode, err)
		e := s.next(t)
		require.Equal(t, c.ok, e.Error == nil, "%s: %+v", c.mode, e.Error)
		if c.ok {
			require.Equal(t, c.asked, e.Negotiated.ClientSignatureScheme != "", c.mode)
		}
	}
}

func TestServeALPN(t *testing.T) {
	s := startServer(t, "-echo", "-alpn", "two, one")
	config := goConfig()
	config.NextProtos = []string{"one", "two"}
	c, err := tls.Dial("tcp", s.addr, config)
	require.NoError(t, err)
	require.Equal(t, "two", c.ConnectionState().NegotiatedProtocol, "the server's order")
	c.Close()
	require.Equal(t, "two", s.next(t).Negotiated.Protocol)

	config.NextProtos = []string{"three"}
	_, err = tls.Dial("tcp", s.addr, config)
	require.Error(t, err)
	require.Equal(t, "no application protocol", s.next(t).Error.Alert)
}

func TestServePolicy(t *testing.T) {
	s := startServer(t, "-policy", "20250414") // TLS 1.3 with P-384 only
	require.Equal(t, "20250414", func() string {
		config := goConfig()
		config.CurvePreferences = []tls.CurveID{tls.CurveP384}
		c, err := tls.Dial("tcp", s.addr, config)
		if err == nil {
			c.Close()
		}
		e := s.next(t)
		if e.Negotiated == nil {
			return e.Error.Message
		}
		return e.Negotiated.Policy
	}())
}

func TestServeFailures(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	cert, key := file("cert.pem"), file("key.pem")
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"-cert", file("nothing.pem"), "-key", key}, "nothing.pem: no such file"},
		{[]string{"-cert", file("junk.pem"), "-key", key}, "junk.pem"},
		{[]string{"-cert", cert, "-key", file("client-key.pem")}, "does not match"},
		{[]string{"-cert", cert, "-key", key, "-addr", busy.Addr().String()}, "address already in use"},
		{[]string{"-cert", cert, "-key", key, "-client-auth", "verify-if-given", "-client-ca", file("junk.pem")}, "no certificate in PEM form"},
	} {
		r := s2nRun(t, "", append([]string{"serve"}, c.args...)...)
		require.Equal(t, 1, r.code, "%q: %s", c.args, r.errs)
		require.Contains(t, r.errs, c.says)
		require.Empty(t, r.out)
		r = s2nRun(t, "", append([]string{"serve", "-json"}, c.args...)...)
		var e event
		require.NoError(t, json.Unmarshal([]byte(r.out), &e), r.out)
		require.Equal(t, "error", e.Event)
		require.Contains(t, e.Error.Message, c.says)
	}
}
