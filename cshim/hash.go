//go:build linux && cgo

package cshim

// #include "s2nshim.h"
import "C"

// HashSet is a set of transcript hashes, S2NSHIM_HASH_MD5 and so on.
type HashSet uint16

// The hashes that s2n can roll over a handshake.
const (
	HashMD5     HashSet = C.S2NSHIM_HASH_MD5
	HashSHA1    HashSet = C.S2NSHIM_HASH_SHA1
	HashSHA224  HashSet = C.S2NSHIM_HASH_SHA224
	HashSHA256  HashSet = C.S2NSHIM_HASH_SHA256
	HashSHA384  HashSet = C.S2NSHIM_HASH_SHA384
	HashSHA512  HashSet = C.S2NSHIM_HASH_SHA512
	HashMD5SHA1 HashSet = C.S2NSHIM_HASH_MD5_SHA1
)
