package s2n

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/s2n-go/s2n/cshim"
)

const (
	// One crossing into C takes at most this much, so that a long Write can be closed.
	writeChunk = 1 << 20
	// The buffer transport holds the records of one chunk in C.
	bufferChunk = 128 << 10
)

// writeState is what the writing side keeps beside its half. Under out's lock.
type writeState struct {
	closed  bool        // close_notify, or an alert, was sent
	pending atomic.Bool // the reader left something to flush while the lock was held
	streak  int         // bytes written since the last yield, a call counting as callBytes
}

// A writer whom nothing stops yields after so many bytes, long before the 10 ms after
// which Go would take its P away in the middle of a call into C: cshim/src/tick.c.
const (
	yieldAfter = 1 << 20
	callBytes  = 2 << 10
)

// setAttempts makes the functions that the poller calls. An attempt must be made
// inside RawConn.Read or Write: state read before could miss a wake-up.
func (c *Conn) setAttempts() {
	c.in.attempt = func(uintptr) bool {
		c.in.res = c.shim.Read(c.in.buf)
		return c.in.res.Status != cshim.WantRead || c.in.res.N > 0 || c.in.res.WantFlush()
	}
	c.out.attempt = func(uintptr) bool {
		c.out.res = c.shim.Write(c.out.buf)
		c.out.n += c.out.res.N
		c.out.buf = c.out.buf[c.out.res.N:]
		return c.out.res.Status != cshim.WantWrite
	}
}

// Read reads decrypted bytes, s2n_recv. It returns what is there, up to len(b), from
// as many records as that takes. io.EOF is the peer's close_notify;
// io.ErrUnexpectedEOF is a transport that ended without it, now and for ever after.
func (c *Conn) Read(b []byte) (int, error) {
	if err := c.Handshake(); err != nil {
		return 0, err
	}
	if len(b) == 0 {
		return 0, nil
	}
	c.in.Lock()
	defer c.in.Unlock()
	if !c.shim.Acquire() {
		return 0, closedError("read")
	}
	defer c.shim.Release()
	r, err := c.readResult(b)
	if r.N > 0 {
		return r.N, nil
	}
	if r.Status == cshim.CloseNotify {
		c.peerClosed.Store(true)
	}
	if c.active.Load()&1 != 0 && (err != nil || r.Status != cshim.CloseNotify) {
		return 0, closedError("read")
	}
	if err != nil {
		return 0, transportError("read", err)
	}
	return 0, c.resultError("read", r)
}

// readResult reads until there is data, or nothing more to wait for.
func (c *Conn) readResult(b []byte) (cshim.Result, error) {
	for {
		var r cshim.Result
		if c.raw != nil {
			c.in.buf = b
			err := c.raw.Read(c.in.attempt)
			c.in.buf = nil
			if err != nil {
				return cshim.Result{}, err
			}
			r = c.in.res
		} else {
			r = c.shim.Read(b)
		}
		if r.WantFlush() || r.Delay > 0 {
			c.flushFromReader(&r)
		}
		if r.N > 0 || r.Status != cshim.WantRead {
			return r, nil
		}
		if c.raw == nil {
			if err := c.fill(); err != nil {
				return cshim.Result{}, err
			}
		}
	}
}

// fill reads from a transport of buffers, straight into C memory. A transport's end
// is noted in C; any other error is returned and nothing is lost by it.
func (c *Conn) fill() error {
	space := c.shim.InSpace()
	if len(space) == 0 {
		return errors.New("out of memory")
	}
	n, err := c.conn.Read(space)
	if n > 0 {
		c.shim.InFilled(n)
		return nil // an error comes again with the next Read
	}
	if err == io.EOF {
		c.shim.InFilled(0)
		return nil
	}
	return err
}

// drain writes the ciphertext that waits in C to a transport of buffers.
func (c *Conn) drain() error {
	for {
		out := c.shim.Out()
		if len(out) == 0 {
			return nil
		}
		n, err := c.conn.Write(out)
		if n > 0 {
			c.shim.OutSent(n)
		}
		if err != nil {
			return err
		}
	}
}

// flushFromReader sends what reading left to send: the answer to a key update, a
// warning, or the alert for a bad record. A reader must not wait for a writer, so
// whoever holds the writing side does it if the reader cannot.
func (c *Conn) flushFromReader(r *cshim.Result) {
	if r.Delay > 0 {
		c.blindFor(r.Delay)
		return
	}
	c.write.pending.Store(true)
	if c.raw != nil {
		c.flushPending()
		return
	}
	// A write to net.Pipe lasts until the peer reads.
	if x := c.active.Add(2); x&1 != 0 {
		c.active.Add(-2)
		return
	}
	go func() {
		defer c.active.Add(-2)
		c.flushPending()
	}()
}

// flushPending does the flush that somebody asked for, if the writing side is free;
// if not, its holder calls this after unlocking.
func (c *Conn) flushPending() {
	for c.write.pending.Load() && c.out.TryLock() {
		if c.write.pending.Swap(false) && c.out.err == nil && !c.write.closed && c.shim.Acquire() {
			c.flushLocked()
			c.shim.Release()
		}
		c.out.Unlock()
	}
}

func (c *Conn) flushLocked() {
	var r cshim.Result
	flush := func() cshim.Result {
		if r = c.shim.Flush(); r.Status == cshim.OK {
			r = c.shim.SendAlert() // only if the reader failed
		}
		return r
	}
	if c.raw != nil {
		// One attempt: what does not fit leaves with the next write.
		_ = c.raw.Write(func(uintptr) bool { flush(); return true })
		return
	}
	flush()
	if err := c.drain(); err != nil {
		c.out.err = transportError("write", err)
	}
}

// Write encrypts and sends b, s2n_send. It returns when all of b is with the
// transport, or an error says why not and how much is; after an error every Write
// returns it.
func (c *Conn) Write(b []byte) (int, error) {
	// The rule of crypto/tls: Close must know of writers, and no writer may begin after it.
	for {
		x := c.active.Load()
		if x&1 != 0 {
			return 0, closedError("write")
		}
		if c.active.CompareAndSwap(x, x+2) {
			break
		}
	}
	defer c.active.Add(-2)
	if err := c.Handshake(); err != nil {
		return 0, err
	}
	c.out.Lock()
	n, err := c.writeLocked(b)
	c.out.Unlock()
	if c.write.pending.Load() {
		c.flushPending()
	}
	return n, err
}

func (c *Conn) writeLocked(b []byte) (int, error) {
	if c.out.err != nil {
		return 0, c.out.err
	}
	if c.write.closed {
		return 0, &Error{Op: "write", Kind: KindClosed, Message: "protocol is shutdown: CloseWrite was called", Err: net.ErrClosed}
	}
	if len(b) == 0 {
		return 0, nil
	}
	if !c.shim.Acquire() {
		return 0, closedError("write")
	}
	defer c.shim.Release()
	chunk := writeChunk
	write := c.writeSocket
	if c.raw == nil {
		chunk, write = bufferChunk, c.writeBuffered
	}
	total := 0
	for len(b) > 0 {
		n, err := write(b[:min(len(b), chunk)])
		total += n
		b = b[n:]
		if err != nil {
			c.out.err = err
			return total, err
		}
		if c.write.streak += n + callBytes; c.write.streak >= yieldAfter {
			c.write.streak = 0
			runtime.Gosched()
		}
	}
	return total, nil
}

func (c *Conn) writeSocket(b []byte) (int, error) {
	c.out.buf, c.out.n = b, 0
	err := c.raw.Write(c.out.attempt)
	n := c.out.n
	c.out.buf = nil
	if err != nil {
		return n, writeError(err)
	}
	return n, c.writeResultError(c.out.res)
}

func (c *Conn) writeBuffered(b []byte) (int, error) {
	r := c.shim.Write(b)
	if r.Status != cshim.OK && r.Status != cshim.WantWrite {
		return 0, c.writeResultError(r)
	}
	if err := c.drain(); err != nil {
		return 0, writeError(err)
	}
	return r.N, nil
}

func (c *Conn) writeResultError(r cshim.Result) error {
	if r.Status == cshim.OK {
		return nil
	}
	if c.active.Load()&1 != 0 {
		return closedError("write")
	}
	return c.resultError("write", r)
}

func writeError(err error) error {
	e := transportError("write", err).(*Error)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		e.Message = "a record may have left in part, so this connection cannot be written to any more"
	}
	return e
}

// KeyUpdate changes our sending key and tells the peer at once (RFC 8446, 4.6.3;
// s2n_connection_request_key_update). An error in TLS 1.2, which has none.
func (c *Conn) KeyUpdate() error {
	if err := c.Handshake(); err != nil {
		return err
	}
	if c.info.Load().Version != 0x0304 {
		return configError("key update", "TLS 1.2 has no key updates")
	}
	c.out.Lock()
	defer c.out.Unlock()
	return c.controlLocked("key update", c.shim.KeyUpdate)
}

// closeNotify sends close_notify once, for 5 seconds at most. It waits for the
// writing side; whoever closes for good bounds that, too.
func (c *Conn) closeNotify(forGood bool) error {
	deadline := c.closeDeadline()
	if forGood {
		_ = c.conn.SetWriteDeadline(deadline)
	}
	c.out.Lock()
	defer c.out.Unlock()
	if c.out.err != nil {
		if forGood {
			return nil // the stream broke off; a clean end would be a lie
		}
		return c.out.err
	}
	if !forGood {
		deadline = c.closeDeadline()
	}
	_ = c.conn.SetWriteDeadline(deadline)
	defer func() { _ = c.conn.SetWriteDeadline(c.callerDeadline()) }()
	err := c.controlLocked("close", func() cshim.Result {
		if c.write.closed {
			return cshim.Result{}
		}
		return c.shim.CloseWrite()
	})
	c.write.closed = true
	return err
}

// controlLocked sends a message of TLS's own, by the writing side.
func (c *Conn) controlLocked(op string, send func() cshim.Result) error {
	if c.out.err != nil {
		return c.out.err
	}
	if !c.shim.Acquire() {
		return closedError(op)
	}
	defer c.shim.Release()
	r, err := c.sendControl(send)
	switch {
	case err != nil:
		err = transportError(op, err)
	case r.Status != cshim.OK:
		err = c.resultError(op, r)
	default:
		return nil
	}
	c.out.err = err
	return err
}

func (c *Conn) sendControl(send func() cshim.Result) (r cshim.Result, err error) {
	if c.raw == nil {
		if r = send(); r.Status == cshim.OK || r.Status == cshim.WantWrite {
			err = c.drain()
			r.Status = cshim.OK
		}
		return r, err
	}
	begun := false
	err = c.raw.Write(func(uintptr) bool {
		if !begun {
			r, begun = send(), true
		} else {
			r = c.shim.Flush()
		}
		return r.Status != cshim.WantWrite
	})
	return r, err
}

func (c *Conn) callerDeadline() time.Time {
	if own := c.writeDeadline.Load(); own != 0 {
		return time.Unix(0, own)
	}
	return time.Time{}
}

// copyBufs serve ReadFrom and WriteTo: eight full records.
var copyBufs = sync.Pool{New: func() any { b := make([]byte, bufferChunk); return &b }}

// WriteTo writes all that the peer sends to w, until its close_notify; for io.Copy.
func (c *Conn) WriteTo(w io.Writer) (int64, error) {
	buf := copyBufs.Get().(*[]byte)
	defer copyBufs.Put(buf)
	var total int64
	for {
		n, err := c.Read(*buf)
		if n > 0 {
			m, werr := w.Write((*buf)[:n])
			total += int64(m)
			if werr != nil {
				return total, werr
			}
			if m < n {
				return total, io.ErrShortWrite
			}
		}
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// ReadFrom sends all that r gives, as it comes; for io.Copy.
func (c *Conn) ReadFrom(r io.Reader) (int64, error) {
	buf := copyBufs.Get().(*[]byte)
	defer copyBufs.Put(buf)
	var total int64
	for {
		n, err := r.Read(*buf)
		if n > 0 {
			m, werr := c.Write((*buf)[:n])
			total += int64(m)
			if werr != nil {
				return total, werr
			}
		}
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}
