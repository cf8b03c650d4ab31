package s2n_test

import (
	"context"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
)

// Handshakes of others hold up neither Close nor a context's end.
func TestNobodyWaitsBehindHandshakes(t *testing.T) {
	a, b := tcpPair(t)
	client, server := s2n.Client(a, clientConfig(t)), s2n.Server(b, serverConfig(t))
	clientErr, serverErr := handshakeBoth(client, server)
	require.NoError(t, clientErr)
	require.NoError(t, serverErr)

	leave := s2n.FillSlots()
	defer func() {
		if leave != nil {
			leave()
		}
	}()
	require.NoError(t, client.Close())
	require.NoError(t, server.Close())

	for _, pair := range []func() (net.Conn, net.Conn){
		func() (net.Conn, net.Conn) { return tcpPair(t) },
		func() (net.Conn, net.Conn) { return net.Pipe() },
	} {
		a, b := pair()
		defer b.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		conn := s2n.Client(a, clientConfig(t))
		require.ErrorIs(t, conn.HandshakeContext(ctx), context.DeadlineExceeded)
		require.ErrorIs(t, conn.Handshake(), context.DeadlineExceeded)
		_, err := a.Write([]byte{1})
		require.ErrorContains(t, err, "closed") // for good
	}

	// Close while the handshake waits for its turn: both end.
	a, b = tcpPair(t)
	defer b.Close()
	conn := s2n.Client(a, clientConfig(t))
	done := make(chan error, 1)
	go func() { done <- conn.Handshake() }()
	time.Sleep(10 * time.Millisecond)
	require.NoError(t, conn.Close())
	leave()
	leave = nil
	require.ErrorIs(t, <-done, net.ErrClosed)
}

// A handshake whose peer answers while all slots are taken goes on when one is free.
func TestWokenWithoutASlot(t *testing.T) {
	a, b := tcpPair(t)
	conn, peer := s2n.Client(a, clientConfig(t)), goServer(b)
	defer conn.Close()
	defer peer.Close()
	done := make(chan error, 2)
	go func() { done <- conn.Handshake() }()
	time.Sleep(20 * time.Millisecond) // the ClientHello is sent, and its answer waited for
	leave := s2n.FillSlots()
	go func() { done <- peer.Handshake() }()
	time.Sleep(20 * time.Millisecond)
	require.Empty(t, done)
	leave()
	require.NoError(t, <-done)
	require.NoError(t, <-done)
}

// As many handshakes at once as GOMAXPROCS says now, and not as it said at the start.
func TestSlotsFollowGOMAXPROCS(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer func() {
		runtime.GOMAXPROCS(before)
		s2n.UseSlots(2048)
	}()
	runtime.GOMAXPROCS(before + 3)
	s2n.UseSlots(2048)
	assert.Equal(t, before+4, s2n.Slots())
}

// However a context's end and the handshake's meet, all calls say the same afterwards.
func TestContextEndsWithTheHandshake(t *testing.T) {
	config, server := clientConfig(t), serverConfig(t)
	failed := 0
	for i := range 300 {
		a, b := tcpPair(t)
		peer := s2n.Server(b, server)
		go func() { _ = peer.Handshake() }()
		conn := s2n.Client(a, config)
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(500+i*10)*time.Microsecond)
		err := conn.HandshakeContext(ctx)
		cancel()
		if err != nil {
			failed++
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, err, conn.Handshake())
			require.False(t, conn.ConnectionState().HandshakeComplete)
		} else {
			require.NoError(t, conn.Handshake())
			require.True(t, conn.ConnectionState().HandshakeComplete)
		}
		_ = conn.Close()
		_ = peer.Close()
	}
	t.Logf("%d of 300 ended by their context", failed)
}

// CloseWrite comes after a Write that runs, however long that takes, and hurts it not.
func TestCloseWriteWaitsForWrite(t *testing.T) {
	a, b := tcpPair(t)
	client, server := s2n.Client(a, clientConfig(t)), s2n.Server(b, serverConfig(t))
	defer client.Close()
	defer server.Close()
	clientErr, serverErr := handshakeBoth(client, server)
	require.NoError(t, clientErr)
	require.NoError(t, serverErr)
	const size = 32 << 20
	wrote, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := client.Write(make([]byte, size))
		wrote <- err
	}()
	time.Sleep(100 * time.Millisecond) // the Write is stuck: nobody reads
	go func() { closed <- client.CloseWrite() }()
	time.Sleep(5500 * time.Millisecond) // longer than CloseWrite gives its own message
	require.NoError(t, server.SetReadDeadline(time.Now().Add(20*time.Second)))
	n, err := io.Copy(io.Discard, server)
	require.NoError(t, err)
	require.EqualValues(t, size, n)
	require.NoError(t, <-wrote)
	require.NoError(t, <-closed)
}
