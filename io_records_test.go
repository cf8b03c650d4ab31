package s2n_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
)

func readString(t testing.TB, r io.Reader, n int) string {
	t.Helper()
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	require.NoError(t, err)
	return string(b)
}

func TestEmptyRecordsAreSkipped(t *testing.T) {
	for _, role := range []string{"client", "server"} {
		ours, peer := newRawPeer(t, role, nil)
		peer.send(peer.data(""), peer.record(typeData, nil, 100), peer.data("after"))
		require.Equal(t, "after", readString(t, ours, 5))
	}
}

func TestPaddedRecords(t *testing.T) {
	ours, peer := newRawPeer(t, "client", nil)
	peer.send(peer.record(typeData, []byte("padded"), 9000))
	require.Equal(t, "padded", readString(t, ours, 6))
}

func TestFiveRecordsInOneSegmentWithASmallBuffer(t *testing.T) {
	ours, peer := newRawPeer(t, "server", nil)
	peer.send(peer.data("record one "), peer.data("2"), peer.data("record number three "), peer.data("4444"), peer.data("the fifth"))
	want := "record one 2record number three 4444the fifth"
	got := ""
	for len(got) < len(want) {
		b := make([]byte, 10)
		n, err := ours.Read(b)
		require.NoError(t, err)
		require.Positive(t, n)
		got += string(b[:n])
	}
	require.Equal(t, want, got)
}

// What the peer sent before it failed is the caller's, and then the error is.
func TestDataBeforeAnErrorIsNotLost(t *testing.T) {
	for name, bad := range map[string]func(p *rawPeer) []byte{
		"alert": func(p *rawPeer) []byte { return p.record(typeAlert, []byte{2, 80}, 0) },
		"garbage": func(p *rawPeer) []byte {
			return []byte{23, 3, 3, 0, 20, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}
		},
		"length":  func(p *rawPeer) []byte { return []byte{23, 3, 3, 0xff, 0xff, 1} },
		"message": func(p *rawPeer) []byte { return p.record(typeHandshake, []byte{11, 0, 0, 1, 0}, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			ours, peer := newRawPeer(t, "client", nil)
			peer.send(peer.data("kept"), bad(peer))
			b := make([]byte, 100)
			n, err := ours.Read(b)
			require.NoError(t, err)
			require.Equal(t, "kept", string(b[:n]))
			for range 3 { // for ever after
				_, err = ours.Read(b)
				require.Error(t, err)
				require.NotErrorIs(t, err, io.EOF)
				require.NotErrorIs(t, err, io.ErrUnexpectedEOF)
			}
		})
	}
}

func TestPeersAlertByName(t *testing.T) {
	for _, role := range []string{"client", "server"} {
		for code, name := range map[byte]string{80: "internal error", 20: "bad record MAC", 42: "bad certificate", 48: "unknown certificate authority", 49: "access denied", 200: "alert(200)"} {
			ours, peer := newRawPeer(t, role, nil)
			peer.send(peer.record(typeAlert, []byte{2, code}, 0))
			_, err := ours.Read(make([]byte, 1))
			var e *s2n.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, s2n.KindAlert, e.Kind)
			require.Equal(t, s2n.Alert(code), e.Alert)
			require.ErrorContains(t, err, "remote error: tls: "+name)
			alert, ok := errors.AsType[s2n.Alert](err)
			require.True(t, ok)
			require.Equal(t, s2n.Alert(code), alert)
		}
	}
}

func TestOurAlertReachesThePeerByName(t *testing.T) {
	for name, c := range map[string]struct {
		send func(p *rawPeer) []byte
		want string
	}{
		"decrypt":  {func(p *rawPeer) []byte { r := p.data("x"); r[len(r)-1] ^= 1; return r }, "bad record MAC"},
		"message":  {func(p *rawPeer) []byte { return p.record(typeHandshake, []byte{11, 0, 0, 1, 0}, 0) }, "unexpected message"},
		"overflow": {func(p *rawPeer) []byte { return []byte{23, 3, 3, 0xff, 0xff} }, "record overflow"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, role := range []string{"client", "server"} {
				ours, peer := newRawPeer(t, role, nil)
				peer.send(c.send(peer))
				_, err := ours.Read(make([]byte, 1))
				require.Error(t, err)
				require.Equal(t, c.want, peer.alert())
			}
		})
	}
}

func TestKeyUpdateFloodIsBounded(t *testing.T) {
	for _, role := range []string{"client", "server"} {
		ours, peer := newRawPeer(t, role, nil)
		go func() {
			for range 10_000 {
				if _, err := peer.conn.Write(peer.keyUpdate(0)); err != nil {
					return
				}
			}
		}()
		_, err := ours.Read(make([]byte, 1))
		require.ErrorContains(t, err, "too many records in a row")
		require.Equal(t, "unexpected message", peer.alert())
	}
}

func TestTicketFloodIsBounded(t *testing.T) {
	ours, peer := newRawPeer(t, "client", nil)
	go func() {
		for range 10_000 {
			if _, err := peer.conn.Write(peer.ticket()); err != nil {
				return
			}
		}
	}()
	_, err := ours.Read(make([]byte, 1))
	require.ErrorContains(t, err, "too many records in a row")
}

func TestAModestNumberOfKeyUpdatesAndTicketsWorks(t *testing.T) {
	ours, peer := newRawPeer(t, "client", nil)
	for range 5 {
		for range 15 {
			peer.send(peer.keyUpdate(0), peer.ticket())
		}
		peer.send(peer.data("through"))
		require.Equal(t, "through", readString(t, ours, 7))
	}
}

// A reader that is being flooded slowly can still be closed.
func TestFloodIsInterruptible(t *testing.T) {
	ours, peer := newRawPeer(t, "client", nil)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				// Data now and then: never enough of nothing to be an attack.
				_, _ = peer.conn.Write(append(peer.keyUpdate(0), peer.data("x")...))
			}
		}
	}()
	defer close(stop)
	readErr := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, ours)
		readErr <- err
	}()
	time.Sleep(50 * time.Millisecond)
	require.NoError(t, ours.Close())
	select {
	case err := <-readErr:
		require.Error(t, err)
	case <-time.After(time.Second):
		t.Fatal("the reader did not end within a second of Close")
	}
}

// The peer asks for our key update while we only read: it is answered at once.
func TestKeyUpdateRequestIsAnsweredByTheReader(t *testing.T) {
	for _, role := range []string{"client", "server"} {
		ours, peer := newRawPeer(t, role, nil)
		go func() { _, _ = ours.Read(make([]byte, 1)) }()
		peer.send(peer.keyUpdate(1))
		require.NoError(t, peer.conn.SetReadDeadline(time.Now().Add(2*time.Second)))
		header := make([]byte, 5)
		_, err := io.ReadFull(peer.conn, header)
		require.NoError(t, err, "no answer to the key update")
		require.Equal(t, byte(typeData), header[0])
		require.Equal(t, byte(5+1+16), header[4], "a KeyUpdate record")
	}
}

func TestKeyUpdateOfOurs(t *testing.T) {
	for _, role := range []string{"client", "server"} {
		for _, peer := range []string{"go", "ours"} {
			l := newLink(t, linkOptions{}, role, 0x0304, peer)
			go echo(l.peer)
			for range 40 {
				require.NoError(t, l.ours.KeyUpdate())
				_, err := l.ours.Write([]byte("hello"))
				require.NoError(t, err)
				require.Equal(t, "hello", readString(t, l.ours, 5))
			}
		}
	}
	l := newLink(t, linkOptions{}, "client", 0x0303, "go")
	require.ErrorContains(t, l.ours.KeyUpdate(), "TLS 1.2 has no key updates")
	_, err := l.ours.Write([]byte("and goes on"))
	require.NoError(t, err)
}
