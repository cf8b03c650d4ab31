package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n/internal/testcert"
)

// strangersCert is a client certificate of another authority.
func strangersCert(t *testing.T) tls.Certificate {
	t.Helper()
	return testcert.New("another root").Issue(testcert.Options{}, "stranger").TLS
}

// goServer gives each connection to handle, one at a time.
func goServer(t *testing.T, config *tls.Config, handle func(*tls.Conn)) (addr string) {
	t.Helper()
	config.Certificates = []tls.Certificate{leaf.TLS}
	l, err := tls.Listen("tcp", "127.0.0.1:0", config)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if c := c.(*tls.Conn); c.Handshake() == nil {
				handle(c)
			}
			c.Close()
		}
	}()
	return l.Addr().String()
}

func echoConn(c *tls.Conn) { _, _ = io.Copy(c, c) }

// connect's standard output is the peer's bytes and nothing else.
func TestConnectPipes(t *testing.T) {
	addr := goServer(t, &tls.Config{}, echoConn)
	message := strings.Repeat("0123456789abcdef", 100_000)
	r := s2nRun(t, message, "connect", "-ca", file("ca.pem"), addr)
	require.Zero(t, r.code, r.errs)
	require.Equal(t, len(message), len(r.out))
	require.Equal(t, message, r.out)
	require.Contains(t, r.errs, "TLS 1.3, TLS_AES_128_GCM_SHA256, X25519MLKEM768")

	r = s2nRun(t, "x", "connect", "-json", "-ca", file("ca.pem"), addr)
	require.Zero(t, r.code, r.errs)
	require.Equal(t, "x", r.out)
	var e event
	require.NoError(t, json.Unmarshal([]byte(r.errs), &e), r.errs)
	require.Equal(t, "handshake", e.Event)
	require.Equal(t, "X25519MLKEM768", e.Negotiated.Group)
}

// The server ends first, while standard input stays open.
func TestConnectEndsWithThePeer(t *testing.T) {
	addr := goServer(t, &tls.Config{}, func(c *tls.Conn) { _, _ = io.WriteString(c, "bye") })
	cmd := exec.Command(binary, "connect", "-ca", file("ca.pem"), addr)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer in.Close()
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Equal(t, "bye", string(out))
}

// A stream that was cut is told apart from one that ended.
func TestConnectTellsOfACutStream(t *testing.T) {
	addr := goServer(t, &tls.Config{}, func(c *tls.Conn) {
		_, _ = io.WriteString(c, "half")
		_, _ = io.Copy(io.Discard, c) // a socket closed with bytes unread is reset, which is another thing
		_ = c.NetConn().Close()
	})
	r := s2nRun(t, "", "connect", "-ca", file("ca.pem"), addr)
	require.Equal(t, 1, r.code)
	require.Equal(t, "half", r.out)
	require.Contains(t, r.errs, "unexpected EOF")
}

func TestConnectGroups(t *testing.T) {
	for _, curve := range []tls.CurveID{tls.X25519MLKEM768, tls.SecP256r1MLKEM768, tls.SecP384r1MLKEM1024, tls.CurveP256, tls.CurveP384, tls.CurveP521} {
		addr := goServer(t, &tls.Config{CurvePreferences: []tls.CurveID{curve}}, echoConn)
		r := s2nRun(t, "", "connect", "-json", "-ca", file("ca.pem"), addr)
		require.Zero(t, r.code, r.errs)
		var e event
		require.NoError(t, json.Unmarshal([]byte(r.errs), &e), r.errs)
		require.Equal(t, strings.Replace(curve.String(), "CurveP", "P-", 1), e.Negotiated.Group)
		require.True(t, e.Negotiated.FIPS)
	}
}

func TestConnectGet(t *testing.T) {
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{leaf.TLS}})
	require.NoError(t, err)
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/a" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, "%s of %s?%s", r.Method, r.Host, r.URL.RawQuery)
	})}
	defer srv.Close()
	go func() { _ = srv.Serve(l) }()
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)

	r := s2nRun(t, "", "connect", "-ca", file("ca.pem"), "-servername", "localhost", "-get", "/a?b=c", addr)
	require.Zero(t, r.code, r.errs)
	require.Equal(t, "GET of localhost:"+port+"?b=c", r.out)
	require.Contains(t, r.errs, "TLS 1.3")

	r = s2nRun(t, "", "connect", "-json", "-ca", file("ca.pem"), "-get", "/a", addr)
	require.Zero(t, r.code, r.errs)
	require.Empty(t, r.errs)
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	require.Len(t, lines, 2)
	var e event
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &e))
	require.Equal(t, 200, e.Status)
	require.Contains(t, e.Body, "GET of 127.0.0.1:")

	r = s2nRun(t, "", "connect", "-ca", file("ca.pem"), "-get", "/b", addr)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.errs, "404")
}

func TestConnectClientCertificateAndALPN(t *testing.T) {
	seen := make(chan tls.ConnectionState, 1)
	addr := goServer(t, &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.Pool(), NextProtos: []string{"two"}},
		func(c *tls.Conn) { seen <- c.ConnectionState() })
	r := s2nRun(t, "", "connect", "-json", "-ca", file("ca.pem"), "-cert", file("client.pem"), "-key", file("client-key.pem"), "-alpn", "one,two", addr)
	require.Zero(t, r.code, r.errs)
	state := <-seen
	require.Equal(t, client.Cert.Raw, state.PeerCertificates[0].Raw)
	require.Equal(t, "two", state.NegotiatedProtocol)
	var e event
	require.NoError(t, json.Unmarshal([]byte(r.errs), &e), r.errs)
	require.Equal(t, "ecdsa_secp256r1_sha256", e.Negotiated.ClientSignatureScheme)
	require.Equal(t, "two", e.Negotiated.Protocol)
}

func TestConnectOpenSSL(t *testing.T) {
	need(t, "openssl")
	for flag, version := range map[string]string{"-tls1_2": "TLS 1.2", "-tls1_3": "TLS 1.3"} {
		cmd := exec.Command("openssl", "s_server", "-accept", "127.0.0.1:0", "-rev", "-cert", file("cert.pem"), "-key", file("key.pem"), flag)
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		addr := ""
		for in := bufio.NewScanner(stdout); addr == "" && in.Scan(); {
			if after, ok := strings.CutPrefix(in.Text(), "ACCEPT "); ok {
				addr = after
			}
		}
		require.NotEmpty(t, addr)
		go func() { _, _ = io.Copy(io.Discard, stdout) }()

		// -rev sends each line back to front, and "CLOSE" ends.
		r := s2nRun(t, "abc\nCLOSE\n", "connect", "-ca", file("ca.pem"), addr)
		require.Zero(t, r.code, r.errs)
		require.Contains(t, r.errs, version)
		require.Contains(t, r.out, "cba\n")
	}
}

func TestConnectInterrupted(t *testing.T) {
	ended := make(chan error, 1)
	addr := goServer(t, &tls.Config{}, func(c *tls.Conn) {
		_, _ = io.WriteString(c, "ready")
		_, err := io.Copy(io.Discard, c)
		ended <- err
	})
	cmd := exec.Command(binary, "connect", "-ca", file("ca.pem"), addr)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer in.Close()
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = io.ReadFull(stdout, make([]byte, 5))
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	select {
	case err := <-ended:
		require.NoError(t, err, "the server got a close_notify")
	case <-time.After(20 * time.Second):
		require.Fail(t, "the connection is still open")
	}
	_ = cmd.Wait()
	require.Equal(t, 130, cmd.ProcessState.ExitCode(), errs.String())
}

func TestConnectFailures(t *testing.T) {
	good := goServer(t, &tls.Config{}, echoConn)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closed.Close()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer plain.Close()
	go func() {
		for {
			c, err := plain.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "220 mail.example ESMTP\r\n")
			_, _ = io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	for name, c := range map[string]struct {
		args []string
		says string
		kind string
	}{
		"port closed":      {[]string{"-ca", file("ca.pem"), closed.Addr().String()}, "connection refused", ""},
		"not TLS":          {[]string{"-ca", file("ca.pem"), plain.Addr().String()}, "does not speak TLS; is this the right port?", "protocol"},
		"untrusted issuer": {[]string{"-ca", file("other.pem"), good}, "signed by unknown authority", "certificate"},
		"no root given":    {[]string{good}, "name its root with -ca", "certificate"},
		"wrong host":       {[]string{"-ca", file("ca.pem"), "-servername", "else.example", good}, "not else.example", "certificate"},
		"no such root":     {[]string{"-ca", file("nothing.pem"), good}, "-ca: open", ""},
		"wrong PEM":        {[]string{"-ca", file("junk.pem"), good}, "no certificate in PEM form", ""},
		"wrong key PEM":    {[]string{"-ca", file("ca.pem"), "-cert", file("client.pem"), "-key", file("junk.pem"), good}, "junk.pem", "certificate"},
	} {
		r := s2nRun(t, "", append([]string{"connect"}, c.args...)...)
		require.Equal(t, 1, r.code, name)
		require.Contains(t, r.errs, c.says, name)
		require.Empty(t, r.out, name)
		require.Equal(t, 1, strings.Count(r.errs, "\n"), "%s: one line: %s", name, r.errs)

		r = s2nRun(t, "", append([]string{"connect", "-json"}, c.args...)...)
		var e event
		require.NoError(t, json.Unmarshal([]byte(r.errs), &e), "%s: %s", name, r.errs)
		require.Equal(t, "error", e.Event)
		require.Contains(t, e.Error.Message, c.says)
		require.Equal(t, c.kind, e.Error.Kind, name)
	}
}
