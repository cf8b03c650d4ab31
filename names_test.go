package s2n_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
	"github.com/s2n-go/s2n/internal/testcert"
)

// nameCerts are leaves whose names are hard to judge.
func nameCerts() map[string]*testcert.Leaf {
	issue := func(change func(*x509.Certificate), names ...string) *testcert.Leaf {
		return pki().ca.Issue(testcert.Options{Change: change}, names...)
	}
	return map[string]*testcert.Leaf{
		"usual":       issue(nil, "example.com", "www.example.com", "127.0.0.1", "::1"),
		"wildcard":    issue(nil, "*.example.com"),
		"wild middle": issue(nil, "www.*.example.com", "w*.example.com"),
		"wild top":    issue(nil, "*", "*.com"),
		"wild IP":     issue(nil, "*.0.0.1"),
		"IP as DNS":   issue(func(c *x509.Certificate) { c.DNSNames = []string{"127.0.0.1", "::1"} }),
		"CN only":     issue(func(c *x509.Certificate) { c.Subject.CommonName = "example.com" }),
		"CN is IP":    issue(func(c *x509.Certificate) { c.Subject.CommonName = "127.0.0.1" }),
		"CN and SAN":  issue(func(c *x509.Certificate) { c.Subject.CommonName = "cn.example.com" }, "san.example.com"),
		"dot":         issue(func(c *x509.Certificate) { c.DNSNames = []string{"example.com."} }),
		"upper":       issue(nil, "EXAMPLE.com"),
		"IDN":         issue(nil, "xn--bcher-kva.example", "*.xn--bcher-kva.example"),
		"underscore":  issue(nil, "_dmarc.example.com", "a_b.example.com"),
		"long label":  issue(nil, strings.Repeat("a", 63)+".example.com"),
		"no name":     issue(nil),
		"mapped":      issue(nil, "::ffff:10.0.0.1", "10.0.0.1"),
	}
}

var hardNames = []string{
	"example.com", "EXAMPLE.COM", "Example.Com", "example.com.", "example.com..", ".example.com", "example",
	"www.example.com", "WWW.example.com", "a.b.example.com", "*.example.com", "www.x.example.com",
	"127.0.0.1", "127.0.0.1.", "0177.0.0.1", "1.0.0.1", "[::1]", "::1", "[127.0.0.1]", "::ffff:127.0.0.1", "10.0.0.1", "::ffff:10.0.0.1",
	"0:0:0:0:0:0:0:1", "fe80::1%eth0", "cn.example.com", "san.example.com", "com", "localhost",
	"xn--bcher-kva.example", "www.xn--bcher-kva.example", "XN--BCHER-KVA.example", "_dmarc.example.com", "a_b.example.com",
	strings.Repeat("a", 63) + ".example.com", strings.Repeat("a", 64) + ".example.com", "-.example.com", "a..example.com", ".",
}

// Every name against every certificate: x509.Certificate.VerifyHostname's verdict, and its error.
func TestNamesAgainstCertificates(t *testing.T) {
	pool := roots(t, pki().ca)
	accepted, refused := 0, 0
	for kind, leaf := range nameCerts() {
		server := &tls.Config{Certificates: []tls.Certificate{leaf.TLS}}
		for _, name := range hardNames {
			reference := leaf.Cert.VerifyHostname(name)
			a, b := net.Pipe()
			client := s2n.Client(a, &s2n.Config{RootCAs: pool, ServerName: name})
			clientErr, _ := handshakeBoth(client, tls.Server(b, server))
			if reference == nil {
				accepted++
				require.NoErrorf(t, clientErr, "%s: %q", kind, name)
				require.NoErrorf(t, client.VerifyHostname(name), "%s: %q", kind, name)
			} else {
				refused++
				require.Errorf(t, clientErr, "%s: %q", kind, name)
				var verify *tls.CertificateVerificationError
				require.ErrorAsf(t, clientErr, &verify, "%s: %q", kind, name)
				require.Equal(t, leaf.Cert.Raw, verify.UnverifiedCertificates[0].Raw)
				var host x509.HostnameError
				require.ErrorAsf(t, clientErr, &host, "%s: %q", kind, name)
				require.Equal(t, reference, error(host))
				require.Contains(t, clientErr.Error(), reference.Error())
				var e *s2n.Error
				require.ErrorAs(t, clientErr, &e)
				require.Equal(t, s2n.KindCertificate, e.Kind)
				require.Equal(t, s2n.Alert(42), e.Alert) // bad_certificate
			}
			b.Close() // first: a close_notify to a pipe waits for its reader
			client.Close()
		}
	}
	require.Greater(t, accepted, 20)
	require.Greater(t, refused, 200)
}

// sentName runs a client against a crypto/tls server and returns the name of its ClientHello.
func sentName(t *testing.T, client func(net.Conn) tlsConn) string {
	t.Helper()
	names := make(chan string, 1)
	config := goServerConfig()
	config.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		names <- h.ServerName
		return nil, nil
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	_, _ = handshakeBoth(client(a), tls.Server(b, config))
	select {
	case name := <-names:
		return name
	default:
		t.Fatalf("the server saw no ClientHello")
		return ""
	}
}

// SNI says what crypto/tls's client says: no IP address, no brackets, no dot at the end.
func TestServerNameSent(t *testing.T) {
	for _, name := range append(hardNames, "...", "example.com:443", "localhost", "[localhost]", "fe80::1%lo", "[fe80::1%lo]", "1.2.3") {
		reference := sentName(t, func(c net.Conn) tlsConn {
			return tls.Client(c, &tls.Config{InsecureSkipVerify: true, ServerName: name})
		})
		got := sentName(t, func(c net.Conn) tlsConn {
			return s2n.Client(c, &s2n.Config{InsecureSkipVerify: true, ServerName: name})
		})
		require.Equalf(t, reference, got, "%q", name)
	}
	require.Empty(t, sentName(t, func(c net.Conn) tlsConn { return s2n.Client(c, &s2n.Config{InsecureSkipVerify: true}) }))
}

// The server's view of the name, ConnectionState.ServerName.
func TestServerNameSeen(t *testing.T) {
	for name, want := range map[string]string{"localhost": "localhost", "127.0.0.1": "", "LocalHost": "LocalHost"} {
		a, b := tcpPair(t)
		config := clientConfig(t)
		config.ServerName = name
		client, server := s2n.Client(a, config), s2n.Server(b, serverConfig(t))
		clientErr, serverErr := handshakeBoth(client, server)
		require.NoError(t, clientErr)
		require.NoError(t, serverErr)
		require.Equal(t, want, server.ConnectionState().ServerName)
		require.Equal(t, want, client.ConnectionState().ServerName)
	}
}

// Names that no C string or host name can hold are refused before a byte is sent.
func TestImpossibleNames(t *testing.T) {
	for what, name := range map[string]string{
		"NUL":              "localhost\x00.evil.example",
		"NUL at the end":   "localhost\x00",
		"newline":          "localhost\n",
		"blank":            "local host",
		"delete":           "localhost\x7f",
		"not ASCII":        "bücher.example",
		"invalid UTF-8":    "local\xffhost",
		"256 bytes":        strings.Repeat("a.", 128),
		"a whole kilobyte": strings.Repeat("a", 1024),
	} {
		t.Run(what, func(t *testing.T) {
			config := clientConfig(t)
			config.ServerName = name
			var e *s2n.Error
			require.ErrorAs(t, config.Validate(), &e)
			require.Equal(t, s2n.KindConfig, e.Kind)
			require.Contains(t, e.Message, "ServerName")

			a, b := net.Pipe()
			defer a.Close()
			require.ErrorAs(t, s2n.Client(a, config).Handshake(), &e)
			require.Equal(t, s2n.KindConfig, e.Kind)
			require.NoError(t, b.SetReadDeadline(time.Now().Add(-time.Second)))
			n, _ := b.Read(make([]byte, 1))
			require.Zero(t, n)
		})
	}
	// 255 bytes are the most, and can be sent.
	name := strings.Repeat("a.", 127) + "a"
	require.Equal(t, name, sentName(t, func(c net.Conn) tlsConn {
		return s2n.Client(c, &s2n.Config{InsecureSkipVerify: true, ServerName: name})
	}))
}

// Dial takes the name from the address; a Config's own name wins.
func TestDialName(t *testing.T) {
	serve := func(addr string) (port string) {
		l, err := tls.Listen("tcp", addr, goServerConfig())
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go echo(c)
			}
		}()
		_, port, err = net.SplitHostPort(l.Addr().String())
		require.NoError(t, err)
		return port
	}
	port := serve("127.0.0.1:0")
	dial := func(host, name string) error {
		c, err := s2n.Dial("tcp", net.JoinHostPort(host, port), &s2n.Config{RootCAs: roots(t, pki().ca), ServerName: name})
		if err == nil {
			require.NoError(t, c.Close())
		}
		return err
	}
	require.NoError(t, dial("127.0.0.1", ""))
	require.NoError(t, dial("localhost", ""))
	require.NoError(t, dial("127.0.0.1", "localhost"))
	var host x509.HostnameError
	require.ErrorAs(t, dial("localhost", "other.example"), &host)
	require.Equal(t, "other.example", host.Host)

	// The Config that Dial was given is not changed by it: the next address has its own name.
	shared := &s2n.Config{RootCAs: roots(t, pki().ca)}
	for _, h := range []string{"localhost", "127.0.0.1"} {
		c, err := s2n.Dial("tcp", net.JoinHostPort(h, port), shared)
		require.NoError(t, err)
		require.NoError(t, c.Close())
	}
	require.Empty(t, shared.ServerName)

	port = serve("127.0.0.2:0") // with a certificate for 127.0.0.1
	require.ErrorAs(t, dial("127.0.0.2", ""), &host)
	require.Equal(t, "127.0.0.2", host.Host)
}

// A client without a name has nothing to verify, and says so before it sends.
func TestNoName(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	err := s2n.Client(a, &s2n.Config{RootCAs: roots(t, pki().ca)}).Handshake()
	require.ErrorContains(t, err, "either ServerName or InsecureSkipVerify must be set")
	reference := tls.Client(a, &tls.Config{}).Handshake()
	require.ErrorContains(t, reference, "either ServerName or InsecureSkipVerify must be specified")
}

// VerifyHostname after the handshake.
func TestVerifyHostnameLater(t *testing.T) {
	a, b := tcpPair(t)
	client, server := s2n.Client(a, clientConfig(t)), s2n.Server(b, serverConfig(t))
	require.ErrorContains(t, client.VerifyHostname("localhost"), "has not been made")
	clientErr, serverErr := handshakeBoth(client, server)
	require.NoError(t, clientErr)
	require.NoError(t, serverErr)
	require.NoError(t, client.VerifyHostname("127.0.0.1"))
	var host x509.HostnameError
	require.ErrorAs(t, client.VerifyHostname("other.example"), &host)
	require.ErrorContains(t, server.VerifyHostname("localhost"), "for clients")

	a, b = tcpPair(t)
	client = s2n.Client(a, &s2n.Config{InsecureSkipVerify: true})
	clientErr, serverErr = handshakeBoth(client, s2n.Server(b, serverConfig(t)))
	require.NoError(t, clientErr)
	require.NoError(t, serverErr)
	require.ErrorContains(t, client.VerifyHostname("localhost"), "InsecureSkipVerify")
	require.NotEmpty(t, client.ConnectionState().PeerCertificates)
	require.Empty(t, client.ConnectionState().VerifiedChains)
}
