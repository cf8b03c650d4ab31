package s2n_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
)

// OpenSSL asks for a renegotiation in TLS 1.2, in both roles: it is refused, and
// the data before and after it arrives.
func TestRenegotiationIsRefusedWithoutLosingData(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	require.NoError(t, err, "openssl is needed: apt-get install openssl")
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		p := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(p, content, 0o600))
		return p
	}
	cert, key := file("cert.pem", pki().server.CertPEM), file("key.pem", pki().server.KeyPEM)

	t.Run("our client", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		addr := l.Addr().String()
		l.Close()
		// "r" on its input renegotiates.
		cmd := exec.Command(openssl, "s_server", "-accept", addr, "-cert", cert, "-key", key, "-tls1_2", "-naccept", "1")
		stdin, err := cmd.StdinPipe()
		require.NoError(t, err)
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
		config := clientConfig(t)
		config.Policy = tls12Only
		c := dialUntilUp(t, addr, config)
		defer c.Close()
		_, err = io.WriteString(stdin, "before\n")
		require.NoError(t, err)
		require.Equal(t, "before\n", readString(t, c, 7))
		_, err = io.WriteString(stdin, "r\n")
		require.NoError(t, err)
		time.Sleep(100 * time.Millisecond) // s_server takes one command a read
		_, err = io.WriteString(stdin, "after\n")
		require.NoError(t, err)
		got := make(chan string, 1)
		go func() {
			b := make([]byte, 6)
			n, err := io.ReadFull(c, b)
			got <- fmt.Sprint(string(b[:n]), err)
		}()
		select {
		case s := <-got:
			require.Equal(t, "after\n<nil>", s)
		case <-time.After(5 * time.Second):
			t.Fatal("no data after the refused renegotiation")
		}
		_, err = c.Write([]byte("from us\n"))
		require.NoError(t, err)
		waitFor(t, stdout, "from us")
	})

	t.Run("our server", func(t *testing.T) {
		config := serverConfig(t)
		config.Policy = tls12Only
		l, err := s2n.Listen("tcp", "127.0.0.1:0", config)
		require.NoError(t, err)
		defer l.Close()
		cmd := exec.Command(openssl, "s_client", "-connect", l.Addr().String(), "-tls1_2")
		stdin, err := cmd.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
		c, err := l.Accept()
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.(*s2n.Conn).Handshake())
		_, err = io.WriteString(stdin, "before\n")
		require.NoError(t, err)
		require.Equal(t, "before\n", readString(t, c, 7))
		_, err = io.WriteString(stdin, "R\n")
		require.NoError(t, err)
		// A client that gets no_renegotiation may end the connection; OpenSSL does. It must end it, not we.
		require.NoError(t, c.SetReadDeadline(time.Now().Add(5*time.Second)))
		_, err = c.Read(make([]byte, 1))
		require.Error(t, err)
		t.Logf("after the refusal: %v", err)
	})
}

func dialUntilUp(t testing.TB, addr string, config *s2n.Config) *s2n.Conn {
	t.Helper()
	var err error
	for range 100 {
		var c *s2n.Conn
		if c, err = s2n.Dial("tcp", addr, config); err == nil {
			return c
		}
		time.Sleep(20 * time.Millisecond)
	}
	require.NoError(t, err)
	return nil
}

func waitFor(t testing.TB, r io.Reader, want string) {
	t.Helper()
	found := make(chan bool, 1)
	go func() {
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			if strings.Contains(lines.Text(), want) {
				found <- true
				return
			}
		}
		found <- false
	}()
	select {
	case ok := <-found:
		require.True(t, ok, "the peer ended without %q", want)
	case <-time.After(5 * time.Second):
		t.Fatalf("the peer did not show %q", want)
	}
}
