package side

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// kinds are the cases. Each prepares what it needs, measures, and fills the result.
var kinds = map[string]func(*batch) error{
	"handshake": handshakes,
	"storm":     storm,
	"bulk":      bulk,
	"pingpong":  pingPong,
	"write":     smallWrites,
	"parallel":  parallel,
	"newconn":   newConns,
}

const (
	requestSize  = 128
	responseSize = 1024
)

// transport hands out pairs of connected transports.
type transport struct {
	l net.Listener // nil: in memory
}

func (b *batch) transport() (*transport, error) {
	switch b.Transport {
	case "mem":
		return &transport{}, nil
	case "tcp":
		l, err := net.Listen("tcp", "127.0.0.1:0")
		return &transport{l}, err
	}
	return nil, fmt.Errorf("transport %q", b.Transport)
}

func (t *transport) close() {
	if t.l != nil {
		_ = t.l.Close()
	}
}

// pair connects. In TCP the kernel has the connection ready before Accept.
func (t *transport) pair() (client, server net.Conn, err error) {
	if t.l == nil {
		client, server = memPair()
		return client, server, nil
	}
	if client, err = net.Dial("tcp", t.l.Addr().String()); err != nil {
		return nil, nil, err
	}
	if server, err = t.l.Accept(); err != nil {
		_ = client.Close()
		return nil, nil, err
	}
	return client, server, nil
}

// shake runs both handshakes at once and looks at what came of them.
func (b *batch) shake(client, server Conn) error {
	done := make(chan error, 1)
	go func() { done <- server.Handshake() }()
	err := client.Handshake()
	if err != nil {
		_ = client.Close() // so that the server's ends too
	}
	return errors.Join(err, <-done)
}

// connect makes a connection whose handshake is done.
func (b *batch) connect(t *transport) (client, server Conn, err error) {
	x, y, err := t.pair()
	if err != nil {
		return nil, nil, err
	}
	client, server = b.Client(x), b.Server(y)
	if err = b.shake(client, server); err == nil {
		err = b.look(client, server)
	}
	return client, server, err
}

// finish ends a connection as TLS does: the client says so, the server hears it.
func finish(client, server Conn) error {
	if err := client.Close(); err != nil {
		return fmt.Errorf("client's close: %w", err)
	}
	var one [1]byte
	switch n, err := server.Read(one[:]); {
	case err == nil:
		return fmt.Errorf("the server read %d bytes instead of an end", n)
	case err != io.EOF:
		return fmt.Errorf("the server's end: %w", err)
	}
	_ = server.Close() // its close_notify may find nobody
	return nil
}

// handshakes makes connections one after the other: connect, handshake on both
// ends, state on both, close.
func handshakes(b *batch) error {
	t, err := b.transport()
	if err != nil {
		return err
	}
	defer t.close()
	one := func() error {
		client, server, err := b.connect(t)
		if err != nil {
			return err
		}
		return finish(client, server)
	}
	return b.repeat(one, 1)
}

// repeat does one op, unmeasured, and then n measured.
func (b *batch) repeat(one func() error, bytes int) error {
	if err := one(); err != nil {
		return err
	}
	stop := b.measure()
	for range b.n {
		if err := one(); err != nil {
			return err
		}
	}
	stop()
	b.result.Ops = int64(b.n)
	if bytes > 1 {
		b.result.Bytes = int64(b.n) * int64(bytes)
	}
	return nil
}

// storm has n clients connected and lets them handshake at once, with as many
// servers. Times are from the start for all to each client's finished handshake.
func storm(b *batch) error {
	t, err := b.transport()
	if err != nil {
		return err
	}
	defer t.close()
	type ends struct {
		client, server Conn
		err            error
		took           time.Duration
	}
	all := make([]ends, b.n)
	defer func() {
		for _, e := range all {
			if e.client != nil {
				_ = e.client.Close()
				_ = e.server.Close()
			}
		}
	}()
	for i := range all {
		x, y, err := t.pair()
		if err != nil {
			return err
		}
		all[i] = ends{client: b.Client(x), server: b.Server(y)}
	}
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	var begun time.Time
	var failed atomic.Int64
	for i := range all {
		e := &all[i]
		ready.Add(2)
		done.Add(2)
		go func() {
			defer done.Done()
			ready.Done()
			<-start
			e.err = e.client.Handshake()
			e.took = time.Since(begun)
		}()
		go func() {
			defer done.Done()
			ready.Done()
			<-start
			if e.server.Handshake() != nil {
				failed.Add(1)
			}
		}()
	}
	ready.Wait()
	stop := b.measure()
	begun = time.Now()
	close(start)
	done.Wait()
	stop()
	took := make([]time.Duration, b.n)
	for i, e := range all {
		if e.err != nil {
			return fmt.Errorf("handshake %d: %w", i, e.err)
		}
		if err := b.look(e.client, e.server); err != nil {
			return err
		}
		took[i] = e.took
	}
	if n := failed.Load(); n > 0 {
		return fmt.Errorf("%d servers failed", n)
	}
	slices.Sort(took)
	b.result.Ops = int64(b.n)
	b.result.P50NS = took[len(took)/2].Nanoseconds()
	b.result.P99NS = took[len(took)*99/100].Nanoseconds()
	return nil
}

// stream is one direction of data, with the buffers of its two ends.
type stream struct {
	from, to  Conn
	out, into []byte
}

func newStream(from, to Conn, size int) *stream {
	return &stream{from, to, make([]byte, size), make([]byte, 64<<10)}
}

// run writes n times to one end and reads all of it from the other.
func (s *stream) run(n int) error {
	read := make(chan error, 1)
	go func() {
		for left := n * len(s.out); left > 0; {
			m, err := s.to.Read(s.into)
			left -= m
			if err != nil || left < 0 {
				read <- fmt.Errorf("%d bytes before the end: %w", left, err)
				return
			}
		}
		read <- nil
	}()
	for range n {
		if _, err := s.from.Write(s.out); err != nil {
			return err
		}
	}
	return <-read
}

// over runs what is measured on a connection that is made before and closed after.
func (b *batch) over(warm, do func(client, server Conn) error) error {
	t, err := b.transport()
	if err != nil {
		return err
	}
	defer t.close()
	client, server, err := b.connect(t)
	if err != nil {
		return err
	}
	defer server.Close()
	defer client.Close()
	if err := warm(client, server); err != nil {
		return err
	}
	stop := b.measure()
	err = do(client, server)
	stop()
	return err
}

func bulk(b *batch) error {
	var there, back *stream
	run := func(n int) error {
		if back == nil {
			return there.run(n)
		}
		done := make(chan error, 1)
		go func() { done <- back.run(n) }()
		return errors.Join(there.run(n), <-done)
	}
	err := b.over(func(client, server Conn) error {
		there = newStream(client, server, b.Size)
		if b.Both {
			back = newStream(server, client, b.Size)
		}
		return run(1)
	}, func(Conn, Conn) error { return run(b.n) })
	b.result.Ops, b.result.Bytes = int64(b.n), int64(b.n)*int64(b.Size)
	if b.Both {
		b.result.Bytes *= 2
	}
	return err
}

// smallWrites is bulk with writes that are no records' size.
func smallWrites(b *batch) error { return bulk(b) }

// echo answers each message of size bytes with as many, until the connection ends.
// What goes wrong before, the client meets.
func echo(c Conn, size int) {
	buf := make([]byte, size)
	for {
		if _, err := io.ReadFull(c, buf); err != nil {
			return
		}
		if _, err := c.Write(buf); err != nil {
			return
		}
	}
}

func ping(c Conn, buf []byte, n int) error {
	for range n {
		if _, err := c.Write(buf); err != nil {
			return err
		}
		if _, err := io.ReadFull(c, buf); err != nil {
			return err
		}
	}
	return nil
}

func pingPong(b *batch) error {
	buf := make([]byte, b.Size)
	err := b.over(func(client, server Conn) error {
		go echo(server, b.Size)
		return ping(client, buf, 10)
	}, func(client, _ Conn) error {
		return ping(client, buf, b.n)
	})
	b.result.Ops, b.result.Bytes = int64(b.n), 2*int64(b.n)*int64(b.Size)
	return err
}

// parallel is ping-pong on many connections at once; n is the sum.
func parallel(b *batch) error {
	t, err := b.transport()
	if err != nil {
		return err
	}
	defer t.close()
	clients := make([]Conn, b.Conns)
	for i := range clients {
		client, server, err := b.connect(t)
		if err != nil {
			return err
		}
		clients[i] = client
		go echo(server, b.Size)
		defer server.Close()
		defer client.Close()
		if err := ping(client, make([]byte, b.Size), 1); err != nil {
			return err
		}
	}
	each := max(1, b.n/b.Conns)
	done := make(chan error, b.Conns)
	stop := b.measure()
	for _, c := range clients {
		go func() { done <- ping(c, make([]byte, b.Size), each) }()
	}
	var errs []error
	for range clients {
		errs = append(errs, <-done)
	}
	stop()
	b.result.Ops = int64(each * b.Conns)
	b.result.Bytes = 2 * b.result.Ops * int64(b.Size)
	return errors.Join(errs...)
}

// newConns is a request and its response, each on a connection of its own.
func newConns(b *batch) error {
	t, err := b.transport()
	if err != nil {
		return err
	}
	defer t.close()
	request, response := make([]byte, requestSize), make([]byte, responseSize)
	got, answer := make([]byte, requestSize), make([]byte, responseSize)
	return b.repeat(func() error {
		x, y, err := t.pair()
		if err != nil {
			return err
		}
		client, server := b.Client(x), b.Server(y)
		done := make(chan error, 1)
		go func() {
			if _, err := io.ReadFull(server, got); err != nil {
				done <- err
				return
			}
			_, err := server.Write(answer)
			done <- err
		}()
		if _, err = client.Write(request); err == nil {
			_, err = io.ReadFull(client, response)
		}
		if err != nil {
			_ = client.Close()
		}
		if err = errors.Join(err, <-done); err != nil {
			return err
		}
		if err := b.look(client, server); err != nil {
			return err
		}
		return finish(client, server)
	}, requestSize+responseSize)
}
