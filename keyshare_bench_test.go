package s2n_test

import (
	"encoding/pem"
	"io"
	"net"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
	"github.com/s2n-go/s2n/cshim"
)

// memConn is one end of a connection in memory, with room for whole flights, so
// that what is measured is TLS and not a transport.
type memConn struct{ in, out *memBuf }

type memBuf struct {
	sync.Mutex
	cond   sync.Cond
	buf    []byte
	closed bool
}

func memPair() (net.Conn, net.Conn) {
	a, b := new(memBuf), new(memBuf)
	a.cond.L, b.cond.L = a, b
	return &memConn{in: a, out: b}, &memConn{in: b, out: a}
}

func (c *memConn) Read(p []byte) (int, error) {
	c.in.Lock()
	defer c.in.Unlock()
	for len(c.in.buf) == 0 && !c.in.closed {
		c.in.cond.Wait()
	}
	if len(c.in.buf) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.in.buf)
	c.in.buf = c.in.buf[n:]
	return n, nil
}

func (c *memConn) Write(p []byte) (int, error) {
	c.out.Lock()
	defer c.out.Unlock()
	if c.out.closed {
		return 0, net.ErrClosed
	}
	c.out.buf = append(c.out.buf, p...)
	c.out.cond.Signal()
	return len(p), nil
}

func (c *memConn) Close() error {
	for _, b := range []*memBuf{c.in, c.out} {
		b.Lock()
		b.closed = true
		b.cond.Broadcast()
		b.Unlock()
	}
	return nil
}

type memAddr struct{}

func (memAddr) Network() string { return "memory" }
func (memAddr) String() string  { return "memory" }

func (c *memConn) LocalAddr() net.Addr              { return memAddr{} }
func (c *memConn) RemoteAddr() net.Addr             { return memAddr{} }
func (c *memConn) SetDeadline(time.Time) error      { return nil }
func (c *memConn) SetReadDeadline(time.Time) error  { return nil }
func (c *memConn) SetWriteDeadline(time.Time) error { return nil }

// cpuTime is what the process has used so far, to the nanosecond: getrusage is brought
// up to date only with the kernel's clock tick.
func cpuTime(t testing.TB) time.Duration {
	var ts syscall.Timespec
	const processCPUTime = 2
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, processCPUTime, uintptr(unsafe.Pointer(&ts)), 0)
	require.Zero(t, errno)
	return time.Duration(ts.Nano())
}

// handshakeWay is one way to handshake, against the same server as the others of a comparison.
type handshakeWay struct {
	name    string
	policy  s2n.Policy
	mode    s2n.KeyShareMode
	offered []s2n.OfferedShare
}

// compareWays runs the ways by turns in one run, and reports each one's median of the
// CPU time of both ends, and the ratio of the first to the last. "conn" is two Conns in
// two goroutines; "shim" is what they do in C, driven by one goroutine, without Go's
// own part (net.Conn, wake-ups, parsing of certificates, garbage).
func compareWays(b *testing.B, server s2n.Policy, ways ...handshakeWay) {
	// A certificate right below the root, which a server does not send.
	leaf := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pki().server.Cert.Raw})
	b.Run("conn", func(b *testing.B) {
		// One thread for both ends: to wake another is no part of TLS.
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		cert, err := s2n.X509KeyPair(leaf, pki().server.KeyPEM)
		require.NoError(b, err)
		serverConfig := &s2n.Config{Policy: server, Certificates: []s2n.Certificate{cert}}
		configs := make([]*s2n.Config, len(ways))
		for i, w := range ways {
			configs[i] = clientConfig(b)
			configs[i].Policy, configs[i].KeyShareMode = w.policy, w.mode
		}
		takeTurns(b, ways, func(i int) ([]s2n.OfferedShare, s2n.Group) {
			x, y := memPair()
			client, server := s2n.Client(x, configs[i]), s2n.Server(y, serverConfig)
			clientErr, serverErr := handshakeBoth(client, server)
			if clientErr != nil || serverErr != nil {
				b.Fatal(clientErr, serverErr)
			}
			_ = client.Close()
			_ = server.Close()
			state := client.State()
			return state.OfferedShares, state.Group
		})
	})
	b.Run("shim", func(b *testing.B) {
		must := func(r cshim.Result) {
			if r.Status != cshim.OK {
				b.Fatal(cshim.ErrorName(r.Code))
			}
		}
		must(cshim.Init())
		cert, r := cshim.NewCert(leaf, pki().server.KeyPEM)
		must(r)
		store, r := cshim.NewStore()
		must(r)
		must(store.Add(pki().ca.Cert.Raw))
		serverConfig, r := cshim.NewConfig(&cshim.ConfigParams{
			Policy: string(server), Role: cshim.Server, Certs: []*cshim.Cert{cert}, SkipVerify: true,
		})
		must(r)
		modes := map[s2n.KeyShareMode]uint8{
			s2n.PolicyShares: cshim.SharesPolicy, s2n.ReuseShare: cshim.SharesReuse,
			s2n.SeparateShares: cshim.SharesSeparate, s2n.HybridOnly: cshim.SharesHybridOnly,
		}
		configs := make([]*cshim.Config, len(ways))
		for i, w := range ways {
			configs[i], r = cshim.NewConfig(&cshim.ConfigParams{Policy: string(w.policy), Role: cshim.Client, Store: store, Shares: modes[w.mode]})
			must(r)
		}
		takeTurns(b, ways, func(i int) ([]s2n.OfferedShare, s2n.Group) {
			client, r := cshim.NewConn(configs[i], -1, "localhost")
			must(r)
			server, r := cshim.NewConn(serverConfig, -1, "")
			must(r)
			defer client.Close()
			defer server.Close()
			turn := func(from, to *cshim.Conn) bool {
				r := from.Negotiate()
				for r.Status == cshim.WantVerify {
					from.Verified(0)
					r = from.Negotiate()
				}
				for out := from.Out(); len(out) > 0; out = from.Out() {
					n := copy(to.InSpace(), out)
					to.InFilled(n)
					from.OutSent(n)
				}
				if r.Status != cshim.WantRead {
					must(r)
				}
				return r.Status == cshim.OK
			}
			for c, s := false, false; !c || !s; {
				c = c || turn(client, server)
				s = s || turn(server, client)
			}
			info, r := client.Finish()
			must(r)
			_, r = server.Finish()
			must(r)
			var offered []s2n.OfferedShare
			for _, o := range client.GetCounts().Offered {
				if o.Group != 0 {
					offered = append(offered, s2n.OfferedShare{Group: s2n.Group(o.Group), Reused: o.Reused})
				}
			}
			return offered, s2n.Group(info.Group)
		})
	})
}

func takeTurns(b *testing.B, ways []handshakeWay, handshake func(i int) ([]s2n.OfferedShare, s2n.Group)) {
	for i, w := range ways {
		offered, group := handshake(i)
		require.Equal(b, w.offered, offered)
		require.Equal(b, w.offered[0].Group, group)
	}
	const block = 2
	times := make([][]time.Duration, len(ways))
	for range max(b.N, 3) {
		for i := range ways {
			start := cpuTime(b)
			for range block {
				handshake(i)
			}
			times[i] = append(times[i], (cpuTime(b)-start)/block)
		}
	}
	median := func(i int) float64 {
		slices.Sort(times[i])
		return float64(times[i][len(times[i])/2]) / 1e3
	}
	for i, w := range ways {
		b.ReportMetric(median(i), "µs-"+w.name)
	}
	b.ReportMetric(median(0)/median(len(ways)-1), "ratio")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkKeyShares is what each mode costs a full handshake, both ends, in memory:
// "go test -run - -bench KeyShares -benchtime 200x". docs/KEYSHARES.md has the figures.
func BenchmarkKeyShares(b *testing.B) {
	hybrid, nist := s2n.OfferedShare{Group: s2n.X25519MLKEM768}, s2n.OfferedShare{Group: s2n.SecP256r1MLKEM768}
	p256, p256Again := s2n.OfferedShare{Group: s2n.P256}, s2n.OfferedShare{Group: s2n.P256, Reused: true}
	b.Run("default_pq/X25519MLKEM768/ecdsa-p256", func(b *testing.B) {
		compareWays(b, s2n.DefaultPQ,
			handshakeWay{"ReuseShare", s2n.DefaultPQ, s2n.ReuseShare, []s2n.OfferedShare{hybrid, {Group: s2n.X25519, Reused: true}}},
			handshakeWay{"HybridOnly", s2n.DefaultPQ, s2n.HybridOnly, []s2n.OfferedShare{hybrid}},
			handshakeWay{"SeparateShares", s2n.DefaultPQ, s2n.SeparateShares, []s2n.OfferedShare{hybrid, p256}})
	})
	b.Run("fips/X25519MLKEM768/ecdsa-p256", func(b *testing.B) {
		compareWays(b, s2n.DefaultFIPS,
			handshakeWay{"FIPSPQ2026", s2n.FIPSPQ2026, s2n.PolicyShares, []s2n.OfferedShare{hybrid}},
			handshakeWay{"default_fips", s2n.DefaultFIPS, s2n.PolicyShares, []s2n.OfferedShare{hybrid, p256}})
	})
	b.Run("FIPSNIST2026/SecP256r1MLKEM768/ecdsa-p256", func(b *testing.B) {
		compareWays(b, s2n.FIPSNIST2026,
			handshakeWay{"ReuseShare", s2n.FIPSNIST2026, s2n.ReuseShare, []s2n.OfferedShare{nist, p256Again}},
			handshakeWay{"SeparateShares", s2n.FIPSNIST2026, s2n.SeparateShares, []s2n.OfferedShare{nist, p256}})
	})
}
