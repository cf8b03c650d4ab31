package s2n

import (
	"sync/atomic"
	"time"

	"github.com/s2n-go/s2n/cshim"
)

// Record buffers that no connection used for this long go back to the system.
const trimEvery = 5 * time.Second

var trimRuns atomic.Bool

// trimSoon has the pool of record buffers looked at while it holds any: a timer,
// no goroutine, and none once the pool is empty.
func trimSoon() {
	if trimRuns.CompareAndSwap(false, true) {
		time.AfterFunc(trimEvery, trim)
	}
}

func trim() {
	kept := cshim.MemTrim()
	trimRuns.Store(false)
	if kept > 0 {
		trimSoon()
	}
}
