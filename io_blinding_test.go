package s2n_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
)

// A record that did not decrypt: the caller has the error at once, no thread waits, and with
// BlindingDelay neither alert nor close is seen before s2n's delay is over.
func TestBlinding(t *testing.T) {
	t.Run("off", func(t *testing.T) {
		ours, peer := newRawPeer(t, "server", func(c *s2n.Config) { c.Blinding = s2n.BlindingOff })
		bad := peer.data("x")
		bad[len(bad)-1] ^= 1
		peer.send(bad)
		_, err := ours.Read(make([]byte, 1))
		require.ErrorContains(t, err, "S2N_ERR_DECRYPT")
		require.Equal(t, "bad record MAC", peer.alert())
		require.NoError(t, ours.Close())
	})
	t.Run("delay", func(t *testing.T) {
		if testing.Short() {
			t.Skip("s2n's delay of 10 to 30 seconds is not waited for with -short")
		}
		t.Parallel()
		ours, peer := newRawPeer(t, "server", func(c *s2n.Config) { c.Blinding = s2n.BlindingDelay })
		bad := peer.data("x")
		bad[len(bad)-1] ^= 1
		before := threads(t)
		start := time.Now()
		peer.send(bad)
		_, err := ours.Read(make([]byte, 1))
		require.ErrorContains(t, err, "S2N_ERR_DECRYPT")
		require.Less(t, time.Since(start), time.Second, "the caller has its error at once")
		_, err = ours.Write([]byte("x"))
		require.Error(t, err)
		require.NoError(t, ours.Close())
		require.Less(t, time.Since(start), 2*time.Second, "Close does not wait")
		require.ErrorIs(t, ours.Close(), net.ErrClosed)
		_, err = ours.Read(make([]byte, 1))
		require.ErrorIs(t, err, net.ErrClosed)
		require.LessOrEqual(t, threads(t), before+2)
		require.NoError(t, peer.conn.SetReadDeadline(time.Now().Add(35*time.Second)))
		_, err = io.Copy(io.Discard, peer.tls)
		waited := time.Since(start)
		require.ErrorContains(t, err, "bad record MAC")
		require.Greater(t, waited, 9*time.Second)
		require.Less(t, waited, 32*time.Second)
		// and then the socket is closed
		require.NoError(t, peer.conn.SetReadDeadline(time.Now().Add(5*time.Second)))
		_, err = peer.conn.Read(make([]byte, 1))
		require.Equal(t, io.EOF, err)
	})
}

// What is no failed decryption is told and closed at once, also with BlindingDelay.
func TestNoBlindingForOtherErrors(t *testing.T) {
	ours, peer := newRawPeer(t, "server", func(c *s2n.Config) { c.Blinding = s2n.BlindingDelay })
	peer.send(peer.record(typeHandshake, []byte{11, 0, 0, 1, 0}, 0))
	_, err := ours.Read(make([]byte, 1))
	require.Error(t, err)
	require.Equal(t, "unexpected message", peer.alert())
	require.NoError(t, ours.Close())
	require.NoError(t, peer.conn.SetReadDeadline(time.Now().Add(2*time.Second)))
	_, err = peer.conn.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err)
}
