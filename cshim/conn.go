//go:build linux && cgo

package cshim

// #cgo noescape s2nshim_conn_read
// #cgo noescape s2nshim_conn_in_space
// #cgo noescape s2nshim_conn_in_filled
// #cgo noescape s2nshim_conn_out
// #cgo noescape s2nshim_conn_out_sent
// #cgo noescape s2nshim_conn_get_counts
// #cgo noescape s2nshim_conn_finish
// #include <stdlib.h>
// #include <string.h>
// #include "s2nshim.h"
import "C"

import (
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Conn is one connection in C. Every method but Acquire, Release and Close must
// run between an Acquire that returned true and its Release.
type Conn struct {
	ptr *C.s2nshim_conn
	// Calls inside; closedBit once Close was called. The one that brings it to
	// closedBit alone frees ptr.
	refs atomic.Int64
}

const closedBit = 1 << 62

// NewConn is s2n_connection_new. fd is a non-blocking socket that stays open
// while calls run, or -1 for the buffer transport. serverName "" sends no SNI.
func NewConn(config *Config, fd int, serverName string) (*Conn, Result) {
	var name *C.char
	if serverName != "" {
		name = C.CString(serverName)
		defer C.free(unsafe.Pointer(name))
	}
	c := &Conn{}
	r := result(C.s2nshim_conn_new(config.ptr, C.int32_t(fd), name, &c.ptr))
	runtime.KeepAlive(config)
	if r.Status != OK {
		return nil, r
	}
	return c, r
}

// Acquire keeps the C object until Release. False: it is closed.
func (c *Conn) Acquire() bool {
	for {
		refs := c.refs.Load()
		if refs&closedBit != 0 {
			return false
		}
		if c.refs.CompareAndSwap(refs, refs+1) {
			return true
		}
	}
}

// Release ends what Acquire began.
func (c *Conn) Release() {
	if c.refs.Add(-1) == closedBit {
		C.s2nshim_conn_free(c.ptr)
	}
}

// Close frees the C object now, or when the last call inside is out. Any number of times.
func (c *Conn) Close() {
	for {
		refs := c.refs.Load()
		if refs&closedBit != 0 {
			return
		}
		if c.refs.CompareAndSwap(refs, refs|closedBit) {
			if refs == 0 {
				C.s2nshim_conn_free(c.ptr)
			}
			return
		}
	}
}

// Negotiate is s2n_negotiate, and what it sends leaves as one flight.
func (c *Conn) Negotiate() Result { return result(C.s2nshim_conn_negotiate(c.ptr)) }

// Verified answers WantVerify: 0 accepts the peer's chain, an alert refuses it
// (s2n_cert_validation_accept, s2n_cert_validation_reject).
func (c *Conn) Verified(alert uint8) { C.s2nshim_conn_verified(c.ptr, C.uint8_t(alert)) }

// Abort sends an alert as a failed handshake would.
func (c *Conn) Abort(alert uint8) Result {
	return result(C.s2nshim_conn_abort(c.ptr, C.uint8_t(alert)))
}

// PeerCerts returns the peer's certificates in DER: as they were sent, and the chain
// that AWS-LC verified, root included, or nil. They share memory, for a short use.
func (c *Conn) PeerCerts() (sent, verified [][]byte) {
	var sentLen, n C.size_t
	p := C.s2nshim_conn_peer_certs(c.ptr, &sentLen, &n)
	if p == nil {
		return nil, nil
	}
	defer C.s2nshim_free(unsafe.Pointer(p))
	packed := C.GoBytes(unsafe.Pointer(p), C.int(n))
	return unpackCerts(packed[:sentLen]), unpackCerts(packed[sentLen:])
}

func unpackCerts(packed []byte) [][]byte {
	var certs [][]byte
	for len(packed) >= 4 {
		size := binary.NativeEndian.Uint32(packed)
		certs = append(certs, packed[4:4+size:4+size])
		packed = packed[4+size:]
	}
	return certs
}

// ConnInfo is s2nshim_conn_info.
type ConnInfo struct {
	Policy, HandshakeType, Protocol, ServerName string
	Version, Suite, Group, Scheme, ClientScheme uint16
	Hashes, HashesFirst, HashesUpstream         HashSet
	Resumed, Retried, FIPS, EMS, ClientCert     bool
}

// Finish returns what a complete handshake agreed on and frees what only the
// handshake needed (s2n_connection_free_handshake and the peer's certificates).
func (c *Conn) Finish() (ConnInfo, Result) {
	var i C.s2nshim_conn_info
	r := result(C.s2nshim_conn_finish(c.ptr, &i))
	return ConnInfo{
		Policy: static(i.policy), HandshakeType: static(i.handshake_type),
		Protocol: C.GoString(&i.protocol[0]), ServerName: C.GoString(&i.server_name[0]),
		Version: uint16(i.version), Suite: uint16(i.suite), Group: uint16(i.group),
		Scheme: uint16(i.scheme), ClientScheme: uint16(i.client_scheme),
		Hashes: HashSet(i.hashes), HashesFirst: HashSet(i.hashes_first), HashesUpstream: HashSet(i.hashes_upstream),
		Resumed: i.resumed != 0, Retried: i.retried != 0, FIPS: i.fips != 0, EMS: i.ems != 0, ClientCert: i.client_cert != 0,
	}, r
}

var statics sync.Map // *C.char to string

// static is C.GoString for one that C never changes and never frees: made once.
func static(p *C.char) string {
	if s, ok := statics.Load(p); ok {
		return s.(string)
	}
	s := C.GoString(p)
	statics.Store(p, s)
	return s
}

// Counts is s2nshim_conn_counts.
type Counts struct {
	WireIn, WireOut uint64 // bytes
	Reads, Writes   uint64 // system calls
	Native          int64  // bytes of C memory
	Offered         [OfferedMax]Offered
}

// GetCounts is s2nshim_conn_get_counts; beside any other call.
func (c *Conn) GetCounts() Counts {
	n := C.s2nshim_conn_get_counts(c.ptr)
	return Counts{
		WireIn: uint64(n.wire_in), WireOut: uint64(n.wire_out), Reads: uint64(n.reads), Writes: uint64(n.writes),
		Native: int64(n.native), Offered: offered(&n.offered),
	}
}

// FirstBytes are the first bytes that the peer sent, at most 5.
func (c *Conn) FirstBytes() []byte {
	var first [5]C.uint8_t
	n := C.s2nshim_conn_first_bytes(c.ptr, &first[0])
	return C.GoBytes(unsafe.Pointer(&first[0]), n)
}

// Read is s2n_recv, for all whole records that are there and fit into b. One reader at a time.
func (c *Conn) Read(b []byte) Result {
	if len(b) == 0 {
		return result(C.s2nshim_conn_read(c.ptr, nil, 0))
	}
	// Written as &b[0], so that cgo checks b alone: it may be part of a struct that
	// has pointers in it, as net/http's is.
	return result(C.s2nshim_conn_read(c.ptr, unsafe.Pointer(&b[0]), C.size_t(len(b))))
}

// Buffered is s2n_peek.
func (c *Conn) Buffered() int { return int(C.s2nshim_conn_buffered(c.ptr)) }

// Write is s2n_send. One writer at a time. After WantWrite the same bytes, less N, must follow.
func (c *Conn) Write(b []byte) Result {
	if len(b) == 0 {
		return result(C.s2nshim_conn_write(c.ptr, nil, 0))
	}
	return result(C.s2nshim_conn_write(c.ptr, unsafe.Pointer(&b[0]), C.size_t(len(b))))
}

// Flush sends what waits: the out buffer, a key update, a warning. By the writer.
func (c *Conn) Flush() Result { return result(C.s2nshim_conn_flush(c.ptr)) }

// KeyUpdate is s2n_connection_request_key_update, sent at once. By the writer.
func (c *Conn) KeyUpdate() Result { return result(C.s2nshim_conn_key_update(c.ptr)) }

// CloseWrite sends close_notify, or the alert of a failure. By the writer.
func (c *Conn) CloseWrite() Result { return result(C.s2nshim_conn_close_write(c.ptr)) }

// InSpace is where the buffer transport puts ciphertext that it read. The memory
// is C's, valid until the next call of the reader. Nil: no memory.
func (c *Conn) InSpace() []byte {
	var n C.size_t
	p := C.s2nshim_conn_in_space(c.ptr, &n)
	return unsafe.Slice((*byte)(p), int(n))
}

// InFilled says how much came; 0 is the transport's end.
func (c *Conn) InFilled(n int) { C.s2nshim_conn_in_filled(c.ptr, C.size_t(n)) }

// Out is the ciphertext that waits for the transport, in C memory, valid until
// the next call of the writer.
func (c *Conn) Out() []byte {
	var n C.size_t
	p := C.s2nshim_conn_out(c.ptr, &n)
	return unsafe.Slice((*byte)(p), int(n))
}

// OutSent says how much of Out left.
func (c *Conn) OutSent(n int) { C.s2nshim_conn_out_sent(c.ptr, C.size_t(n)) }

// SendAlert is CloseWrite for a connection whose reader failed, and nothing for any other.
func (c *Conn) SendAlert() Result { return result(C.s2nshim_conn_send_alert(c.ptr)) }
