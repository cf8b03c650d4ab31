package s2n

import (
	"crypto"

	"github.com/s2n-go/s2n/cshim"
)

// The transcript hash: TLS signs and derives keys over a hash of all handshake
// messages. Which hash that is becomes clear only as they come, so an
// implementation either keeps the messages or runs several hashes at once. s2n runs
// them; this module has it run only those that the policy, the versions and the use
// of client certificates can still ask for, from the client's first message on
// (cshim/src/hash.c).

// hashesOf lists a set in ascending order.
func hashesOf(set cshim.HashSet) []crypto.Hash {
	var list []crypto.Hash
	for _, h := range []struct {
		bit  cshim.HashSet
		hash crypto.Hash
	}{
		{cshim.HashMD5, crypto.MD5},
		{cshim.HashSHA1, crypto.SHA1},
		{cshim.HashSHA224, crypto.SHA224},
		{cshim.HashSHA256, crypto.SHA256},
		{cshim.HashSHA384, crypto.SHA384},
		{cshim.HashSHA512, crypto.SHA512},
		{cshim.HashMD5SHA1, crypto.MD5SHA1},
	} {
		if set&h.bit != 0 {
			list = append(list, h.hash)
		}
	}
	return list
}
