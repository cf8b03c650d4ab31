//go:build linux && cgo

package cshim

// #include <stdlib.h>
// #include "s2nshim.h"
import "C"

import (
	"runtime"
	"unsafe"
)

// Cert is a certificate chain with its key, s2n_cert_chain_and_key.
type Cert struct{ ptr *C.s2nshim_cert }

// NewCert is s2n_cert_chain_and_key_load_pem_bytes. The PEM is copied.
func NewCert(chainPEM, keyPEM []byte) (*Cert, Result) {
	var ptr *C.s2nshim_cert
	r := result(C.s2nshim_cert_new(
		(*C.uint8_t)(unsafe.SliceData(chainPEM)), C.uint32_t(len(chainPEM)),
		(*C.uint8_t)(unsafe.SliceData(keyPEM)), C.uint32_t(len(keyPEM)), &ptr))
	if r.Status != OK {
		return nil, r
	}
	c := &Cert{ptr}
	runtime.AddCleanup(c, func(p *C.s2nshim_cert) { C.s2nshim_cert_free(p) }, ptr)
	return c, r
}

// Store is a set of trusted roots, an X509_STORE.
type Store struct{ ptr *C.s2nshim_store }

// NewStore makes an empty set.
func NewStore() (*Store, Result) {
	var ptr *C.s2nshim_store
	r := result(C.s2nshim_store_new(&ptr))
	if r.Status != OK {
		return nil, r
	}
	s := &Store{ptr}
	runtime.AddCleanup(s, func(p *C.s2nshim_store) { C.s2nshim_store_free(p) }, ptr)
	return s, r
}

// Add is X509_STORE_add_cert of a DER certificate. It must come before any config uses the store.
func (s *Store) Add(der []byte) Result {
	r := result(C.s2nshim_store_add(s.ptr, (*C.uint8_t)(unsafe.SliceData(der)), C.size_t(len(der))))
	runtime.KeepAlive(s)
	return r
}

// The roles of a Config.
const (
	Server = C.S2NSHIM_SERVER
	Client = C.S2NSHIM_CLIENT
)

// What a server asks of its clients, s2n_cert_auth_type.
const (
	AuthNone     = C.S2NSHIM_AUTH_NONE
	AuthOptional = C.S2NSHIM_AUTH_OPTIONAL
	AuthRequired = C.S2NSHIM_AUTH_REQUIRED
)

// How large records are.
const (
	RecordsDynamic    = C.S2NSHIM_RECORDS_DYNAMIC
	RecordsLowLatency = C.S2NSHIM_RECORDS_LOW_LATENCY
	RecordsThroughput = C.S2NSHIM_RECORDS_THROUGHPUT
)

// Which key shares a ClientHello sends.
const (
	SharesPolicy     = C.S2NSHIM_SHARES_POLICY
	SharesReuse      = C.S2NSHIM_SHARES_REUSE
	SharesSeparate   = C.S2NSHIM_SHARES_SEPARATE
	SharesHybridOnly = C.S2NSHIM_SHARES_HYBRID_ONLY
)

// ConfigParams is s2nshim_config_params.
type ConfigParams struct {
	Policy     string
	Protocols  []string // ALPN; each 1 to 255 bytes
	Store      *Store
	Certs      []*Cert
	Role       uint8
	ClientAuth uint8
	SkipVerify bool
	Records    uint8
	Shares     uint8
	Blinding   bool
}

// Config is an s2n_config, immutable.
type Config struct{ ptr *C.s2nshim_config }

// NewConfig makes a config whole; s2n's own checks of it are in the Result, whose
// N then is how many of Certs were taken before.
func NewConfig(p *ConfigParams) (*Config, Result) {
	policy := C.CString(p.Policy)
	defer C.free(unsafe.Pointer(policy))
	var wire []byte
	for _, name := range p.Protocols {
		wire = append(append(wire, byte(len(name))), name...)
	}
	protocols := C.CBytes(wire)
	defer C.free(protocols)
	params := C.s2nshim_config_params{
		policy: policy, protocols: (*C.uint8_t)(protocols), protocols_len: C.uint32_t(len(wire)),
		role: C.uint8_t(p.Role), client_auth: C.uint8_t(p.ClientAuth), records: C.uint8_t(p.Records),
		shares: C.uint8_t(p.Shares),
	}
	if p.SkipVerify {
		params.skip_verify = 1
	}
	if p.Blinding {
		params.blinding = 1
	}
	if p.Store != nil {
		params.store = p.Store.ptr
	}
	certs := make([]*C.s2nshim_cert, len(p.Certs)+1)
	for i, c := range p.Certs {
		certs[i] = c.ptr
	}
	var ptr *C.s2nshim_config
	r := result(C.s2nshim_config_new(&params, &certs[0], C.int32_t(len(p.Certs)), &ptr))
	runtime.KeepAlive(p)
	if r.Status != OK {
		return nil, r
	}
	c := &Config{ptr}
	runtime.AddCleanup(c, func(p *C.s2nshim_config) { C.s2nshim_config_free(p) }, ptr)
	return c, r
}
