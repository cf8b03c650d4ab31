package side

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// memPair is a connection in memory: a Write is done when the bytes are in the
// peer's buffer, as with a socket, and net.Pipe is not.
func memPair() (client, server net.Conn) {
	a, b := newMemBuf(), newMemBuf()
	return &memConn{in: a, out: b}, &memConn{in: b, out: a}
}

type memConn struct{ in, out *memBuf }

type memBuf struct {
	mu     sync.Mutex
	ready  sync.Cond
	buf    []byte
	start  int
	closed bool
}

func newMemBuf() *memBuf {
	b := &memBuf{buf: make([]byte, 0, 8<<10)}
	b.ready.L = &b.mu
	return b
}

func (c *memConn) Read(p []byte) (int, error) {
	b := c.in
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.start == len(b.buf) && !b.closed {
		b.ready.Wait()
	}
	if b.start == len(b.buf) {
		return 0, io.EOF
	}
	n := copy(p, b.buf[b.start:])
	b.start += n
	if b.start == len(b.buf) {
		b.buf, b.start = b.buf[:0], 0
	}
	return n, nil
}

func (c *memConn) Write(p []byte) (int, error) {
	b := c.out
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, net.ErrClosed
	}
	b.buf = append(b.buf, p...)
	b.ready.Signal()
	return len(p), nil
}

// Close ends both directions; what was written can still be read.
func (c *memConn) Close() error {
	for _, b := range []*memBuf{c.in, c.out} {
		b.mu.Lock()
		b.closed = true
		b.ready.Broadcast()
		b.mu.Unlock()
	}
	return nil
}

type memAddr struct{}

func (memAddr) Network() string { return "mem" }
func (memAddr) String() string  { return "mem" }

func (c *memConn) LocalAddr() net.Addr              { return memAddr{} }
func (c *memConn) RemoteAddr() net.Addr             { return memAddr{} }
func (c *memConn) SetDeadline(time.Time) error      { return nil }
func (c *memConn) SetReadDeadline(time.Time) error  { return nil }
func (c *memConn) SetWriteDeadline(time.Time) error { return nil }

// captureConn keeps what is written first, and then is broken.
type captureConn struct {
	memConn
	first []byte
}

var errCaptured = errors.New("the ClientHello is all that was wanted")

func (c *captureConn) Write(p []byte) (int, error) {
	if c.first == nil {
		c.first = append([]byte{}, p...)
		return len(p), nil
	}
	return 0, errCaptured
}

func (c *captureConn) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }
