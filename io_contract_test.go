package s2n_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
)

// within fails the test if f has not returned in d.
func within(t testing.TB, d time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(d):
		t.Fatalf("%s took longer than %s", what, d)
	}
}

func TestZeroLengthCalls(t *testing.T) {
	eachLink(t, linkOptions{}, func(t *testing.T, l *link) {
		n, err := l.ours.Read(nil)
		require.NoError(t, err)
		require.Zero(t, n)
		n, err = l.ours.Write(nil)
		require.NoError(t, err)
		require.Zero(t, n)
		_, err = l.peer.Write([]byte("x"))
		require.NoError(t, err)
		n, err = l.ours.Read([]byte{})
		require.NoError(t, err)
		require.Zero(t, n)
		require.Equal(t, "x", readString(t, l.ours, 1))
	})
}

// cutConn passes on what is written up to a number of bytes, and then ends the stream.
type cutConn struct {
	net.Conn
	mu   sync.Mutex
	left int // negative: no limit
}

func (c *cutConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left < 0 || len(b) <= c.left {
		if c.left >= 0 {
			c.left -= len(b)
		}
		return c.Conn.Write(b)
	}
	n, _ := c.Conn.Write(b[:c.left])
	c.left = 0
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	} else {
		_ = c.Conn.Close()
	}
	return n, net.ErrClosed
}

// A stream that ends without close_notify, after any byte of a record, is
// io.ErrUnexpectedEOF, and stays it.
func TestCutAfterAnyByteOfARecord(t *testing.T) {
	eachLink(t, linkOptions{}, func(t *testing.T, l *link) { _ = l }) // the links themselves work
	for _, role := range []string{"client", "server"} {
		for _, version := range []uint16{0x0303, 0x0304} {
			for cut := range 60 {
				var c *cutConn
				l := newLink(t, linkOptions{wrapPeer: func(conn net.Conn) net.Conn {
					c = &cutConn{Conn: conn, left: -1}
					return c
				}}, role, version, "go")
				_, err := l.peer.Write([]byte("whole"))
				require.NoError(t, err)
				require.Equal(t, "whole", readString(t, l.ours, 5))
				c.mu.Lock()
				c.left = cut
				c.mu.Unlock()
				// A record of 64 bytes or more, of which cut leave.
				_, err = l.peer.Write(make([]byte, 64))
				require.Error(t, err)
				for range 3 {
					n, err := l.ours.Read(make([]byte, 100))
					require.Zero(t, n)
					require.Equal(t, io.ErrUnexpectedEOF, err, "cut after %d bytes", cut)
				}
				l.ours.Close()
				l.peer.Close()
			}
		}
	}
}

func TestCutInTheHandshake(t *testing.T) {
	for _, role := range []string{"client", "server"} {
		for cut := 0; cut < 1500; cut += 37 {
			a, b := tcpPair(t)
			var ours *s2n.Conn
			peerConn := &cutConn{Conn: b, left: cut}
			var peer tlsConn
			if role == "client" {
				ours, peer = s2n.Client(a, clientConfig(t)), goServer(peerConn)
			} else {
				ours, peer = s2n.Server(a, serverConfig(t)), goClient(peerConn)
			}
			go func() { _ = peer.Handshake() }()
			err := ours.Handshake()
			if err == nil {
				// The peer's last flight was shorter than the cut: it cuts what follows.
				continue
			}
			require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%s cut after %d bytes", role, cut)
			ours.Close()
			b.Close()
		}
	}
}

func TestCloseNotifyIsEOF(t *testing.T) {
	eachLink(t, linkOptions{}, func(t *testing.T, l *link) {
		_, err := l.peer.Write([]byte("last words"))
		require.NoError(t, err)
		require.NoError(t, l.peer.Close())
		got, err := io.ReadAll(l.ours)
		require.NoError(t, err)
		require.Equal(t, "last words", string(got))
		for range 3 {
			_, err = l.ours.Read(make([]byte, 1))
			require.Equal(t, io.EOF, err)
		}
	})
}

func TestOurCloseIsEOFToThePeer(t *testing.T) {
	eachLink(t, linkOptions{}, func(t *testing.T, l *link) {
		_, err := l.ours.Write([]byte("last words"))
		require.NoError(t, err)
		require.NoError(t, l.ours.Close())
		got, err := io.ReadAll(l.peer)
		require.NoError(t, err)
		require.Equal(t, "last words", string(got))
	})
}

func TestHalfClose(t *testing.T) {
	megabyte := make([]byte, 1<<20)
	_, _ = rand.Read(megabyte)
	t.Run("ours", func(t *testing.T) {
		eachLink(t, linkOptions{}, func(t *testing.T, l *link) {
			require.NoError(t, l.ours.CloseWrite())
			go func() {
				_, _ = io.Copy(io.Discard, l.peer) // to our end: closing with unread bytes would reset the TCP connection
				_, _ = l.peer.Write(megabyte)
				_ = l.peer.Close()
			}()
			_, err := l.ours.Write([]byte("x"))
			require.ErrorContains(t, err, "protocol is shutdown")
			got, err := io.ReadAll(l.ours)
			require.NoError(t, err)
			require.True(t, bytes.Equal(megabyte, got))
		})
	})
	t.Run("theirs", func(t *testing.T) {
		eachLink(t, linkOptions{}, func(t *testing.T, l *link) {
			require.NoError(t, l.peer.CloseWrite())
			_, err := l.ours.Read(make([]byte, 1))
			require.Equal(t, io.EOF, err)
			go func() {
				_, err := l.ours.Write(megabyte)
				if err == nil {
					_ = l.ours.Close()
				}
			}()
			got, err := io.ReadAll(l.peer)
			require.NoError(t, err)
			require.True(t, bytes.Equal(megabyte, got))
		})
	})
}

func TestCloseWriteBeforeTheHandshake(t *testing.T) {
	a, _ := tcpPair(t)
	require.ErrorContains(t, s2n.Client(a, clientConfig(t)).CloseWrite(), "before the handshake")
}

func TestReadTimeoutLosesNothing(t *testing.T) {
	for _, transport := range []string{"tcp", "buffers"} {
		t.Run(transport, func(t *testing.T) {
			var held *holdConn
			o := linkOptions{wrapPeer: func(c net.Conn) net.Conn { held = &holdConn{Conn: c}; return held }}
			if transport == "buffers" {
				o.wrapOurs = func(c net.Conn) net.Conn { return struct{ net.Conn }{c} }
			}
			eachLink(t, o, func(t *testing.T, l *link) {
				held.hold()
				message := make([]byte, 40_000)
				_, _ = rand.Read(message)
				_, err := l.peer.Write(message)
				require.NoError(t, err)
				var got []byte
				// The bytes of the records come one small piece after each timeout.
				for len(got) < len(message) {
					held.release(1777)
					require.NoError(t, l.ours.SetReadDeadline(time.Now().Add(3*time.Millisecond)))
					b := make([]byte, 50_000)
					n, err := l.ours.Read(b)
					got = append(got, b[:n]...)
					if err != nil {
						var ne net.Error
						require.ErrorAs(t, err, &ne)
						require.True(t, ne.Timeout())
						require.ErrorIs(t, err, os.ErrDeadlineExceeded)
					}
				}
				require.True(t, bytes.Equal(message, got))
			})
		})
	}
}

// holdConn keeps what is written until it is released.
type holdConn struct {
	net.Conn
	mu      sync.Mutex
	holding bool
	held    []byte
}

func (c *holdConn) hold() { c.mu.Lock(); c.holding = true; c.mu.Unlock() }

func (c *holdConn) release(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n = min(n, len(c.held))
	_, _ = c.Conn.Write(c.held[:n])
	c.held = c.held[n:]
}

func (c *holdConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holding {
		c.held = append(c.held, b...)
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func TestWriteTimeoutIsForGood(t *testing.T) {
	eachLink(t, linkOptions{}, func(t *testing.T, l *link) {
		require.NoError(t, l.ours.SetWriteDeadline(time.Now().Add(50*time.Millisecond)))
		n, err := l.ours.Write(make([]byte, 64<<20)) // the peer does not read
		require.Less(t, n, 64<<20)
		var ne net.Error
		require.ErrorAs(t, err, &ne)
		require.True(t, ne.Timeout())
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.ErrorContains(t, err, "cannot be written to any more")
		require.NoError(t, l.ours.SetWriteDeadline(time.Time{}))
		go func() { _, _ = io.Copy(io.Discard, l.peer) }()
		for range 2 {
			_, again := l.ours.Write([]byte("x"))
			require.Equal(t, err, again)
		}
		// Reading is not touched by it.
		_, err = l.peer.Write([]byte("still here"))
		require.NoError(t, err)
		require.Equal(t, "still here", readString(t, l.ours, 10))
		// A stream that broke off is not ended as if it were whole.
		within(t, time.Second, "Close", func() { _ = l.ours.Close() })
	})
}

func TestPastDeadlines(t *testing.T) {
	eachLink(t, linkOptions{}, func(t *testing.T, l *link) {
		require.NoError(t, l.ours.SetReadDeadline(time.Now().Add(-time.Second)))
		_, err := l.ours.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, l.ours.SetReadDeadline(time.Time{}))
		_, err = l.peer.Write([]byte("y"))
		require.NoError(t, err)
		require.Equal(t, "y", readString(t, l.ours, 1))
		require.NoError(t, l.ours.SetDeadline(time.Now().Add(-time.Second)))
		_, err = l.ours.Write([]byte("x"))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	})
}

func TestCloseWakesWhoeverWaits(t *testing.T) {
	for name, wait := range map[string]func(c *s2n.Conn) error{
		"read":    func(c *s2n.Conn) error { _, err := c.Read(make([]byte, 1)); return err },
		"write":   func(c *s2n.Conn) error { _, err := c.Write(make([]byte, 64<<20)); return err },
		"writeto": func(c *s2n.Conn) error { _, err := c.WriteTo(io.Discard); return err },
	} {
		t.Run(name, func(t *testing.T) {
			eachLink(t, linkOptions{}, func(t *testing.T, l *link) {
				waiting := make(chan error, 1)
				go func() { waiting <- wait(l.ours) }()
				time.Sleep(20 * time.Millisecond) // it may also close before the call: right either way
				within(t, time.Second, "Close", func() { require.NoError(t, l.ours.Close()) })
				select {
				case err := <-waiting:
					require.ErrorIs(t, err, net.ErrClosed)
				case <-time.After(time.Second):
					t.Fatal("the call did not return within a second of Close")
				}
				require.ErrorIs(t, l.ours.Close(), net.ErrClosed)
				_, err := l.ours.Read(make([]byte, 1))
				require.ErrorIs(t, err, net.ErrClosed)
				_, err = l.ours.Write([]byte("x"))
				require.ErrorIs(t, err, net.ErrClosed)
			})
		})
	}
}

func TestCloseWakesTheHandshake(t *testing.T) {
	for _, transport := range []func(testing.TB) (net.Conn, net.Conn){
		tcpPair, func(testing.TB) (net.Conn, net.Conn) { a, b := net.Pipe(); return a, b },
	} {
		for _, role := range []string{"client", "server"} {
			a, b := transport(t)
			go func() { _, _ = io.Copy(io.Discard, b) }() // takes the hello, answers nothing
			c := s2n.Client(a, clientConfig(t))
			if role == "server" {
				c = s2n.Server(a, serverConfig(t))
			}
			waiting := make(chan error, 1)
			go func() { waiting <- c.Handshake() }()
			time.Sleep(20 * time.Millisecond)
			require.NoError(t, c.Close())
			select {
			case err := <-waiting:
				require.True(t, errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe), "%v", err)
			case <-time.After(time.Second):
				t.Fatal("Handshake did not return within a second of Close")
			}
			b.Close()
		}
	}
}

func TestCloseBeforeTheHandshake(t *testing.T) {
	a, b := tcpPair(t)
	c := s2n.Client(a, clientConfig(t))
	require.NoError(t, c.Close())
	require.ErrorIs(t, c.Close(), net.ErrClosed)
	require.ErrorIs(t, c.Handshake(), net.ErrClosed)
	_, err := c.Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	got, err := io.ReadAll(b)
	require.NoError(t, err)
	require.Empty(t, got, "nothing is sent by a connection that never began")
}

// The peer reads nothing and every buffer is full: Close gives up at the caller's own deadline.
func TestCloseIsBounded(t *testing.T) {
	eachLink(t, linkOptions{}, func(t *testing.T, l *link) {
		fillSocket(t, l.oursRaw)
		require.NoError(t, l.ours.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
		within(t, time.Second, "Close", func() { _ = l.ours.Close() })
	})
	if testing.Short() {
		t.Skip("the bound of 5 seconds is not waited for with -short")
	}
	// net.Pipe takes a byte only when it is read: a socket's buffers may grow meanwhile.
	l := newLink(t, linkOptions{transport: pipePair}, "client", 0x0304, "go")
	start := time.Now()
	within(t, 6*time.Second, "Close", func() { _ = l.ours.Close() })
	require.Greater(t, time.Since(start), 4*time.Second, "Close gave the peer its time")
}

// fillSocket writes past TLS until the socket takes no more.
func fillSocket(t testing.TB, c net.Conn) {
	t.Helper()
	for _, size := range []int{1 << 20, 1000, 1} { // what is left between two large writes takes small ones
		require.NoError(t, c.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
		for {
			if _, err := c.Write(make([]byte, size)); err != nil {
				break
			}
		}
	}
	require.NoError(t, c.SetWriteDeadline(time.Time{}))
}

func TestHandshakeContextCancel(t *testing.T) {
	a, b := tcpPair(t)
	go func() { _, _ = io.Copy(io.Discard, b) }()
	c := s2n.Client(a, clientConfig(t))
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(30*time.Millisecond, cancel)
	within(t, time.Second, "the cancelled handshake", func() {
		require.Equal(t, context.Canceled, c.HandshakeContext(ctx))
	})
	require.Equal(t, context.Canceled, c.Handshake(), "the connection is over")
	_, err := c.Write([]byte("x"))
	require.Error(t, err)

	// A context that ends after the handshake changes nothing.
	l := newLink(t, linkOptions{}, "client", 0x0304, "go")
	ctx, cancel = context.WithCancel(context.Background())
	require.NoError(t, l.ours.HandshakeContext(ctx))
	cancel()
	_, err = l.ours.Write([]byte("x"))
	require.NoError(t, err)
}
