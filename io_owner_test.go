package s2n_test

import (
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
)

// ownedOnly is a RawConn whose descriptor is the socket's only inside of Read and
// Write. Outside its number is a stranger's, as after a Close by somebody else.
type ownedOnly struct {
	syscall.RawConn
	t              *testing.T
	real, stranger int
}

func (o *ownedOnly) inside(call func(fd uintptr) bool) func(fd uintptr) bool {
	return func(fd uintptr) bool {
		require.NoError(o.t, syscall.Dup3(o.real, int(fd), 0))
		defer func() { require.NoError(o.t, syscall.Dup3(o.stranger, int(fd), 0)) }()
		return call(fd)
	}
}

func (o *ownedOnly) Read(call func(fd uintptr) bool) error  { return o.RawConn.Read(o.inside(call)) }
func (o *ownedOnly) Write(call func(fd uintptr) bool) error { return o.RawConn.Write(o.inside(call)) }

// Whatever a connection does, it touches its socket only where nobody can close it.
func TestSocketIsTouchedOnlyWhileOwned(t *testing.T) {
	a, b := tcpPair(t)
	server := s2n.Server(b, serverConfig(t))
	defer server.Close()
	client := s2n.Client(a, clientConfig(t))

	strangers, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK, 0)
	require.NoError(t, err)
	defer syscall.Close(strangers[0])
	defer syscall.Close(strangers[1])
	raw, err := a.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	owned := &ownedOnly{t: t, stranger: strangers[0]}
	require.NoError(t, raw.Control(func(fd uintptr) {
		owned.real, err = syscall.Dup(int(fd))
		require.NoError(t, err)
		require.NoError(t, syscall.Dup3(owned.stranger, int(fd), 0))
	}))
	defer syscall.Close(owned.real)
	defer client.Close()
	client.SwapRaw(func(raw syscall.RawConn) syscall.RawConn { owned.RawConn = raw; return owned })
	untouched := func(after string) {
		t.Helper()
		var buf [100]byte
		n, err := syscall.Read(strangers[1], buf[:])
		assert.Equal(t, syscall.EAGAIN, err, "%s: %d bytes went to a stranger", after, n)
	}

	go echo(server)
	require.NoError(t, client.Handshake())
	untouched("Handshake")
	big := make([]byte, 300_000)
	for _, size := range []int{1, len(big)} {
		written := make(chan error, 1)
		_, err = client.Write(big[:size])
		written <- err
		require.NoError(t, <-written)
		_, err = io.ReadFull(client, big[:size])
		require.NoError(t, err)
		untouched("Write and Read")
	}
	require.NoError(t, client.KeyUpdate())
	untouched("KeyUpdate")
	client.Abort(80)
	untouched("an alert")
	_ = client.CloseWrite()
	untouched("CloseWrite")
}
