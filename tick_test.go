package s2n_test

import (
	"io"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
	"github.com/s2n-go/s2n/cshim"
)

// Calls into C that last long tell Go's scheduler that they go on, short ones spare it.
func TestLongCallsTick(t *testing.T) {
	var n atomic.Uint64
	cshim.CountTicks(&n)
	defer cshim.CountTicks(nil)
	ticks := func() uint64 { return n.Swap(0) }

	a, b := tcpPair(t)
	client, server := s2n.Client(a, clientConfig(t)), s2n.Server(b, serverConfig(t))
	defer client.Close()
	defer server.Close()
	clientErr, serverErr := handshakeBoth(client, server)
	require.NoError(t, clientErr)
	require.NoError(t, serverErr)
	// The client: two or three keys, two shared secrets, the chain, the signature. The
	// server: a key, two shared secrets, a signature. Before and after each.
	assert.GreaterOrEqual(t, ticks(), uint64(2*(2+2+2+4)))

	buf := make([]byte, 1<<20)
	read := make(chan error, 1)
	receive := func(size int) {
		_, err := io.ReadFull(server, buf[:size])
		read <- err
	}
	go receive(128)
	_, err := client.Write(make([]byte, 128))
	require.NoError(t, err)
	require.NoError(t, <-read)
	assert.Zero(t, ticks())

	go receive(len(buf))
	_, err = client.Write(make([]byte, len(buf)))
	require.NoError(t, err)
	require.NoError(t, <-read)
	assert.GreaterOrEqual(t, ticks(), uint64(2*8)) // 128 KiB a send
}
