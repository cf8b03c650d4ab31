package s2n_test

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
	"github.com/s2n-go/s2n/cshim"
)

// recordingConn keeps what is written.
type recordingConn struct {
	net.Conn
	mu   sync.Mutex
	sent []byte
}

func (c *recordingConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	c.sent = append(c.sent, b...)
	c.mu.Unlock()
	return c.Conn.Write(b)
}

// records returns the lengths of the records sent since the last call.
func (c *recordingConn) records(t testing.TB) (lengths []int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for b := c.sent; len(b) > 0; {
		n := 5 + int(binary.BigEndian.Uint16(b[3:5]))
		require.LessOrEqual(t, n, len(b))
		lengths = append(lengths, n)
		b = b[n:]
	}
	c.sent = nil
	return lengths
}

func TestRecordSizing(t *testing.T) {
	const segment, full = 1500, 5 + 16384 + 17
	send := func(sizing s2n.RecordSizing, pause time.Duration) (first, second []int) {
		var rec *recordingConn
		l := newLink(t, linkOptions{
			change:   func(c *s2n.Config) { c.RecordSizing = sizing },
			wrapOurs: func(c net.Conn) net.Conn { rec = &recordingConn{Conn: c}; return rec },
		}, "client", 0x0304, "go")
		go func() { _, _ = io.Copy(io.Discard, l.peer) }()
		rec.records(t)
		_, err := l.ours.Write(make([]byte, 100_000))
		require.NoError(t, err)
		first = rec.records(t)
		time.Sleep(pause)
		_, err = l.ours.Write(make([]byte, 100_000))
		require.NoError(t, err)
		return first, rec.records(t)
	}
	small := func(lengths []int) (n int) {
		for _, l := range lengths {
			if l <= segment {
				n++
			}
		}
		return n
	}

	first, second := send(s2n.DynamicRecords, 0)
	require.LessOrEqual(t, first[0], segment, "a burst begins with a record that fits a segment")
	require.Equal(t, full, first[len(first)-2], "and goes on with full ones")
	require.InDelta(t, 12, small(first), 2, "for 16 KiB")
	require.Equal(t, full, second[0], "the burst goes on")
	first, second = send(s2n.DynamicRecords, 2100*time.Millisecond)
	require.LessOrEqual(t, second[0], segment, "a new burst after a silence")
	require.Equal(t, len(first), len(second))

	first, _ = send(s2n.LowLatency, 0)
	require.Equal(t, len(first), small(first))
	first, _ = send(s2n.Throughput, 0)
	require.Equal(t, full, first[0])
	require.LessOrEqual(t, small(first), 1)
}

// s2n by itself locks every allocation in memory, and fails when RLIMIT_MEMLOCK is reached.
func TestNothingIsLockedInMemory(t *testing.T) {
	for range 20 {
		newLink(t, linkOptions{}, "client", 0x0304, "ours")
	}
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(status), "VmLck:")
	require.True(t, found)
	require.Equal(t, "0", strings.Fields(rest)[0], "kB locked")
}

// An idle connection holds no record buffer, and after a peak the pool gives back what nobody uses.
func TestBuffersGoBack(t *testing.T) {
	const conns = 50
	links := make([]*link, conns)
	for i := range links {
		links[i] = newLink(t, linkOptions{}, "client", 0x0304, "ours")
		go echo(links[i].peer)
	}
	message := make([]byte, 200_000)
	for _, l := range links {
		go func() { _, _ = l.ours.Write(message) }()
		_, err := io.ReadFull(l.ours, make([]byte, len(message)))
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		for _, l := range links {
			if l.ours.State().NativeBytes > 20_000 {
				return false
			}
		}
		return true
	}, 2*time.Second, 10*time.Millisecond, "an idle connection holds no record buffer: %d bytes", links[0].ours.State().NativeBytes)
	t.Logf("an idle client connection holds %d bytes that s2n allocated", links[0].ours.State().NativeBytes)

	if cshim.BuildFlavour() == "asan" {
		return // no pool there: each buffer is malloc's own, so that a late use shows
	}
	peak := cshim.GetMemStats().PoolBytes
	require.Positive(t, peak, "buffers are kept for the next connection")
	cshim.MemTrim() // begins a period
	kept := cshim.MemTrim()
	t.Logf("the pool held %d KiB after the load and %d KiB after a period without", peak>>10, kept>>10)
	require.Zero(t, kept)
}
