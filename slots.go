package s2n

import (
	"context"
	"runtime"
	"sync/atomic"
)

// A slot is the right to be in C for a long call: making a connection, each step of
// its handshake, its end. More at once would not be faster, and Go makes a thread
// more for each that stays in C for longer than some 20 µs. There is one more than
// GOMAXPROCS, to keep every P busy while a goroutine in C waits for its own again.
type slot chan struct{}

var (
	slotsNow  atomic.Pointer[slot]
	slotsUsed atomic.Uint32
)

func init() { resizeSlots() }

// resizeSlots follows GOMAXPROCS. Those inside leave the channel that they entered.
func resizeSlots() {
	if n := runtime.GOMAXPROCS(0) + 1; slotsNow.Load() == nil || cap(*slotsNow.Load()) != n {
		s := make(slot, n)
		slotsNow.Store(&s)
	}
}

func currentSlots() slot {
	if slotsUsed.Add(1)%1024 == 0 {
		resizeSlots()
	}
	return *slotsNow.Load()
}

// trySlot is nil if there is none.
func trySlot() slot {
	s := currentSlots()
	select {
	case s <- struct{}{}:
		return s
	default:
		return nil
	}
}

// waitSlot waits for one; its error is ctx's.
func waitSlot(ctx context.Context) (slot, error) {
	s := currentSlots()
	select {
	case s <- struct{}{}:
		return s, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// leave gives a slot back, if s is one.
func (s slot) leave() {
	if s != nil {
		<-s
	}
}

func inSlot(ctx context.Context, call func()) error {
	s, err := waitSlot(ctx)
	if err != nil {
		return err
	}
	defer s.leave()
	call()
	return nil
}
