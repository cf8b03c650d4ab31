package s2n_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
	"github.com/s2n-go/s2n/cshim"
)

// eventually waits, with garbage collections, until what must come back has come back.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%s did not happen\n%s", what, buf[:runtime.Stack(buf, true)])
		}
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

// usage is what a connection must give back.
type usage struct{ conns, goroutines, files int }

func usageNow(t *testing.T) usage {
	return usage{int(cshim.GetMemStats().Conns), runtime.NumGoroutine(), openFiles(t)}
}

// requireBack waits until no more is in use than before.
func requireBack(t *testing.T, before usage) {
	t.Helper()
	eventually(t, "giving back C objects, goroutines and files", func() bool {
		now := usageNow(t)
		return now.conns <= before.conns && now.goroutines <= before.goroutines && now.files <= before.files
	})
}

// serveEcho accepts until the listener closes.
func serveEcho(l net.Listener, wg *sync.WaitGroup) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		wg.Go(func() { echo(c) })
	}
}

// Many goroutines with one Config each side; then nothing is left of them.
func TestManyHandshakes(t *testing.T) {
	goroutines, each := 200, 3 // 200 x 50 only with -race, where it takes a minute and is what the race detector is for
	switch {
	case testing.Short():
		goroutines, each = 40, 2
	case raceEnabled:
		each = 50
	}
	server, client := serverConfig(t), clientConfig(t)
	require.NoError(t, server.Validate())
	require.NoError(t, client.Validate())
	before := usageNow(t)
	l, err := s2n.Listen("tcp", "127.0.0.1:0", server)
	require.NoError(t, err)
	var servers, clients sync.WaitGroup
	servers.Go(func() { serveEcho(l, &servers) })
	var done atomic.Int64
	for range goroutines {
		clients.Go(func() {
			buf := make([]byte, 5)
			for range each {
				c, err := s2n.Dial("tcp", l.Addr().String(), client)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err = c.Write([]byte("hello")); err == nil {
					_, err = io.ReadFull(c, buf)
				}
				if err != nil || string(buf) != "hello" {
					t.Errorf("%q, %v", buf, err)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				done.Add(1)
			}
		})
	}
	clients.Wait()
	require.EqualValues(t, goroutines*each, done.Load())
	require.NoError(t, l.Close())
	servers.Wait()
	requireBack(t, before)
}

// Connections dropped without Close, at every stage, are freed when the collector finds them.
func TestDroppedConnections(t *testing.T) {
	config, peer := clientConfig(t), serverConfig(t)
	before := usageNow(t)
	for range 30 {
		func() {
			a, b := net.Pipe()
			s2n.Client(a, config) // never used
			client, server := s2n.Client(a, config), s2n.Server(b, peer)
			clientErr, serverErr := handshakeBoth(client, server)
			require.NoError(t, clientErr)
			require.NoError(t, serverErr)
		}()
		func() { // failed
			a, b := net.Pipe()
			wrong := config.Clone()
			wrong.ServerName = "other.example"
			clientErr, serverErr := handshakeBoth(s2n.Client(a, wrong), s2n.Server(b, peer))
			require.Error(t, clientErr)
			require.Error(t, serverErr)
		}()
	}
	requireBack(t, before)
}

// A Config, its certificates and roots go with the last user.
func TestConfigsAreFreed(t *testing.T) {
	pki()
	objects := func() [3]int64 {
		s := cshim.GetMemStats()
		return [3]int64{s.Configs, s.Certs, s.Stores}
	}
	for range 3 { // what other tests left to the collector
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	before := objects()
	for range 10 {
		a, b := tcpPair(t)
		clientErr, serverErr := handshakeBoth(s2n.Client(a, clientConfig(t)), s2n.Server(b, serverConfig(t)))
		require.NoError(t, clientErr)
		require.NoError(t, serverErr)
		a.Close()
		b.Close()
	}
	eventually(t, "freeing configs, certificates and stores", func() bool {
		now := objects()
		return now[0] <= before[0] && now[1] <= before[1] && now[2] <= before[2]
	})
}

// Whoever comes first starts the library, from any goroutine; in a child, where nobody came before.
func TestFirstUseFromManyGoroutines(t *testing.T) {
	out := runChild(t, childInit+"=1")
	require.Equal(t, "ok\n", out)
}

func firstUse() {
	var wg sync.WaitGroup
	start := make(chan struct{})
	errs := make(chan error, 200)
	for i := range 100 {
		wg.Go(func() {
			<-start
			switch i % 4 {
			case 0:
				errs <- s2n.RequireFIPS()
			case 1:
				_, err := s2n.DefaultPQ.Info()
				errs <- err
			case 2:
				errs <- (&s2n.Config{InsecureSkipVerify: true}).Validate()
			default:
				if len(s2n.Policies()) == 0 {
					errs <- errors.New("no policies")
				}
			}
		})
	}
	close(start)
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			panic(err)
		}
	}
	os.Stdout.WriteString("ok\n")
}

// HandshakeContext: cancelled before, during, and after.
func TestHandshakeContext(t *testing.T) {
	t.Run("before", func(t *testing.T) {
		a, _ := tcpPair(t)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		client := s2n.Client(a, clientConfig(t))
		require.ErrorIs(t, client.HandshakeContext(ctx), context.Canceled)
		require.Error(t, client.Handshake())
		_, err := client.Write([]byte("x"))
		require.ErrorIs(t, err, context.Canceled)
		_ = client.Close()
	})
	for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
		for transport, connect := range map[string]func() (net.Conn, net.Conn){
			"tcp":  func() (net.Conn, net.Conn) { return tcpPair(t) },
			"pipe": net.Pipe,
		} {
			t.Run("during/"+transport+"/"+cause.Error(), func(t *testing.T) {
				a, b := connect()
				defer b.Close()
				ctx, cancel := context.WithCancel(context.Background())
				if cause == context.DeadlineExceeded {
					ctx, cancel = context.WithTimeout(context.Background(), 50*time.Millisecond)
				}
				defer cancel()
				go func() {
					_, _ = io.ReadAtLeast(b, make([]byte, 4096), 100) // the ClientHello is there
					if cause == context.Canceled {
						cancel()
					}
				}()
				client := s2n.Client(a, clientConfig(t))
				start := time.Now()
				require.ErrorIs(t, client.HandshakeContext(ctx), cause)
				require.Less(t, time.Since(start), 5*time.Second)
				require.ErrorIs(t, client.Handshake(), cause) // for good
				_, err := client.Read(make([]byte, 1))
				require.ErrorIs(t, err, cause)
				_ = client.Close()
			})
		}
	}
	t.Run("after", func(t *testing.T) {
		a, b := tcpPair(t)
		ctx, cancel := context.WithCancel(context.Background())
		client, server := s2n.Client(a, clientConfig(t)), s2n.Server(b, serverConfig(t))
		go func() {
			if server.Handshake() == nil {
				echo(server)
			}
		}()
		require.NoError(t, client.HandshakeContext(ctx))
		cancel()
		require.NoError(t, client.HandshakeContext(ctx))
		_, err := client.Write([]byte("x"))
		require.NoError(t, err)
		_, err = client.Read(make([]byte, 1))
		require.NoError(t, err)
		require.NoError(t, client.Close())
	})
}

// After a failed handshake each call has its error, and the same one.
func TestHandshakeErrorIsSticky(t *testing.T) {
	a, b := tcpPair(t)
	config := clientConfig(t)
	config.ServerName = "other.example"
	client := s2n.Client(a, config)
	go func() { _ = tls.Server(b, goServerConfig()).Handshake() }()
	first := client.Handshake()
	require.Error(t, first)
	require.Equal(t, first, client.Handshake())
	_, err := client.Read(make([]byte, 1))
	require.Equal(t, first, err)
	_, err = client.Write([]byte("x"))
	require.Equal(t, first, err)
	require.Error(t, client.CloseWrite())
	require.False(t, client.ConnectionState().HandshakeComplete)
	require.NoError(t, client.Close())
	require.ErrorIs(t, client.Close(), net.ErrClosed)
}

// Accept hands over a connection before its handshake: a client that says nothing stalls nobody.
func TestSilentClient(t *testing.T) {
	before := usageNow(t)
	l, err := s2n.Listen("tcp", "127.0.0.1:0", serverConfig(t))
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() { serveEcho(l, &wg) })
	var silent []net.Conn
	for range 20 {
		c, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		silent = append(silent, c)
	}
	c, err := s2n.Dial("tcp", l.Addr().String(), clientConfig(t))
	require.NoError(t, err)
	_, err = c.Write([]byte("x"))
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, c.Close())
	for _, s := range silent {
		s.Close()
	}
	l.Close()
	wg.Wait()
	requireBack(t, before)
}

// net/http over our Listener and Dialer, HTTP/1.1. What net/http makes of them, found in its server.go and
// transport.go: Request.TLS is set for whatever has ConnectionState, but asked for before the first Read and
// so before the handshake: it is there and says nothing. Response.TLS is nil. A handler gets the state as
// here, by ConnContext; s2nhttp does it for its users.
func TestNetHTTP(t *testing.T) {
	type connKey struct{}
	before := usageNow(t)
	l, err := s2n.Listen("tcp", "127.0.0.1:0", serverConfig(t))
	require.NoError(t, err)
	server := &http.Server{
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			state := r.Context().Value(connKey{}).(*s2n.Conn).ConnectionState()
			if r.TLS == nil || r.TLS.HandshakeComplete || state.Version != tls.VersionTLS13 {
				http.Error(w, "unexpected state", http.StatusInternalServerError)
				return
			}
			_, _ = w.Write(append([]byte(r.Proto+" "), body...))
		}),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()

	dialer := &s2n.Dialer{Config: &s2n.Config{RootCAs: roots(t, pki().ca)}}
	for name, transport := range map[string]*http.Transport{
		"ours":       {DialTLSContext: dialer.DialContext},
		"crypto/tls": {TLSClientConfig: goClientConfig(), ForceAttemptHTTP2: true},
	} {
		client := &http.Client{Transport: transport}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 5 {
					answer, err := client.Post("https://"+l.Addr().String(), "text/plain", http.NoBody)
					if err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
					body, err := io.ReadAll(answer.Body)
					answer.Body.Close()
					if err != nil || answer.StatusCode != 200 || string(body) != "HTTP/1.1 " {
						t.Errorf("%s: %d %q %v", name, answer.StatusCode, body, err)
					}
					if name == "ours" && answer.TLS != nil {
						t.Error("net/http fills Response.TLS now: say so in the docs")
					}
				}
			})
		}
		wg.Wait()
		transport.CloseIdleConnections()
	}
	require.NoError(t, server.Shutdown(context.Background()))
	require.ErrorIs(t, <-served, http.ErrServerClosed)
	requireBack(t, before)
}

// A Dialer returns a *Conn, or a nil interface with the error.
func TestDialer(t *testing.T) {
	addr := oneShot(t, func(c net.Conn) { _ = tls.Server(c, goServerConfig()).Handshake(); c.Close() })
	d := &s2n.Dialer{Config: clientConfig(t)}
	c, err := d.Dial("tcp", addr)
	require.NoError(t, err)
	require.IsType(t, (*s2n.Conn)(nil), c)
	require.NoError(t, c.Close())
	for _, d := range []*s2n.Dialer{{}, {Config: &s2n.Config{Policy: "nonesuch"}}} {
		c, err = d.Dial("tcp", "127.0.0.1:1")
		require.Error(t, err)
		require.True(t, c == nil)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c, err = d.DialContext(ctx, "tcp", addr)
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, c == nil)
}
