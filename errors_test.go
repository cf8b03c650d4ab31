package s2n_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
	"github.com/s2n-go/s2n/cshim"
	"github.com/s2n-go/s2n/internal/testcert"
)

// Every code that the linked s2n has: a name, a message, a type, and an alert that RFC 8446 or 5246 defines.
func TestEveryErrorCode(t *testing.T) {
	codes := cshim.ErrorCodes()
	require.Greater(t, len(codes), 250)
	defined := map[uint8]bool{
		10: true, 20: true, 22: true, 40: true, 42: true, 43: true, 44: true, 45: true, 46: true, 47: true, 48: true, 49: true,
		50: true, 51: true, 70: true, 71: true, 80: true, 86: true, 109: true, 110: true, 112: true, 113: true, 115: true, 116: true, 120: true,
	}
	seen := map[string]bool{}
	for _, code := range codes {
		name, message := cshim.ErrorName(code), cshim.ErrorMessage(code)
		require.True(t, strings.HasPrefix(name, "S2N_ERR_"), "%d: %q", code, name)
		require.False(t, seen[name], name)
		seen[name] = true
		require.NotEmpty(t, message, name)
		require.NotContains(t, message, "\n", name)
		kind := s2n.KindOf(code)
		require.NotZero(t, kind, name)
		require.NotContains(t, kind.String(), "Kind(", name)
		for _, version := range []int32{33, 34} {
			alert := cshim.ErrorAlert(code, 0, version)
			require.True(t, defined[alert], "%s: alert %d", name, alert)
			require.NotContains(t, s2n.Alert(alert).Error(), "alert(", name)
		}
		switch cshim.ErrorType(code) {
		case cshim.TypeOK, cshim.TypeBlocked: // never an error of a caller's
		case cshim.TypeIO, cshim.TypeClosed, cshim.TypeAlert, cshim.TypeProto, cshim.TypeInternal, cshim.TypeUsage:
		default:
			t.Errorf("%s has the unknown type %d", name, cshim.ErrorType(code))
		}
	}
	// What the sources name must exist in the linked s2n.
	for _, name := range s2n.NamesInTables() {
		require.True(t, seen[name], "errors.go names %s, which s2n does not have", name)
	}
}

// The kinds and alerts that callers and peers depend on.
func TestErrorKinds(t *testing.T) {
	byName := map[string]int32{}
	for _, code := range cshim.ErrorCodes() {
		byName[cshim.ErrorName(code)] = code
	}
	for name, want := range map[string]struct {
		kind  s2n.Kind
		alert uint8 // in TLS 1.3
	}{
		"S2N_ERR_CERT_UNTRUSTED":               {s2n.KindCertificate, 48},
		"S2N_ERR_CERT_EXPIRED":                 {s2n.KindCertificate, 45},
		"S2N_ERR_CERT_NOT_YET_VALID":           {s2n.KindCertificate, 45},
		"S2N_ERR_CERT_REVOKED":                 {s2n.KindCertificate, 44},
		"S2N_ERR_CERT_INTENT_INVALID":          {s2n.KindCertificate, 43},
		"S2N_ERR_CERT_TYPE_UNSUPPORTED":        {s2n.KindCertificate, 43},
		"S2N_ERR_DECODE_CERTIFICATE":           {s2n.KindCertificate, 42},
		"S2N_ERR_MISSING_CLIENT_CERT":          {s2n.KindCertificate, 116},
		"S2N_ERR_NO_APPLICATION_PROTOCOL":      {s2n.KindProtocol, 120},
		"S2N_ERR_CIPHER_NOT_SUPPORTED":         {s2n.KindProtocol, 40},
		"S2N_ERR_ECDHE_UNSUPPORTED_CURVE":      {s2n.KindProtocol, 40},
		"S2N_ERR_PROTOCOL_VERSION_UNSUPPORTED": {s2n.KindProtocol, 70},
		"S2N_ERR_BAD_KEY_SHARE":                {s2n.KindProtocol, 47},
		"S2N_ERR_DUPLICATE_EXTENSION":          {s2n.KindProtocol, 47},
		"S2N_ERR_MISSING_EXTENSION":            {s2n.KindProtocol, 109},
		"S2N_ERR_UNSUPPORTED_EXTENSION":        {s2n.KindProtocol, 110},
		"S2N_ERR_DECRYPT":                      {s2n.KindProtocol, 20},
		"S2N_ERR_BAD_MESSAGE":                  {s2n.KindProtocol, 10},
		"S2N_ERR_ALERT":                        {s2n.KindAlert, 0},
		"S2N_ERR_CLOSED":                       {s2n.KindClosed, 0},
		"S2N_ERR_IO":                           {s2n.KindIO, 0},
		"S2N_ERR_ALLOC":                        {s2n.KindInternal, 80},
		"S2N_ERR_INVALID_SECURITY_POLICY":      {s2n.KindConfig, 0},
		"S2N_ERR_NULL":                         {s2n.KindInternal, 80},
	} {
		code, ok := byName[name]
		require.True(t, ok, name)
		require.Equal(t, want.kind, s2n.KindOf(code), name)
		if want.alert != 0 {
			require.Equal(t, want.alert, cshim.ErrorAlert(code, 0, 34), name)
		}
	}
	// RFC 5246 has no certificate_required.
	require.EqualValues(t, 40, cshim.ErrorAlert(byName["S2N_ERR_MISSING_CLIENT_CERT"], 0, 33))
}

func TestErrorText(t *testing.T) {
	inner := errors.New("inner")
	for want, e := range map[string]*s2n.Error{
		"s2n: read: inner":                        {Op: "read", Err: inner},
		"s2n: dial: it failed":                    {Op: "dial", Message: "it failed"},
		"s2n: dial: it failed: inner":             {Op: "dial", Message: "it failed", Err: inner},
		"s2n: dial: it failed (S2N_ERR_X)":        {Op: "dial", Message: "it failed", Name: "S2N_ERR_X"},
		"s2n: dial: it failed: inner (S2N_ERR_X)": {Op: "dial", Message: "it failed", Name: "S2N_ERR_X", Err: inner},
	} {
		require.EqualError(t, e, want)
		require.Equal(t, e.Err, errors.Unwrap(e))
	}
	require.Equal(t, "Kind(0)", s2n.Kind(0).String())
	require.Equal(t, "Kind(99)", s2n.Kind(99).String())
	for k := s2n.KindIO; k <= s2n.KindInternal; k++ {
		require.NotContains(t, k.String(), "Kind(")
	}
	for a := range 256 {
		require.Equal(t, tls.AlertError(a).Error(), s2n.Alert(a).Error())
	}
}

func TestErrorIsNetError(t *testing.T) {
	var timeout net.Error
	require.ErrorAs(t, error(&s2n.Error{Op: "read", Err: os.ErrDeadlineExceeded}), &timeout)
	require.True(t, timeout.Timeout())
	require.False(t, timeout.Temporary()) //nolint:staticcheck // it is part of the interface
	require.ErrorAs(t, error(&s2n.Error{Op: "read", Err: context.DeadlineExceeded}), &timeout)
	require.True(t, timeout.Timeout())
	for _, err := range []error{nil, io.EOF, net.ErrClosed, syscall.ECONNRESET} {
		require.False(t, (&s2n.Error{Op: "read", Err: err}).Timeout())
	}
	require.ErrorIs(t, &s2n.Error{Err: &s2n.Error{Err: io.ErrUnexpectedEOF}}, io.ErrUnexpectedEOF)
}

// oneShot is a TCP server that does the same to each connection.
func oneShot(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return l.Addr().String()
}

// What a user sees when the usual things go wrong: what, where, and what to do; and errors.As finds what it should.
func TestWhatAUserSees(t *testing.T) {
	config := &s2n.Config{RootCAs: roots(t, pki().ca), ServerName: "localhost"}
	tlsServer := func(leaf *testcert.Leaf) string {
		return oneShot(t, func(c net.Conn) {
			_ = tls.Server(c, &tls.Config{Certificates: []tls.Certificate{leaf.TLS}}).Handshake()
			c.Close()
		})
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closedAddr := closed.Addr().String()
	closed.Close()
	drained := func(c net.Conn) { _, _ = io.Copy(io.Discard, c); c.Close() }
	dial := func(addr string) func() error {
		return func() error {
			_, err := s2n.Dial("tcp", addr, config)
			return err
		}
	}
	ssh := oneShot(t, func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.6\r\n"); drained(c) })
	// The ClientHello must be read, else the kernel answers with a reset.
	readHello := func(c net.Conn) { _, _ = c.Read(make([]byte, 4096)) }
	short := oneShot(t, func(c net.Conn) { readHello(c); _, _ = io.WriteString(c, "no"); c.Close() })
	atOnce := oneShot(t, func(c net.Conn) { readHello(c); c.Close() })
	reset := oneShot(t, func(c net.Conn) { readHello(c); _ = c.(*net.TCPConn).SetLinger(0); c.Close() })
	old := oneShot(t, func(c net.Conn) {
		_ = tls.Server(c, &tls.Config{Certificates: []tls.Certificate{pki().server.TLS}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}).Handshake()
		c.Close()
	})
	silent := oneShot(t, drained)
	other := testcert.New("other root").Issue(testcert.Options{}, "localhost")
	wrongName := pki().ca.Issue(testcert.Options{}, "other.example")
	expired := pki().ca.Issue(testcert.Options{NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(-24 * time.Hour)}, "localhost")

	for _, row := range []struct {
		name  string
		fail  func() error
		kind  s2n.Kind // 0: not an s2n.Error
		texts []string
		as    any
		is    error
	}{
		{"wrong PEM", func() error { _, err := s2n.X509KeyPair([]byte("hello"), pki().server.KeyPEM); return err },
			s2n.KindCertificate, []string{"certificate", "PEM"}, nil, nil},
		{"no such file", func() error {
			_, err := s2n.LoadX509KeyPair("/nonexistent/cert.pem", "/nonexistent/key.pem")
			return err
		},
			s2n.KindConfig, []string{"/nonexistent/cert.pem", "no such file"}, nil, os.ErrNotExist},
		{"wrong host", dial(tlsServer(wrongName)), s2n.KindCertificate, []string{"localhost", "other.example"}, new(x509.HostnameError), nil},
		{"untrusted issuer", dial(tlsServer(other)), s2n.KindCertificate, []string{"unknown authority", "RootCAs"}, new(x509.UnknownAuthorityError), nil},
		{"expired", dial(tlsServer(expired)), s2n.KindCertificate, []string{"expired", expired.Cert.NotAfter.UTC().Format(time.RFC3339)}, new(x509.CertificateInvalidError), nil},
		{"port closed", dial(closedAddr), 0, []string{closedAddr, "connection refused"}, new(*net.OpError), syscall.ECONNREFUSED},
		{"a plain HTTP server", dial(plain.Listener.Addr().String()), s2n.KindProtocol, []string{plain.Listener.Addr().String(), "does not speak TLS", "right port"}, new(tls.RecordHeaderError), nil},
		{"an SSH server", dial(ssh), s2n.KindProtocol, []string{"does not speak TLS", "right port"}, new(tls.RecordHeaderError), nil},
		{"two bytes and the end", dial(short), s2n.KindIO, []string{short, "unexpected EOF", "does it speak TLS"}, nil, io.ErrUnexpectedEOF},
		{"closes at once", dial(atOnce), s2n.KindIO, []string{atOnce, "unexpected EOF", "does it speak TLS"}, nil, io.ErrUnexpectedEOF},
		{"resets at once", dial(reset), s2n.KindIO, []string{"connection reset"}, new(*net.OpError), syscall.ECONNRESET},
		{"TLS 1.1 at most", dial(old), s2n.KindAlert, []string{"protocol version"}, new(s2n.Alert), nil},
		{"silent server", func() error {
			_, err := s2n.DialWithDialer(&net.Dialer{Timeout: 100 * time.Millisecond}, "tcp", silent, config)
			return err
		}, s2n.KindIO, []string{silent, "time ran out"}, new(net.Error), os.ErrDeadlineExceeded},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := row.fail()
			require.Error(t, err)
			t.Logf("%v", err)
			require.NotContains(t, err.Error(), "\n")
			for _, text := range row.texts {
				require.ErrorContains(t, err, text)
			}
			if e := new(s2n.Error); row.kind != 0 {
				require.ErrorAs(t, err, &e)
				require.Equal(t, row.kind, e.Kind)
			}
			if row.as != nil {
				require.ErrorAs(t, err, row.as)
			}
			if row.is != nil {
				require.ErrorIs(t, err, row.is)
			}
		})
	}
}

// The first bytes are in the tls.RecordHeaderError, with the connection, as crypto/tls has them.
func TestRecordHeaderError(t *testing.T) {
	for _, hello := range []string{"GET / HTTP/1.1\r\n\r\n", "SSH-2.0-x\r\n", "EHLO example.com\r\n", "\x00\x00\x00\x00\x00\x00"} {
		a, b := tcpPair(t)
		reference, c := tcpPair(t)
		for _, conn := range []net.Conn{a, reference} {
			_, err := io.WriteString(conn, hello)
			require.NoError(t, err)
		}
		var want, got tls.RecordHeaderError
		require.ErrorAs(t, tls.Server(c, goServerConfig()).Handshake(), &want)
		server := s2n.Server(b, serverConfig(t))
		err := server.Handshake()
		require.ErrorAs(t, err, &got)
		require.Equal(t, want.RecordHeader, got.RecordHeader)
		require.Equal(t, b, got.Conn)
		require.Equal(t, want.Msg, got.Msg)
		e := new(s2n.Error)
		require.ErrorAs(t, err, &e)
		require.Equal(t, s2n.KindProtocol, e.Kind)
		// Nothing was sent, so that a server may answer in the peer's own protocol.
		_, err = io.WriteString(got.Conn, "answer")
		require.NoError(t, err)
		answer := make([]byte, 6)
		_, err = io.ReadFull(a, answer)
		require.NoError(t, err)
		require.Equal(t, "answer", string(answer))
		server.Close()
	}
}

// A close_notify instead of an answer is no clean end either: a Read that runs the handshake must not return io.EOF.
func TestCloseNotifyInHandshake(t *testing.T) {
	a, b := tcpPair(t)
	client := s2n.Client(a, clientConfig(t))
	go func() {
		_, _ = b.Read(make([]byte, 4096))
		_, _ = b.Write([]byte{21, 3, 3, 0, 2, 1, 0}) // warning, close_notify
	}()
	_, err := client.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.NotErrorIs(t, err, io.EOF)
	require.NoError(t, client.Close())
}

// A client that speaks HTTP to net/http over our Listener. crypto/tls's gets "400 Bad Request" from
// net/http, which looks for *tls.Conn; over any other listener the connection is closed.
func TestPlainHTTPToOurServer(t *testing.T) {
	l, err := s2n.Listen("tcp", "127.0.0.1:0", serverConfig(t))
	require.NoError(t, err)
	var logged strings.Builder
	server := &http.Server{Handler: http.NotFoundHandler(), ErrorLog: log.New(&logged, "", 0)}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	_, err = http.Get("http://" + l.Addr().String())
	require.Error(t, err)
	t.Logf("the client sees: %v", err)
	require.NoError(t, server.Close())
	require.ErrorIs(t, <-done, http.ErrServerClosed)
}
