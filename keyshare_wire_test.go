package s2n_test

import (
	"encoding/binary"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
)

// The ClientHello and ServerHello as they are on the wire, read by a parser that
// shares nothing with the code under test (RFC 8446, 4 and 5.1).

const (
	helloClient = 1
	helloServer = 2

	extSupportedGroups = 10
	extKeyShare        = 51
)

// wireShare is one KeyShareEntry and where its key lies in the stream.
type wireShare struct {
	group s2n.Group
	key   []byte
	at    int
}

type wireHello struct {
	session []byte
	groups  []s2n.Group // a ClientHello's supported_groups
	shares  []wireShare
}

// cursor reads big-endian numbers and vectors, and stops the test at an end it does not expect.
type cursor struct {
	t  testing.TB
	b  []byte
	at int // of b[0] in the stream
}

func (c *cursor) take(n int) []byte {
	c.t.Helper()
	require.LessOrEqual(c.t, n, len(c.b))
	v := c.b[:n]
	c.b, c.at = c.b[n:], c.at+n
	return v
}

func (c *cursor) u8() int  { return int(c.take(1)[0]) }
func (c *cursor) u16() int { return int(binary.BigEndian.Uint16(c.take(2))) }
func (c *cursor) vector(n int) *cursor {
	at := c.at
	return &cursor{c.t, c.take(n), at}
}

// hellos are the ClientHellos (or ServerHellos and HelloRetryRequests) of a stream,
// which must not be split over records.
func hellos(t testing.TB, stream []byte, kind int) []wireHello {
	t.Helper()
	var all []wireHello
	for r := (&cursor{t, stream, 0}); len(r.b) >= 5; {
		record := r.u8()
		r.take(2)
		n := r.u16()
		if n > len(r.b) {
			break // not all of it is there yet
		}
		body := r.vector(n)
		if record != typeHandshake {
			continue
		}
		for len(body.b) > 0 {
			message := body.u8()
			body.take(1)
			m := body.vector(body.u16())
			if message == kind {
				all = append(all, parseHello(t, m, kind))
			}
		}
	}
	return all
}

func parseHello(t testing.TB, m *cursor, kind int) (h wireHello) {
	t.Helper()
	m.take(2 + 32)
	h.session = m.take(m.u8())
	if kind == helloClient {
		m.take(m.u16()) // suites
		m.take(m.u8())  // compression
	} else {
		m.take(2 + 1)
	}
	for e := m.vector(m.u16()); len(e.b) > 0; {
		id := e.u16()
		x := e.vector(e.u16())
		switch id {
		case extSupportedGroups:
			for g := x.vector(x.u16()); len(g.b) > 0; {
				h.groups = append(h.groups, s2n.Group(g.u16()))
			}
		case extKeyShare:
			list := x
			if kind == helloClient {
				list = x.vector(x.u16())
			}
			for len(list.b) > 0 {
				s := wireShare{group: s2n.Group(list.u16())}
				if len(list.b) > 0 { // a HelloRetryRequest has the group alone
					key := list.vector(list.u16())
					s.key, s.at = key.b, key.at
				}
				h.shares = append(h.shares, s)
			}
			require.Empty(t, x.b, "after the shares")
		}
	}
	require.Empty(t, m.b, "after the extensions")
	return h
}

// hybridLayout is how a hybrid's share is made up, by its standard: where the curve's
// key is in a client's and in a server's.
var hybridLayout = map[s2n.Group]struct{ from, to, serverFrom, serverTo int }{
	s2n.X25519MLKEM768:     {1184, 1216, 1088, 1120},
	s2n.SecP256r1MLKEM768:  {0, 65, 0, 65},
	s2n.SecP384r1MLKEM1024: {0, 97, 0, 97},
}

// shareSize is that of a client's share.
var shareSize = map[s2n.Group]int{
	s2n.P256: 65, s2n.P384: 97, s2n.P521: 133, s2n.X25519: 32, s2n.MLKEM1024: 1568,
	s2n.X25519MLKEM768: 1216, s2n.SecP256r1MLKEM768: 65 + 1184, s2n.SecP384r1MLKEM1024: 97 + 1568,
}

// curveKey and kemKey are the two halves of a client's hybrid share.
func (s wireShare) curveKey() []byte {
	l := hybridLayout[s.group]
	return s.key[l.from:l.to]
}

func (s wireShare) kemKey() []byte {
	l := hybridLayout[s.group]
	if l.from == 0 {
		return s.key[l.to:]
	}
	return s.key[:l.from]
}

// tapConn keeps what passes, and calls a hook before each Read: where the handshake
// waits for the peer.
type tapConn struct {
	net.Conn
	mu         sync.Mutex
	sent, got  []byte
	beforeRead func()
}

func (c *tapConn) Read(b []byte) (int, error) {
	if c.beforeRead != nil {
		c.beforeRead()
	}
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, b[:n]...)
	return n, err
}

func (c *tapConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	c.sent = append(c.sent, b...)
	c.mu.Unlock()
	return c.Conn.Write(b)
}

func (c *tapConn) clientHellos(t testing.TB) []wireHello {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	return hellos(t, c.sent, helloClient)
}
