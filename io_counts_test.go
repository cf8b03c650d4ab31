package s2n_test

import (
	"crypto/tls"
	"io"
	"net"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
)

// What a call costs in system calls, crossings into C and allocations, on the
// socket transport after warm-up. The figures are exact, so that a change of any
// shows; -v prints them.

func counted(c net.Conn) func() (reads, writes uint64) {
	conn := c.(*s2n.Conn)
	before := conn.Counts()
	return func() (uint64, uint64) {
		now := conn.Counts()
		return now.Reads - before.Reads, now.Writes - before.Writes
	}
}

func TestCountHandshakeWrites(t *testing.T) {
	for _, mutual := range []bool{false, true} {
		a, b := tcpPair(t)
		cc, sc := clientConfig(t), serverConfig(t)
		if mutual {
			cc.Certificates = []s2n.Certificate{pair(t, pki().client)}
			sc.ClientAuth = tls.RequireAndVerifyClientCert
		}
		client, server := s2n.Client(a, cc), s2n.Server(b, sc)
		clientErr, serverErr := handshakeBoth(client, server)
		require.NoError(t, clientErr)
		require.NoError(t, serverErr)
		c, s := client.Counts(), server.Counts()
		t.Logf("TLS 1.3 handshake, mutual %v: client %d writes, server %d writes; %d and %d reads", mutual, c.Writes, s.Writes, c.Reads, s.Reads)
		require.EqualValues(t, 2, c.Writes)
		require.LessOrEqual(t, s.Writes, uint64(2))
		client.Close()
		server.Close()
	}
}

func TestCountPingPong(t *testing.T) {
	l := newLink(t, linkOptions{}, "client", tls.VersionTLS13, "ours")
	client, server := l.ours, l.peer.(*s2n.Conn)
	const rounds = 200
	one := func() {
		buf := make([]byte, 128)
		_, err := client.Write(buf)
		require.NoError(t, err)
		_, err = io.ReadFull(server, buf)
		require.NoError(t, err)
		_, err = server.Write(buf)
		require.NoError(t, err)
		_, err = io.ReadFull(client, buf)
		require.NoError(t, err)
	}
	one()
	clientCounts, serverCounts := counted(client), counted(server)
	before := runtime.NumCgoCall()
	for range rounds {
		one()
	}
	crossings := float64(runtime.NumCgoCall()-before) / rounds
	cr, cw := clientCounts()
	sr, sw := serverCounts()
	t.Logf("ping-pong of 128 B, per round: client %.2f writes %.2f reads, server %.2f writes %.2f reads, %.2f crossings for 4 calls",
		float64(cw)/rounds, float64(cr)/rounds, float64(sw)/rounds, float64(sr)/rounds, crossings)
	require.EqualValues(t, rounds, cw)
	require.EqualValues(t, rounds, sw)
	require.LessOrEqual(t, cr, uint64(2*rounds))
	require.LessOrEqual(t, sr, uint64(2*rounds))
	// Here the data is always there before the Read: each of the four calls makes progress at once.
	require.EqualValues(t, 4, crossings)
}

// With the reader parked before the data comes, each Read makes two attempts.
func TestCountParkedReader(t *testing.T) {
	l := newLink(t, linkOptions{}, "client", tls.VersionTLS13, "ours")
	server := l.peer.(*s2n.Conn)
	go echo(server)
	const rounds = 200
	buf := make([]byte, 128)
	one := func() {
		_, err := l.ours.Write(buf)
		require.NoError(t, err)
		_, err = io.ReadFull(l.ours, buf)
		require.NoError(t, err)
	}
	one()
	clientCounts, serverCounts := counted(l.ours), counted(server)
	for range rounds {
		one()
	}
	cr, cw := clientCounts()
	sr, sw := serverCounts()
	t.Logf("ping-pong of 128 B with parked readers, per round: client %.2f writes %.2f reads, server %.2f writes %.2f reads",
		float64(cw)/rounds, float64(cr)/rounds, float64(sw)/rounds, float64(sr)/rounds)
	require.EqualValues(t, rounds, cw)
	require.LessOrEqual(t, cr, uint64(2*rounds))
	// The server runs beside this: a call of its last round before, or after, may be counted or not.
	require.InDelta(t, rounds, sw, 1)
	require.LessOrEqual(t, sr, uint64(2*rounds)+2)
}

func TestCountBulkWrites(t *testing.T) {
	for _, sizing := range []s2n.RecordSizing{s2n.DynamicRecords, s2n.Throughput} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			l := newLink(t, linkOptions{
				change: func(c *s2n.Config) { c.RecordSizing = sizing },
				transport: func(t testing.TB) (net.Conn, net.Conn) {
					a, b := tcpPair(t)
					// The fd can take all of it: what is counted is how it is handed over.
					require.NoError(t, a.(*net.TCPConn).SetWriteBuffer(4<<20))
					return a, b
				},
			}, "client", version, "ours")
			go func() { _, _ = io.Copy(io.Discard, l.peer) }()
			counts := counted(l.ours)
			_, err := l.ours.Write(make([]byte, 1<<20))
			require.NoError(t, err)
			_, writes := counts()
			t.Logf("1 MiB Write, sizing %d, version %x: %d writes", sizing, version, writes)
			require.LessOrEqual(t, writes, uint64(8), "one write per 128 KiB")
		}
	}
}

func TestNoAllocationInReadAndWrite(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates by itself")
	}
	for _, size := range []int{1, 128, 16384, 100_000} {
		l := newLink(t, linkOptions{}, "client", tls.VersionTLS13, "ours")
		message, buf := make([]byte, size), make([]byte, size)
		server := l.peer
		allocs := testing.AllocsPerRun(200, func() {
			if _, err := l.ours.Write(message); err != nil {
				panic(err)
			}
			if _, err := io.ReadFull(server, buf); err != nil {
				panic(err)
			}
		})
		t.Logf("Write and Read of %d B: %.2f allocations", size, allocs)
		require.Zero(t, allocs)
	}
}
