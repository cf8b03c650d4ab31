//go:build linux && cgo

package cshim

// #include "build.h"
// #include "s2nshim.h"
import "C"

import "sync"

var initOnce = sync.OnceValue(func() Result { return result(C.s2nshim_init()) })

// Init is s2n_init, once a process; every caller gets that one call's result.
func Init() Result { return initOnce() }

// Module is what the linked FIPS module says of itself.
type Module struct {
	FIPS    bool   // FIPS_mode
	Version string // awslc_version_string
}

// GetModule is FIPS_mode and awslc_version_string.
func GetModule() Module {
	m := C.s2nshim_module()
	return Module{FIPS: m.fips == 1, Version: C.GoString(m.awslc_version)}
}

// S2NVersion is the version of the linked s2n-tls crate.
func S2NVersion() string { return C.S2NSHIM_BUILD_S2N }

// SelfTest is BORINGSSL_integrity_test and BORINGSSL_self_test: 1 if both pass,
// -1 if the integrity test failed, -2 if a known answer did.
func SelfTest() int { return int(C.s2nshim_self_test()) }

// MemStats is s2nshim_mem_stats.
type MemStats struct {
	S2NBytes, S2NBlocks           int64 // held by s2n-tls now
	PoolBytes                     int64 // free record buffers kept
	Conns, Configs, Certs, Stores int64 // live objects
	AEADs                         int64
}

// GetMemStats is s2nshim_mem_get_stats.
func GetMemStats() MemStats {
	s := C.s2nshim_mem_get_stats()
	return MemStats{
		S2NBytes: int64(s.s2n_bytes), S2NBlocks: int64(s.s2n_blocks), PoolBytes: int64(s.pool_bytes),
		Conns: int64(s.conns), Configs: int64(s.configs), Certs: int64(s.certs), Stores: int64(s.stores),
		AEADs: int64(s.aeads),
	}
}

// MemTrim gives the record buffers that nobody used since its last call back to
// the system, and returns the bytes of those kept.
func MemTrim() int64 { return int64(C.s2nshim_mem_trim()) }
