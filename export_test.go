package s2n

import "github.com/s2n-go/s2n/cshim"

// Counts gives tests the system calls and bytes of a connection.
func (c *Conn) Counts() cshim.Counts { return c.counts() }
