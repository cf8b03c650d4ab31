package s2n_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
)

// dripConn gives and takes one byte at a time.
type dripConn struct{ net.Conn }

func (c dripConn) Read(b []byte) (int, error) { return c.Conn.Read(b[:min(len(b), 1)]) }

func (c dripConn) Write(b []byte) (int, error) {
	for i := range b {
		if _, err := c.Conn.Write(b[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(b), nil
}

func pipePair(t testing.TB) (net.Conn, net.Conn) {
	a, b := net.Pipe()
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// roundTrip sends message through an echo and back.
func roundTrip(t testing.TB, l *link, message []byte) {
	t.Helper()
	go echo(l.peer)
	go func() {
		_, _ = l.ours.Write(message)
		_ = l.ours.CloseWrite()
	}()
	got, err := io.ReadAll(l.ours)
	require.NoError(t, err)
	require.True(t, bytes.Equal(message, got))
}

func TestOneByteAtATime(t *testing.T) {
	message := make([]byte, 20_000)
	_, _ = rand.Read(message)
	drip := func(c net.Conn) net.Conn { return dripConn{c} }
	for name, o := range map[string]linkOptions{
		"ours":   {wrapOurs: drip},
		"theirs": {wrapPeer: drip}, // our socket transport then sees single bytes
		"pipe":   {transport: pipePair, wrapOurs: drip},
	} {
		t.Run(name, func(t *testing.T) {
			eachLink(t, o, func(t *testing.T, l *link) { roundTrip(t, l, message) })
		})
	}
}

func TestBufferTransports(t *testing.T) {
	message := make([]byte, 3<<20+17)
	_, _ = rand.Read(message)
	plain := func(c net.Conn) net.Conn { return struct{ net.Conn }{c} }
	for name, o := range map[string]linkOptions{
		"pipe":    {transport: pipePair},
		"wrapped": {wrapOurs: plain, wrapPeer: plain},
		"unix":    {transport: func(t testing.TB) (net.Conn, net.Conn) { return sockPair(t, "unix", t.TempDir()+"/s") }},
	} {
		t.Run(name, func(t *testing.T) {
			eachLink(t, o, func(t *testing.T, l *link) { roundTrip(t, l, message) })
		})
	}
}

// TLS within TLS: one connection is the other's transport.
func TestTLSInTLS(t *testing.T) {
	message := make([]byte, 1<<20)
	_, _ = rand.Read(message)
	outer := newLink(t, linkOptions{}, "client", 0x0304, "ours")
	inner := newLink(t, linkOptions{transport: func(testing.TB) (net.Conn, net.Conn) { return outer.ours, outer.peer }}, "client", 0x0304, "ours")
	roundTrip(t, inner, message)
}

// Over net.Pipe a write lasts until the other end reads: both ends write first, and read beside it.
func TestPipeWithBothEndsWriting(t *testing.T) {
	for _, version := range []uint16{0x0303, 0x0304} {
		for _, peer := range []string{"go", "ours"} {
			l := newLink(t, linkOptions{transport: pipePair}, "client", version, peer)
			var wg sync.WaitGroup
			for _, c := range []net.Conn{l.ours, l.peer} {
				wg.Go(func() {
					_, err := c.Write(make([]byte, 200_000))
					require.NoError(t, err)
				})
				wg.Go(func() {
					_, err := io.ReadFull(c, make([]byte, 200_000))
					require.NoError(t, err)
				})
			}
			within(t, 10*time.Second, "both ends writing", wg.Wait)
			l.oursRaw.Close() // Close would wait for the peer to read its close_notify
		}
	}
}

// The client may write the moment its handshake is done, while the server is still ending its own.
func TestPipeWriteRightAfterTheHandshake(t *testing.T) {
	for range 20 {
		a, b := net.Pipe()
		client, server := s2n.Client(a, clientConfig(t)), s2n.Server(b, serverConfig(t))
		done := make(chan error, 2)
		go func() { _, err := client.Write([]byte("hello")); done <- err }()
		go func() {
			got := make([]byte, 5)
			_, err := io.ReadFull(server, got)
			done <- err
		}()
		for range 2 {
			select {
			case err := <-done:
				require.NoError(t, err)
			case <-time.After(5 * time.Second):
				t.Fatal("deadlock")
			}
		}
		a.Close()
		b.Close()
	}
}

func TestWriteLengths(t *testing.T) {
	sizes := []int{1, 16383, 16384, 16385, 65536, 131072, 131073, 16 << 20}
	if !testing.Short() {
		sizes = append(sizes, 256<<20)
	}
	for _, size := range sizes {
		for _, version := range []uint16{0x0303, 0x0304} {
			l := newLink(t, linkOptions{}, "client", version, "go")
			checkStream(t, l, size)
		}
	}
}

func TestWriteBeyond2GiB(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("4 GiB of plaintext and ciphertext take too long with -short or under the race detector")
	}
	checkStream(t, newLink(t, linkOptions{}, "client", 0x0304, "ours"), 1<<31+12345)
}

// checkStream sends size bytes in one Write and holds every one against what it should be.
func checkStream(t testing.TB, l *link, size int) {
	t.Helper()
	pattern := make([]byte, 1<<16+1) // no multiple of any buffer
	for i := range pattern {
		pattern[i] = byte(i ^ i>>8)
	}
	message := bytes.Repeat(pattern, size/len(pattern)+1)[:size]
	wrote := make(chan error, 1)
	go func() {
		n, err := l.ours.Write(message)
		if err == nil && n != size {
			err = fmt.Errorf("wrote %d of %d bytes", n, size)
		}
		if err == nil {
			err = l.ours.CloseWrite()
		}
		wrote <- err
	}()
	buf := make([]byte, 1<<20)
	got := 0
	for {
		n, err := l.peer.Read(buf)
		if !bytes.Equal(buf[:n], message[got:got+n]) {
			t.Fatalf("wrong bytes after %d", got)
		}
		got += n
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
	}
	require.Equal(t, size, got)
	require.NoError(t, <-wrote)
	l.ours.Close()
	l.peer.Close()
}

// Many writers, readers and a closer at once, on a connection whose peer does the same.
func TestEverythingAtOnce(t *testing.T) {
	for _, o := range []linkOptions{{}, {transport: pipePair}} {
		for range 15 {
			l := newLink(t, o, "client", 0x0304, "ours")
			var wg sync.WaitGroup
			for _, c := range []*s2n.Conn{l.ours, l.peer.(*s2n.Conn)} {
				for range 3 {
					wg.Go(func() {
						for {
							if _, err := c.Write(make([]byte, mathrand.IntN(40_000))); err != nil {
								return
							}
						}
					})
					wg.Go(func() {
						for {
							if _, err := c.Read(make([]byte, 10_000)); err != nil {
								return
							}
						}
					})
				}
				wg.Go(func() {
					for range 50 {
						_ = c.State()
						_ = c.ConnectionState()
						_ = c.KeyUpdate()
						_ = c.SetReadDeadline(time.Now().Add(time.Second))
						_ = c.SetWriteDeadline(time.Now().Add(time.Second))
						runtime.Gosched()
					}
				})
			}
			time.Sleep(time.Duration(mathrand.IntN(30)) * time.Millisecond)
			_ = l.ours.Close()
			within(t, 2*time.Second, "all callers", wg.Wait)
		}
	}
}

func TestReadFromAndWriteTo(t *testing.T) {
	message := make([]byte, 1<<20)
	_, _ = rand.Read(message)
	eachLink(t, linkOptions{}, func(t *testing.T, l *link) {
		go func() {
			n, err := io.Copy(l.ours, bytes.NewReader(message)) // ReadFrom or Read and Write
			if err != nil || n != int64(len(message)) {
				t.Errorf("copied %d: %v", n, err)
			}
			_ = l.ours.CloseWrite()
		}()
		got, err := io.ReadAll(l.peer)
		require.NoError(t, err)
		require.True(t, bytes.Equal(message, got))
		go func() {
			_, _ = l.peer.Write(message)
			_ = l.peer.Close()
		}()
		var back bytes.Buffer
		n, err := l.ours.WriteTo(&back)
		require.NoError(t, err)
		require.EqualValues(t, len(message), n)
		require.True(t, bytes.Equal(message, back.Bytes()))
	})
	// What comes is passed on as it comes, not when a buffer is full.
	l := newLink(t, linkOptions{}, "client", 0x0304, "go")
	r, w := io.Pipe()
	go func() { _, _ = l.ours.ReadFrom(r) }()
	_, err := w.Write([]byte("at once"))
	require.NoError(t, err)
	require.Equal(t, "at once", readString(t, l.peer, 7))
	w.Close()
}

func TestNoSIGPIPE(t *testing.T) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGPIPE)
	defer signal.Stop(signals)
	for _, version := range []uint16{0x0303, 0x0304} {
		l := newLink(t, linkOptions{}, "client", version, "go")
		require.NoError(t, l.peerRaw.Close())
		var err error
		for range 100 {
			if _, err = l.ours.Write(make([]byte, 1000)); err != nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		require.Error(t, err)
		_, again := l.ours.Write([]byte("x"))
		require.Equal(t, err, again)
		l.ours.Close()
	}
	require.Empty(t, signals)
}

func threads(t testing.TB) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	var n int
	_, rest, _ := strings.Cut(string(status), "Threads:")
	_, err = fmt.Sscan(rest, &n)
	require.NoError(t, err)
	return n
}

// Thousands of handshakes at once make no thousands of threads, and none fails.
func TestFiveThousandHandshakesAtOnce(t *testing.T) {
	n := 5000
	if testing.Short() || raceEnabled {
		n = 500 // the race detector's memory for 20,000 goroutines is too much for a quick run
	}
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	limit.Cur = limit.Max
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	require.Greater(t, int(limit.Max), 2*n+100, "open files: raise ulimit -Hn")

	l, err := s2n.Listen("tcp", "127.0.0.1:0", serverConfig(t))
	require.NoError(t, err)
	defer l.Close()
	var servers sync.WaitGroup
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			servers.Go(func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			})
		}
	}()
	config := clientConfig(t)
	conns := make([]net.Conn, n)
	for i := range conns {
		conns[i], err = net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
	}
	stop := make(chan struct{})
	most := threads(t)
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
				most = max(most, threads(t))
			}
		}
	})
	errs := make(chan error, n)
	start := make(chan struct{})
	for _, raw := range conns {
		go func() {
			<-start
			c := s2n.Client(raw, config)
			err := c.Handshake()
			if err == nil {
				_, err = c.Write([]byte("ping"))
			}
			if err == nil {
				_, err = io.ReadFull(c, make([]byte, 4))
			}
			if err == nil {
				err = c.Close()
			}
			errs <- err
		}()
	}
	begun := time.Now()
	close(start)
	for range n {
		require.NoError(t, <-errs)
	}
	took := time.Since(begun)
	close(stop)
	watch.Wait()
	l.Close()
	servers.Wait()
	t.Logf("%d handshakes at once in %s, at most %d threads (GOMAXPROCS %d)", n, took, most, runtime.GOMAXPROCS(0))
	require.LessOrEqual(t, most, runtime.GOMAXPROCS(0)+32)
}
