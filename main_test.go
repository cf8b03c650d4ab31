package s2n_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
	"github.com/s2n-go/s2n/cshim"
	"github.com/s2n-go/s2n/internal/testcert"
)

// TestMain fails the package if, after all tests, a C object is alive that nobody
// can reach, or an error waits in AWS-LC's queue for whoever comes next.
func TestMain(m *testing.M) {
	if addr := os.Getenv(childDial); addr != "" {
		dialFromEnvironment(addr)
		return
	}
	if os.Getenv(childInit) != "" {
		firstUse()
		return
	}
	code := m.Run()
	if code == 0 {
		if err := leftovers(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func leftovers() error {
	var s cshim.MemStats
	for range 100 {
		runtime.GC()
		if s = cshim.GetMemStats(); s.Conns == 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if s.Conns != 0 {
		return fmt.Errorf("%d connections are still alive in C", s.Conns)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if cshim.ErrorQueueDepth() != 0 {
		return errors.New("an AWS-LC error is left in the queue")
	}
	return nil
}

// Set in a child that TestMain turns into something else than a test.
const (
	childDial = "S2N_TEST_DIAL" // dialFromEnvironment
	childInit = "S2N_TEST_INIT" // firstUse
)

// runChild runs this test binary anew with these in its environment, and returns what it says.
func runChild(t *testing.T, env ...string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}

// pki is what most tests need, made once.
var pki = sync.OnceValue(func() (p struct {
	ca     *testcert.Authority
	server *testcert.Leaf
	client *testcert.Leaf
	rsa    *testcert.Leaf
}) {
	p.ca = testcert.New("test root")
	p.server = p.ca.Issue(testcert.Options{}, "localhost", "127.0.0.1", "::1")
	p.client = p.ca.Issue(testcert.Options{}, "client")
	p.rsa = p.ca.Issue(testcert.Options{Key: testcert.NewRSAKey(2048)}, "localhost", "127.0.0.1")
	return p
})

func pair(t testing.TB, l *testcert.Leaf) s2n.Certificate {
	t.Helper()
	c, err := s2n.X509KeyPair(l.CertPEM, l.KeyPEM)
	require.NoError(t, err)
	return c
}

func roots(t testing.TB, a *testcert.Authority) *s2n.CertPool {
	t.Helper()
	p := s2n.NewCertPool()
	require.True(t, p.AppendCertsFromPEM(a.PEM))
	return p
}

func serverConfig(t testing.TB) *s2n.Config {
	return &s2n.Config{Certificates: []s2n.Certificate{pair(t, pki().server)}, ClientCAs: roots(t, pki().ca)}
}

func clientConfig(t testing.TB) *s2n.Config {
	return &s2n.Config{RootCAs: roots(t, pki().ca), ServerName: "localhost"}
}

func goServerConfig() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{pki().server.TLS}, ClientCAs: pki().ca.Pool()}
}

func goClientConfig() *tls.Config {
	return &tls.Config{RootCAs: pki().ca.Pool(), ServerName: "localhost"}
}

// tcpPair connects two ends over loopback.
func tcpPair(t testing.TB) (client, server net.Conn) {
	t.Helper()
	return sockPair(t, "tcp", "127.0.0.1:0")
}

func sockPair(t testing.TB, network, addr string) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen(network, addr)
	require.NoError(t, err)
	defer l.Close()
	got := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			close(got)
			return
		}
		got <- c
	}()
	client, err = net.Dial(network, l.Addr().String())
	require.NoError(t, err)
	server = <-got
	require.NotNil(t, server)
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// tlsConn is what s2n.Conn and tls.Conn share.
type tlsConn interface {
	net.Conn
	Handshake() error
	CloseWrite() error
	ConnectionState() tls.ConnectionState
}

// handshakeBoth runs both sides and returns their errors.
func handshakeBoth(client, server tlsConn) (clientErr, serverErr error) {
	done := make(chan error, 1)
	go func() { done <- server.Handshake() }()
	clientErr = client.Handshake()
	if clientErr != nil {
		client.Close()
	}
	serverErr = <-done
	return clientErr, serverErr
}

// echo answers with what comes until the stream ends.
func echo(c net.Conn) {
	defer c.Close()
	_, _ = io.Copy(c, c)
}

func goServer(c net.Conn) tlsConn { return tls.Server(c, goServerConfig()) }
func goClient(c net.Conn) tlsConn { return tls.Client(c, goClientConfig()) }

// otherCA is one that nobody trusts.
var otherCA = sync.OnceValue(func() *testcert.Authority { return testcert.New("other root") })
