//go:build linux && cgo

package cshim

// #include "s2nshim.h"
// void s2nshimTick(void);
import "C"

import "sync/atomic"

var tickCounter atomic.Pointer[atomic.Uint64]

// CountTicks has each call of Go from C counted in n, for tests; nil ends it.
func CountTicks(n *atomic.Uint64) { tickCounter.Store(n) }

// s2nshimTick does nothing. That C has called Go is what Go's scheduler sees:
// src/tick.c has the reason.
//
//export s2nshimTick
func s2nshimTick() {
	if n := tickCounter.Load(); n != nil {
		n.Add(1)
	}
}

func init() { C.s2nshim_set_tick((*[0]byte)(C.s2nshimTick)) }
