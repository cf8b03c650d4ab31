package s2n_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
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

// cpuTime is what the process has used so far, user and system.
func cpuTime(t testing.TB) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// side is one way to handshake, against the same server as the other sides of a comparison.
type side struct {
	name    string
	policy  s2n.Policy
	mode    s2n.KeyShareMode
	offered []s2n.OfferedShare
}

// compareSides runs the sides by turns in one run, CPU time of both ends, and
// reports each one's median and the ratio of the first to the last.
func compareSides(b *testing.B, server s2n.Policy, sides ...side) {
	if s2n.Version().Linked == "" {
		b.Skip("no library")
	}
	serverConfig := serverConfig(b)
	serverConfig.Policy = server
	configs := make([]*s2n.Config, len(sides))
	for i, s := range sides {
		configs[i] = clientConfig(b)
		configs[i].Policy, configs[i].KeyShareMode = s.policy, s.mode
	}
	handshake := func(i int, check bool) {
		x, y := memPair()
		client, server := s2n.Client(x, configs[i]), s2n.Server(y, serverConfig)
		clientErr, serverErr := handshakeBoth(client, server)
		if clientErr != nil || serverErr != nil {
			b.Fatal(clientErr, serverErr)
		}
		if check {
			state := client.State()
			require.Equal(b, sides[i].offered, state.OfferedShares)
			require.Equal(b, sides[i].offered[0].Group, state.Group)
			require.False(b, client.ConnectionState().HelloRetryRequest)
		}
		client.Close()
		server.Close()
	}
	// One thread for both ends: waking another costs, and is no part of TLS.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const block = 20
	times := make([][]time.Duration, len(sides))
	for i := range sides {
		handshake(i, true)
	}
	for range max(b.N, 3) {
		for i := range sides {
			start := cpuTime(b)
			for range block {
				handshake(i, false)
			}
			times[i] = append(times[i], (cpuTime(b)-start)/block)
		}
	}
	median := func(i int) float64 {
		slices.Sort(times[i])
		return float64(times[i][len(times[i])/2]) / 1e3
	}
	for i, s := range sides {
		b.ReportMetric(median(i), "µs-"+s.name)
	}
	b.ReportMetric(median(0)/median(len(sides)-1), "ratio")
	b.ReportMetric(0, "ns/op")
	if os.Getenv("S2N_BENCH_V") != "" {
		fmt.Fprintln(os.Stderr, times)
	}
}

func BenchmarkKeyShares(b *testing.B) {
	hybrid := s2n.OfferedShare{Group: s2n.X25519MLKEM768}
	b.Run("default_pq/X25519MLKEM768/ecdsa-p256", func(b *testing.B) {
		compareSides(b, s2n.DefaultPQ,
			side{"ReuseShare", s2n.DefaultPQ, s2n.ReuseShare, []s2n.OfferedShare{hybrid, {Group: s2n.X25519, Reused: true}}},
			side{"HybridOnly", s2n.DefaultPQ, s2n.HybridOnly, []s2n.OfferedShare{hybrid}},
			side{"SeparateShares", s2n.DefaultPQ, s2n.SeparateShares, []s2n.OfferedShare{hybrid, {Group: s2n.P256}}})
	})
	b.Run("fips/X25519MLKEM768/ecdsa-p256", func(b *testing.B) {
		compareSides(b, s2n.DefaultFIPS,
			side{"FIPSPQ2026", s2n.FIPSPQ2026, s2n.PolicyShares, []s2n.OfferedShare{hybrid}},
			side{"default_fips", s2n.DefaultFIPS, s2n.PolicyShares, []s2n.OfferedShare{hybrid, {Group: s2n.P256}}})
	})
	b.Run("fips/SecP256r1MLKEM768/ecdsa-p256", func(b *testing.B) {
		nist := s2n.OfferedShare{Group: s2n.SecP256r1MLKEM768}
		compareSides(b, s2n.DefaultFIPS,
			side{"ReuseShare", s2n.FIPSNIST2026, s2n.ReuseShare, []s2n.OfferedShare{nist, {Group: s2n.P256, Reused: true}}},
			side{"SeparateShares", s2n.FIPSNIST2026, s2n.SeparateShares, []s2n.OfferedShare{nist, {Group: s2n.P256}}})
	})
}
