//go:build linux && cgo

package cshim

// #cgo noescape s2nshim_aead_new
// #cgo noescape s2nshim_aead_seal
// #cgo noescape s2nshim_aead_open
// #cgo noescape s2nshim_aead_seal_random
// #cgo noescape s2nshim_aead_open_random
// #include "s2nshim.h"
import "C"

// No nocallback here: Go keeps that promise by two calls of its own for each call
// into C, and prepares nothing less (2 ns of 33, measured with Go 1.26).

import (
	"runtime"
	"strings"
	"unsafe"
)

// The sizes of AES-GCM as s2nshim.h serves it.
const (
	AEADNonce = C.S2NSHIM_AEAD_NONCE
	AEADTag   = C.S2NSHIM_AEAD_TAG
)

// AEAD is an EVP_AEAD_CTX: an AES-GCM key with its schedule, immutable. No method
// checks what it is given; the comment at s2nshim.h's functions says what holds.
//
// Parameters go to C as *C.uint8_t: cgo knows that there is nothing to look for
// behind it, where it would check an unsafe.Pointer on every call.
type AEAD struct {
	ptr *C.s2nshim_aead
	// As large as what hangs on ptr and never touched: the collector, which sees no
	// C memory, has to know what a dropped AEAD holds.
	_ [C.sizeof_s2nshim_aead]byte
}

// NewAEAD is EVP_AEAD_CTX_init with EVP_aead_aes_128_gcm or EVP_aead_aes_256_gcm,
// or with their _randnonce kin. The key is not kept but in C, where it is
// overwritten once Go no longer reaches the AEAD. Nil: no such key size, or no memory.
func NewAEAD(key []byte, randomNonce bool) *AEAD {
	var random C.int32_t
	if randomNonce {
		random = 1
	}
	ptr := C.s2nshim_aead_new(bytePtr(key), C.size_t(len(key)), random)
	if ptr == nil {
		return nil
	}
	a := &AEAD{ptr: ptr}
	runtime.AddCleanup(a, func(p *C.s2nshim_aead) { C.s2nshim_aead_free(p) }, ptr)
	return a
}

func bytePtr(b []byte) *C.uint8_t { return (*C.uint8_t)(unsafe.SliceData(b)) }

// Seal is EVP_AEAD_CTX_seal. out has room for plaintext and tag.
func (a *AEAD) Seal(out, nonce, in, ad []byte) bool {
	ok := C.s2nshim_aead_seal(a.ptr, bytePtr(out), bytePtr(nonce), bytePtr(in), C.size_t(len(in)), bytePtr(ad), C.size_t(len(ad)))
	runtime.KeepAlive(a)
	return ok != 0
}

// Open is EVP_AEAD_CTX_open. out has room for in without its tag, and in is no
// shorter than that.
func (a *AEAD) Open(out, nonce, in, ad []byte) bool {
	ok := C.s2nshim_aead_open(a.ptr, bytePtr(out), bytePtr(nonce), bytePtr(in), C.size_t(len(in)), bytePtr(ad), C.size_t(len(ad)))
	runtime.KeepAlive(a)
	return ok != 0
}

// SealRandom is EVP_AEAD_CTX_seal_scatter of an AEAD with randomNonce; out gets
// nonce, ciphertext and tag.
func (a *AEAD) SealRandom(out, in, ad []byte) bool {
	ok := C.s2nshim_aead_seal_random(a.ptr, bytePtr(out), bytePtr(in), C.size_t(len(in)), bytePtr(ad), C.size_t(len(ad)))
	runtime.KeepAlive(a)
	return ok != 0
}

// OpenRandom is EVP_AEAD_CTX_open_gather of what SealRandom made.
func (a *AEAD) OpenRandom(out, in, ad []byte) bool {
	ok := C.s2nshim_aead_open_random(a.ptr, bytePtr(out), bytePtr(in), C.size_t(len(in)), bytePtr(ad), C.size_t(len(ad)))
	runtime.KeepAlive(a)
	return ok != 0
}

// NewBytes returns n bytes that hold anything, for an output that is about to be
// written whole: make would clear them first, which is a quarter of the time of a
// large Seal. There is no more room behind them, so that nobody sees what is there.
//
// The memory is a strings.Builder's, the one in the standard library that is handed
// out as it is. What this builds on is looked at once, when the program starts.
func NewBytes(n int) []byte {
	if n < unclearedFrom || !builderKeepsItsPlace {
		return make([]byte, n)
	}
	var b strings.Builder
	b.Grow(n)
	b.WriteByte(0)
	return unsafe.Slice(unsafe.StringData(b.String()), n)
}

// unclearedFrom is where it begins to pay.
const unclearedFrom = 4096

// builderKeepsItsPlace: a Builder's String is its own memory, at the beginning, and
// what is written later lies behind it there.
var builderKeepsItsPlace = func() bool {
	const n = 64
	var b strings.Builder
	b.Grow(n)
	b.WriteByte('a')
	first := unsafe.StringData(b.String())
	for b.Len() < n {
		b.WriteByte('b')
	}
	return b.Cap() >= n && unsafe.StringData(b.String()) == first && *first == 'a' && *(*byte)(unsafe.Add(unsafe.Pointer(first), n-1)) == 'b'
}()

// SharesMemory reports whether a and b have a byte in common.
func SharesMemory(a, b []byte) bool {
	pa, pb := uintptr(unsafe.Pointer(unsafe.SliceData(a))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return len(a) != 0 && len(b) != 0 && pa < pb+uintptr(len(b)) && pb < pa+uintptr(len(a))
}

// SharesMemoryShifted reports whether a and b have a byte in common and do not
// begin at the same one, which is where working in place goes wrong.
func SharesMemoryShifted(a, b []byte) bool {
	return unsafe.SliceData(a) != unsafe.SliceData(b) && SharesMemory(a, b)
}

// ServiceIndicator is FIPS_service_indicator_before_call: how many approved
// services the module has done on this OS thread; for tests.
func ServiceIndicator() uint64 { return uint64(C.s2nshim_service_indicator()) }
