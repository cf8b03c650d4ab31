package s2n

import (
	"syscall"

	"github.com/s2n-go/s2n/cshim"
)

// Counts gives tests the system calls and bytes of a connection.
func (c *Conn) Counts() cshim.Counts { return c.counts() }

// SwapRaw puts another RawConn in the place of the socket's.
func (c *Conn) SwapRaw(swap func(syscall.RawConn) syscall.RawConn) { c.raw = swap(c.raw) }

// Abort sends an alert as a handshake does that Go itself gives up.
func (c *Conn) Abort(alert Alert) { c.abort(alert) }

// FillSlots takes all slots until its result is called.
func FillSlots() func() {
	s := currentSlots()
	for range cap(s) {
		s <- struct{}{}
	}
	return func() {
		for range cap(s) {
			s.leave()
		}
	}
}

// UseSlots is as n long calls.
func UseSlots(n int) {
	for range n {
		currentSlots()
	}
}

// Slots is how many long calls may be in C at once.
func Slots() int { return cap(*slotsNow.Load()) }
