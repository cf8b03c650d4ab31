package s2n

import (
	"context"
	"crypto/x509"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/s2n-go/s2n/cshim"
)

// Conn is one side of a TLS connection, a net.Conn. One Read and one Write may run
// at once (more wait for each other), and any number of other calls beside them.
//
// The C object behind it is made by the handshake and owned by the Conn. It dies
// with Close, when the last call inside is out, or, if a Conn is dropped without
// Close, when the garbage collector finds that.
type Conn struct {
	conn   net.Conn
	config *Config
	role   uint8
	name   string // what the server's certificate must say
	sni    string

	// The socket transport. nil: any other net.Conn, whose bytes go through buffers.
	raw syscall.RawConn

	handshakeMu  sync.Mutex
	handshakeErr error // sticky
	done         atomic.Bool
	shim         *cshim.Conn // set once, under handshakeMu, before done
	shimPtr      atomic.Pointer[cshim.Conn]
	info         atomic.Pointer[cshim.ConnInfo]
	lastCounts   atomic.Pointer[cshim.Counts]

	peerCerts      []*x509.Certificate // set before info
	verifiedChains [][]*x509.Certificate

	in    half
	out   half
	write writeState
	blind blindState

	// Bit 0: Close was called. The rest: twice the number of writers inside, so that
	// Close knows whether its close_notify would wait behind one.
	active atomic.Int32

	peerClosed    atomic.Bool  // its close_notify was read
	writeDeadline atomic.Int64 // UnixNano as the caller set it; 0: none
}

// half is what one direction of the socket transport needs. The attempt is a
// function made once, so that parking in the poller costs no allocation.
type half struct {
	sync.Mutex
	err     error // sticky
	buf     []byte
	n       int
	res     cshim.Result
	attempt func(fd uintptr) bool
}

func newConn(conn net.Conn, config *Config, role uint8, name string) *Conn {
	if config == nil {
		config = &defaultConfig
	}
	if name == "" {
		name = config.ServerName
	}
	c := &Conn{conn: conn, config: config, role: role, name: name}
	switch t := conn.(type) {
	// Only these two themselves: a type that embeds one may do more in its Read.
	case *net.TCPConn:
		c.raw, _ = t.SyscallConn()
	case *net.UnixConn:
		c.raw, _ = t.SyscallConn()
	}
	if role == roleClient {
		c.sni, _ = serverNameToSend(name)
	}
	return c
}

// Handshake runs the handshake if it has not run; Read and Write do it by themselves.
func (c *Conn) Handshake() error { return c.HandshakeContext(context.Background()) }

// HandshakeContext is Handshake bounded by ctx. When ctx is done it returns ctx's
// error at once and the connection is closed for good. After a failed handshake
// every call returns its error. Negotiation is s2n_negotiate.
func (c *Conn) HandshakeContext(ctx context.Context) error {
	if c.done.Load() {
		return nil
	}
	c.handshakeMu.Lock()
	defer c.handshakeMu.Unlock()
	if c.done.Load() {
		return nil
	}
	if c.handshakeErr != nil {
		return c.handshakeErr
	}
	stop := func() bool { return true }
	var closed chan struct{}
	if ctx.Done() != nil {
		closed = make(chan struct{})
		stop = context.AfterFunc(ctx, func() {
			_ = c.conn.Close()
			close(closed)
		})
	}
	info, err := c.handshake(ctx)
	if !stop() {
		<-closed
		err = ctx.Err()
	} else if err != nil && err == ctx.Err() { // seen before the AfterFunc began
		_ = c.conn.Close()
	}
	if err == nil {
		c.info.Store(info)
		c.done.Store(true)
		if c.raw == nil {
			// Two goroutines that wake each other share one time slice, and at its end Go
			// would take the P from whatever call is in C: cshim/src/tick.c.
			runtime.Gosched()
		}
	} else {
		c.handshakeErr = err
		if shim := c.shim; shim != nil && c.blind.until.Load() == 0 {
			c.freeShim(shim)
		}
	}
	return err
}

// start makes the C object.
func (c *Conn) start(ctx context.Context) error {
	if c.active.Load()&1 != 0 {
		return closedError("handshake")
	}
	compiled, err := c.config.compile(c.role)
	if err != nil {
		return err
	}
	if c.role == roleClient {
		if c.name == "" && !c.config.InsecureSkipVerify {
			return configError("handshake", "either ServerName or InsecureSkipVerify must be set in the Config of a client")
		}
		if _, err := serverNameToSend(c.name); err != nil {
			return err
		}
	}
	fd := -1
	if c.raw != nil {
		if err := c.raw.Control(func(f uintptr) { fd = int(f) }); err != nil {
			return transportError("handshake", err)
		}
	}
	var shim *cshim.Conn
	var r cshim.Result
	if err := inSlot(ctx, func() { shim, r = cshim.NewConn(compiled, fd, c.sni) }); err != nil {
		return err
	}
	if r.Status != cshim.OK {
		return s2nError("handshake", r)
	}
	runtime.AddCleanup(c, (*cshim.Conn).Close, shim)
	c.shim = shim
	c.shimPtr.Store(shim)
	if c.active.Load()&1 != 0 { // Close ran meanwhile and saw no shim
		c.freeShim(shim)
		return closedError("handshake")
	}
	return nil
}

func (c *Conn) handshake(ctx context.Context) (*cshim.ConnInfo, error) {
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	if !c.shim.Acquire() {
		return nil, closedError("handshake")
	}
	defer c.shim.Release()
	c.setAttempts()
	for {
		r, err := c.negotiate(ctx)
		if err != nil {
			return nil, err
		}
		switch r.Status {
		case cshim.OK:
			return c.finish(ctx)
		case cshim.WantVerify:
			alert, verifyErr := c.verifyPeer()
			c.shim.Verified(uint8(alert))
			if verifyErr != nil {
				_, _ = c.negotiate(ctx) // sends the alert
				c.sendOut()
				return nil, verifyErr
			}
		default:
			err := c.resultError("handshake", r)
			c.blindFor(r.Delay)
			c.sendOut()
			return nil, err
		}
	}
}

// finish takes over what was agreed on.
func (c *Conn) finish(ctx context.Context) (*cshim.ConnInfo, error) {
	if c.raw == nil && c.lastFlightMatters() {
		if err := c.drain(); err != nil {
			return nil, transportError("handshake", err)
		}
	}
	var info cshim.ConnInfo
	var r cshim.Result
	if err := inSlot(ctx, func() { info, r = c.shim.Finish() }); err != nil {
		return nil, err
	}
	if r.Status != cshim.OK {
		return nil, s2nError("handshake", r)
	}
	if info.Protocol != "" && c.role == roleClient && !contains(c.config.NextProtos, info.Protocol) {
		c.abort(alertUnsupportedExtension)
		return nil, &Error{Op: "handshake", Kind: KindProtocol, Alert: alertUnsupportedExtension,
			Message: "the server chose an application protocol that was not offered"}
	}
	return &info, nil
}

// abort sends an alert, in one attempt.
func (c *Conn) abort(alert Alert) {
	if c.raw == nil {
		_ = c.shim.Abort(uint8(alert))
		c.sendOut()
		return
	}
	// In here the socket cannot be closed. Out of here its number may be another's.
	_ = c.raw.Write(func(uintptr) bool {
		_ = c.shim.Abort(uint8(alert))
		return true
	})
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

// lastFlightMatters: what waits after a complete handshake is the Finished message
// that the peer needs. (Session tickets, which a server sends last in TLS 1.3, can
// ride with its first Write: over a transport without buffers, such as net.Pipe, a
// peer that writes first would otherwise wait for a server that waits for it.)
func (c *Conn) lastFlightMatters() bool { return len(c.shim.Out()) > 0 }

// negotiate runs s2n_negotiate until it needs neither transport nor peer.
func (c *Conn) negotiate(ctx context.Context) (cshim.Result, error) {
	if c.raw != nil {
		return c.negotiateSocket(ctx)
	}
	for {
		var r cshim.Result
		if err := inSlot(ctx, func() { r = c.shim.Negotiate() }); err != nil {
			return r, err
		}
		if r.OutWaits() && (r.Status == cshim.WantRead || r.Status == cshim.WantWrite || r.Status == cshim.OK) {
			if err := c.drain(); err != nil {
				return r, transportError("handshake", err)
			}
		}
		switch r.Status {
		case cshim.WantRead:
			if err := c.fill(); err != nil {
				return r, transportError("handshake", err)
			}
		case cshim.WantWrite:
		default:
			return r, nil
		}
	}
}

// noSlot is what an attempt ended with that did not call C.
const noSlot cshim.Status = -1

func (c *Conn) negotiateSocket(ctx context.Context) (cshim.Result, error) {
	var r cshim.Result
	var held slot
	attempt := func(uintptr) bool {
		// Nobody may wait in here, since whoever closes the socket waits for us to leave.
		if held == nil {
			if held = trySlot(); held == nil {
				r.Status = noSlot
				return true
			}
		}
		r = c.shim.Negotiate()
		held.leave()
		held = nil
		return r.Status != cshim.WantRead
	}
	flush := func(uintptr) bool {
		r = c.shim.Flush()
		return r.Status != cshim.WantWrite
	}
	for {
		if err := c.raw.Read(attempt); err != nil {
			held.leave()
			return r, transportError("handshake", err)
		}
		if r.Status == noSlot {
			var err error
			if held, err = waitSlot(ctx); err != nil {
				return r, err
			}
			continue
		}
		if r.Status != cshim.WantWrite {
			return r, nil
		}
		if err := c.raw.Write(flush); err != nil {
			return r, transportError("handshake", err)
		}
		if r.Status != cshim.OK {
			return r, nil
		}
	}
}

// sendOut gives the alert of a failed handshake to a transport of buffers, for a
// bounded time. The socket transport sent it already.
func (c *Conn) sendOut() {
	if c.raw != nil || len(c.shim.Out()) == 0 {
		return
	}
	_ = c.conn.SetWriteDeadline(c.closeDeadline())
	_ = c.drain()
}

// Close ends the connection: a close_notify to the peer if the handshake is done
// and no Write is running, for 5 seconds at most and never longer than the write
// deadline; then the transport is closed. Calls that wait return net.ErrClosed. A
// second Close returns net.ErrClosed too.
func (c *Conn) Close() error {
	var x int32
	for {
		x = c.active.Load()
		if x&1 != 0 {
			return net.ErrClosed
		}
		if c.active.CompareAndSwap(x, x|1) {
			break
		}
	}
	if c.blind.closeLater(c) {
		return nil // a timer closes, when s2n's delay is over
	}
	var alertErr error
	if x == 0 && c.done.Load() {
		alertErr = c.closeNotify(true)
		if c.peerClosed.Load() {
			alertErr = nil // the peer said its goodbye first, and may be gone
		}
		_ = c.conn.SetWriteDeadline(time.Now()) // for whoever uses NetConn
	}
	err := c.conn.Close()
	if shim := c.shimPtr.Load(); shim != nil {
		c.freeShim(shim)
	}
	if err != nil {
		return transportError("close", err)
	}
	return alertErr
}

func (c *Conn) freeShim(shim *cshim.Conn) {
	if shim.Acquire() {
		counts := shim.GetCounts()
		counts.Native = 0
		c.lastCounts.Store(&counts)
		shim.Release()
	}
	// Now if there is a slot; else when there is one, for which Close does not wait.
	if s := trySlot(); s != nil {
		shim.Close()
		s.leave()
	} else {
		go func() { _ = inSlot(context.Background(), shim.Close) }()
	}
	trimSoon()
}

// CloseWrite sends close_notify and ends the writing side (RFC 8446, 6.1); Read
// goes on. Only after the handshake. It waits for a Write that runs, then for 5
// seconds at most. The transport stays whole. An error says that the peer was not told.
func (c *Conn) CloseWrite() error {
	if !c.done.Load() {
		return configError("close", "CloseWrite called before the handshake complete")
	}
	return c.closeNotify(false)
}

// closeDeadline is 5 seconds from now, or the caller's own write deadline if that is sooner.
func (c *Conn) closeDeadline() time.Time {
	d := time.Now().Add(5 * time.Second)
	if own := c.writeDeadline.Load(); own != 0 && own < d.UnixNano() {
		d = time.Unix(0, own)
	}
	return d
}

// LocalAddr returns the transport's.
func (c *Conn) LocalAddr() net.Addr { return c.conn.LocalAddr() }

// RemoteAddr returns the transport's.
func (c *Conn) RemoteAddr() net.Addr { return c.conn.RemoteAddr() }

// NetConn returns the transport. Reading from it or writing to it breaks the TLS connection.
func (c *Conn) NetConn() net.Conn { return c.conn }

// SetDeadline is SetReadDeadline and SetWriteDeadline.
func (c *Conn) SetDeadline(t time.Time) error {
	c.noteWriteDeadline(t)
	return c.conn.SetDeadline(t)
}

// SetReadDeadline bounds Read. A Read that timed out has lost nothing: another may follow.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.conn.SetReadDeadline(t) }

// SetWriteDeadline bounds Write. After a Write that timed out the connection
// cannot be written to any more, since part of a record may have left: every Write
// returns the same error.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.noteWriteDeadline(t)
	return c.conn.SetWriteDeadline(t)
}

func (c *Conn) noteWriteDeadline(t time.Time) {
	if t.IsZero() {
		c.writeDeadline.Store(0)
		return
	}
	c.writeDeadline.Store(t.UnixNano())
}
