package s2n_test

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
	"github.com/s2n-go/s2n/cshim"
)

var soakFor = flag.Duration("soak", 5*time.Second, "how long TestSoak runs; 10m to have memory compared")

// TestSoak opens, uses, breaks and drops connections in every way there is, and
// then finds nothing left. With -soak 10m, memory at the end is held against
// memory after 3 minutes: go test -run TestSoak -soak 10m -timeout 20m -v .
func TestSoak(t *testing.T) {
	server := serverConfig(t)
	server.Blinding = s2n.BlindingOff // else a socket stays open for up to 30 s after a broken record, by design
	client := clientConfig(t)
	client.Blinding = s2n.BlindingOff
	wrongRoots := &s2n.Config{RootCAs: roots(t, otherCA()), ServerName: "localhost"}

	var lc net.ListenConfig
	inner, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := inner.Addr().String()
	l := s2n.NewListener(inner, server)
	var serving sync.WaitGroup
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				_ = c.SetDeadline(time.Now().Add(5 * time.Second))
				_, _ = io.Copy(c, c)
				if mathrand.IntN(4) > 0 {
					_ = c.Close()
				} // else it is dropped: the collector closes both the C object and the socket
			})
		}
	}()

	ways := []func(raw net.Conn){
		func(raw net.Conn) { // use and close
			c := s2n.Client(raw, client)
			useConn(c, 1+mathrand.IntN(200_000))
			_ = c.Close()
		},
		func(raw net.Conn) { useConn(s2n.Client(raw, client), 100) }, // dropped without Close
		func(raw net.Conn) { // the wire is cut
			c := s2n.Client(raw, client)
			useConn(c, 100)
			_ = raw.Close()
			_, _ = c.Read(make([]byte, 1))
			_ = c.Close()
		},
		func(raw net.Conn) { // bytes that are no record
			c := s2n.Client(raw, client)
			useConn(c, 100)
			_, _ = raw.Write([]byte("this is no TLS record, and the server says so"))
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		},
		func(raw net.Conn) { _ = s2n.Client(raw, wrongRoots).Handshake(); _ = raw.Close() },
		func(raw net.Conn) { _ = raw.Close() }, // no handshake
		func(raw net.Conn) { // cancelled
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(mathrand.IntN(3))*time.Millisecond)
			defer cancel()
			c := s2n.Client(raw, client)
			_ = c.HandshakeContext(ctx)
			_ = c.Close()
		},
		func(raw net.Conn) { // closed while it reads
			c := s2n.Client(raw, client)
			useConn(c, 10)
			go func() { _, _ = c.Read(make([]byte, 1)) }()
			_ = c.Close()
		},
		func(raw net.Conn) { // crypto/tls, for what it sends otherwise
			c := tls.Client(raw, goClientConfig())
			useConn(c, 5000)
			_ = c.Close()
		},
		func(raw net.Conn) { // half-closed
			c := s2n.Client(raw, client)
			useConn(c, 10)
			_ = c.CloseWrite()
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		},
	}

	var count atomic.Int64
	run := func(end time.Time) *sync.WaitGroup {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for time.Now().Before(end) {
					raw, err := net.Dial("tcp", addr)
					if err != nil {
						t.Error(err)
						return
					}
					ways[mathrand.IntN(len(ways))](raw)
					count.Add(1)
				}
			})
		}
		return &wg
	}
	begun := time.Now()
	// The stock at the start is that of a process at work.
	run(begun.Add(*soakFor / 10)).Wait()
	settle(t)
	start := takeStock(t)
	wg := run(begun.Add(*soakFor))
	var atThree int64
	if *soakFor > 3*time.Minute {
		time.Sleep(time.Until(begun.Add(3 * time.Minute)))
		atThree = rss(t)
	}
	wg.Wait()
	atEnd := rss(t)
	_ = l.Close()
	serving.Wait()
	settle(t)
	after := takeStock(t)
	t.Logf("%d connections in %s; start: %s; after: %s", count.Load(), *soakFor, start, after)
	require.Equal(t, start.objects, after.objects, "C objects")
	require.LessOrEqual(t, after.fds, start.fds, "open files")
	require.LessOrEqual(t, after.goroutines, start.goroutines, "goroutines")
	// Go never ends a thread that it made (golang/go#14592), so this number cannot fall; it must stay bounded.
	require.LessOrEqual(t, after.threads, runtime.GOMAXPROCS(0)+32, "threads")
	if atThree > 0 {
		t.Logf("RSS after 3 minutes %d KiB, at the end %d KiB: ratio %.3f", atThree>>10, atEnd>>10, float64(atEnd)/float64(atThree))
		require.LessOrEqual(t, float64(atEnd), 1.05*float64(atThree), "memory grew")
	}
}

// useConn sends n bytes through the server's echo.
func useConn(c net.Conn, n int) {
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	go func() { _, _ = c.Write(make([]byte, n)) }()
	_, _ = io.ReadFull(c, make([]byte, n))
}

type stock struct {
	fds, goroutines, threads int
	objects                  [3]int64 // connections, bytes and blocks of s2n's in them
}

func (s stock) String() string {
	return fmt.Sprintf("%d fds, %d goroutines, %d threads, %d C connections", s.fds, s.goroutines, s.threads, s.objects[0])
}

func takeStock(t testing.TB) stock {
	fds, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	m := cshim.GetMemStats()
	return stock{len(fds), runtime.NumGoroutine(), threads(t), [3]int64{m.Conns}}
}

// settle waits until dropped connections are collected and callers gone.
func settle(t testing.TB) {
	for range 100 {
		runtime.GC()
		if cshim.GetMemStats().Conns == 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	time.Sleep(200 * time.Millisecond)
	debug.FreeOSMemory()
}

func rss(t testing.TB) int64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	var kib int64
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	_, err = fmt.Sscan(rest, &kib)
	require.NoError(t, err)
	return kib << 10
}
