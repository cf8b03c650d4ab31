package s2n

import (
	"sync"
	"sync/atomic"
	"time"
)

// blindState holds back the alert and the close of the socket after a record that
// did not decrypt. s2n's own way is to sleep in the calling thread; here a timer
// waits, and nothing else.
type blindState struct {
	until atomic.Int64 // UnixNano; 0: no such record
	mu    sync.Mutex
	timer *time.Timer
	over  bool // the delay has passed
	close bool // Close was called meanwhile
}

// blindFor starts the delay. The timer keeps the Conn until it fires.
func (c *Conn) blindFor(delay time.Duration) {
	if delay <= 0 {
		return
	}
	b := &c.blind
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		return
	}
	b.until.Store(time.Now().Add(delay).UnixNano())
	b.timer = time.AfterFunc(delay, c.blindOver)
}

// blindOver sends the alert, and closes if Close wanted to.
func (c *Conn) blindOver() {
	b := &c.blind
	b.mu.Lock()
	b.over = true
	closing := b.close
	b.mu.Unlock()
	if closing {
		_ = c.conn.SetWriteDeadline(time.Now().Add(time.Second)) // Close had set it to wake writers
	}
	if c.out.TryLock() {
		if c.shim.Acquire() {
			_, _ = c.sendControl(c.shim.CloseWrite)
			c.write.closed = true
			c.shim.Release()
		}
		c.out.Unlock()
	}
	if closing {
		_ = c.conn.Close()
		c.freeShim(c.shim)
	}
}

// closeLater reports whether the timer will close the connection. Calls that wait
// are woken now.
func (b *blindState) closeLater(c *Conn) bool {
	if b.until.Load() == 0 {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return false
	}
	b.close = true
	_ = c.conn.SetDeadline(time.Now())
	return true
}
