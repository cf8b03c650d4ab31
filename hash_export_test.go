package s2n

import "github.com/s2n-go/s2n/cshim"

// Hashes gives tests the hashes that took the first message, those that were
// running at the end, and those that s2n alone would have run there.
func (c *Conn) Hashes() (first, last, upstream cshim.HashSet) {
	info := c.info.Load()
	return info.HashesFirst, info.Hashes, info.HashesUpstream
}
