//go:build linux && cgo

package cshim

// #include "s2nshim.h"
import "C"

import "time"

// Status is how a call ended: S2NSHIM_OK and so on.
type Status int32

// The statuses of s2nshim.h.
const (
	OK          Status = C.S2NSHIM_OK
	WantRead    Status = C.S2NSHIM_WANT_READ
	WantWrite   Status = C.S2NSHIM_WANT_WRITE
	WantVerify  Status = C.S2NSHIM_WANT_VERIFY
	CloseNotify Status = C.S2NSHIM_CLOSE_NOTIFY
	Cut         Status = C.S2NSHIM_CUT
	Sys         Status = C.S2NSHIM_SYS
	PeerAlert   Status = C.S2NSHIM_ALERT
	NotTLS      Status = C.S2NSHIM_NOT_TLS
	Flood       Status = C.S2NSHIM_FLOOD
	Failed      Status = C.S2NSHIM_FAILED
)

// Result is s2nshim_result.
type Result struct {
	N      int           // bytes of plaintext
	Delay  time.Duration // between a record that did not decrypt and the alert for it
	Status Status
	Code   int32  // s2n's error code
	Crypto uint32 // AWS-LC's packed error
	Errno  int32
	X509   int32 // why a chain did not verify, X509_V_ERR_*
	Alert  uint8 // received (PeerAlert), or the one for the peer
	flags  uint8
}

func result(r C.s2nshim_result) Result {
	return Result{
		N: int(r.n), Delay: time.Duration(r.delay), Status: Status(r.status), Code: int32(r.code),
		Crypto: uint32(r.crypto), Errno: int32(r.sys), X509: int32(r.x509), Alert: uint8(r.alert), flags: uint8(r.flags),
	}
}

// OutWaits reports that ciphertext is in the out buffer.
func (r *Result) OutWaits() bool { return r.flags&C.S2NSHIM_FLAG_OUT != 0 }

// WantFlush reports that a message of s2n's own (key update, alert) waits for Flush.
func (r *Result) WantFlush() bool { return r.flags&C.S2NSHIM_FLAG_FLUSH != 0 }

// ReadFailed reports that Sys is of reading.
func (r *Result) ReadFailed() bool { return r.flags&C.S2NSHIM_FLAG_READ != 0 }

// s2n's error types, s2n_error_get_type.
const (
	TypeOK = iota
	TypeIO
	TypeClosed
	TypeBlocked
	TypeAlert
	TypeProto
	TypeInternal
	TypeUsage
)

// ErrorName is s2n_strerror_name, "S2N_ERR_CERT_UNTRUSTED".
func ErrorName(code int32) string { return C.GoString(C.s2nshim_error_name(C.int32_t(code))) }

// ErrorMessage is s2n_strerror in English.
func ErrorMessage(code int32) string { return C.GoString(C.s2nshim_error_message(C.int32_t(code))) }

// ErrorType is s2n_error_get_type.
func ErrorType(code int32) int { return int(C.s2nshim_error_type(C.int32_t(code))) }

// ErrorCodes are all codes that the linked s2n knows.
func ErrorCodes() []int32 {
	var codes []int32
	for code := C.s2nshim_error_next(-1); code != C.S2NSHIM_ERRORS_END; code = C.s2nshim_error_next(code) {
		codes = append(codes, int32(code))
	}
	return codes
}

// ErrorAlert is the alert that names an error to the peer; version is s2n's number, 34 for TLS 1.3.
func ErrorAlert(code, x509, version int32) uint8 {
	return uint8(C.s2nshim_error_alert(C.int32_t(code), C.int32_t(x509), C.int32_t(version)))
}

// X509Message is X509_verify_cert_error_string.
func X509Message(x509 int32) string {
	return C.GoString(C.s2nshim_x509_error_message(C.int32_t(x509)))
}

// CryptoMessage is ERR_error_string_n.
func CryptoMessage(crypto uint32) string {
	var buf [256]C.char
	C.s2nshim_crypto_error_message(C.uint32_t(crypto), &buf[0], C.size_t(len(buf)))
	return C.GoString(&buf[0])
}

// ErrorQueueDepth tells whether this OS thread has an AWS-LC error left behind; for tests.
func ErrorQueueDepth() int { return int(C.s2nshim_error_queue_depth()) }
