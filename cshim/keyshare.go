//go:build linux && cgo

package cshim

// #include "s2nshim.h"
import "C"

import "unsafe"

// OfferedMax is how many key shares a client can have offered.
const OfferedMax = C.S2NSHIM_OFFERED_MAX

// Offered is a key share that a client sent; Group 0: none.
type Offered struct {
	Group  uint16
	Reused bool // the key is that of the hybrid beside it
}

func offered(from *[C.S2NSHIM_OFFERED_MAX]C.uint32_t) (to [OfferedMax]Offered) {
	for i, o := range from {
		to[i] = Offered{uint16(o & 0xffff), o&C.S2NSHIM_OFFERED_REUSED != 0}
	}
	return to
}

// KeyShares are those of the last ClientHello as on the wire, each a group, a length
// and a key; nil on a server, before the ClientHello and after the handshake. Beside
// any other call.
func (c *Conn) KeyShares() []byte {
	var n C.size_t
	p := C.s2nshim_conn_key_shares(c.ptr, &n)
	if p == nil {
		return nil
	}
	defer C.s2nshim_free(unsafe.Pointer(p))
	return C.GoBytes(unsafe.Pointer(p), C.int(n))
}
