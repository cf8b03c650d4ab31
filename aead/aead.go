package aead

import (
	"crypto/cipher"
	"errors"
	"fmt"

	"github.com/s2n-go/s2n/cshim"
)

const (
	nonceSize = cshim.AEADNonce
	tagSize   = cshim.AEADTag
	// NIST SP 800-38D, 5.2.1.1: the block counter has 32 bits, and two of its values are taken.
	maxPlaintext = (1<<32 - 2) * 16
)

// errOpen is all that a failed Open says.
var errOpen = errors.New("cipher: message authentication failed")

// NewAESGCM returns AES-GCM with a nonce of 12 bytes, the caller's, and a tag of
// 16. The key has 16 or 32 bytes.
//
// It is EVP_aead_aes_128_gcm or EVP_aead_aes_256_gcm. FIPS 140-3: Open is an
// approved service; Seal with the caller's nonce is not, whatever the nonce. Use
// [NewAESGCMRandomNonce] where Seal must be one.
func NewAESGCM(key []byte) (cipher.AEAD, error) {
	a, err := newAEAD(key, false)
	if err != nil {
		return nil, err
	}
	return &gcm{a}, nil
}

// NewAESGCMRandomNonce returns AES-GCM with nonces that the module makes, 12
// random bytes each. The key has 16 or 32 bytes. NonceSize is 0 and Overhead 28:
// Seal's output is nonce, ciphertext, tag, which is also what crypto/cipher's
// NewGCMWithRandomNonce writes and reads. One key must not seal more than 2³²
// messages.
//
// It is EVP_aead_aes_128_gcm_randnonce or EVP_aead_aes_256_gcm_randnonce. FIPS
// 140-3: Seal and Open are approved services.
func NewAESGCMRandomNonce(key []byte) (cipher.AEAD, error) {
	a, err := newAEAD(key, true)
	if err != nil {
		return nil, err
	}
	return &gcmRandomNonce{a}, nil
}

func newAEAD(key []byte, randomNonce bool) (*cshim.AEAD, error) {
	if len(key) != 16 && len(key) != 32 {
		return nil, fmt.Errorf("aead: a key for AES-GCM has 16 or 32 bytes, not %d", len(key))
	}
	a := cshim.NewAEAD(key, randomNonce)
	if a == nil {
		return nil, errors.New("aead: no memory for a key schedule")
	}
	return a, nil
}

type gcm struct{ c *cshim.AEAD }

func (g *gcm) NonceSize() int { return nonceSize }

func (g *gcm) Overhead() int { return tagSize }

func (g *gcm) Seal(dst, nonce, plaintext, additionalData []byte) []byte {
	if len(nonce) != nonceSize {
		panic("crypto/cipher: incorrect nonce length given to GCM")
	}
	checkSize(plaintext)
	all, out := sliceForAppend(dst, len(plaintext)+tagSize)
	if cshim.SharesMemoryShifted(out, plaintext) || cshim.SharesMemory(out, additionalData) {
		overlapPanic(out, plaintext)
	}
	if !g.c.Seal(out, nonce, plaintext, additionalData) {
		panic(refused)
	}
	return all
}

func (g *gcm) Open(dst, nonce, ciphertext, additionalData []byte) ([]byte, error) {
	if len(nonce) != nonceSize {
		panic("crypto/cipher: incorrect nonce length given to GCM")
	}
	if len(ciphertext) < tagSize || uint64(len(ciphertext)) > maxPlaintext+tagSize {
		return nil, errOpen
	}
	all, out := sliceForAppend(dst, len(ciphertext)-tagSize)
	if cshim.SharesMemoryShifted(out, ciphertext) || cshim.SharesMemory(out, additionalData) {
		overlapPanic(out, ciphertext)
	}
	if !g.c.Open(out, nonce, ciphertext, additionalData) {
		return nil, errOpen
	}
	return all, nil
}

type gcmRandomNonce struct{ c *cshim.AEAD }

func (g *gcmRandomNonce) NonceSize() int { return 0 }

func (g *gcmRandomNonce) Overhead() int { return nonceSize + tagSize }

func (g *gcmRandomNonce) Seal(dst, nonce, plaintext, additionalData []byte) []byte {
	if len(nonce) != 0 {
		panic("crypto/cipher: non-empty nonce passed to GCMWithRandomNonce")
	}
	checkSize(plaintext)
	all, out := sliceForAppend(dst, nonceSize+len(plaintext)+tagSize)
	if cshim.SharesMemoryShifted(out, plaintext) || cshim.SharesMemory(out, additionalData) {
		overlapPanic(out, plaintext)
	}
	if !g.c.SealRandom(out, plaintext, additionalData) {
		panic(refused)
	}
	return all
}

func (g *gcmRandomNonce) Open(dst, nonce, ciphertext, additionalData []byte) ([]byte, error) {
	if len(nonce) != 0 {
		panic("crypto/cipher: non-empty nonce passed to GCMWithRandomNonce")
	}
	if len(ciphertext) < nonceSize+tagSize || uint64(len(ciphertext)) > nonceSize+maxPlaintext+tagSize {
		return nil, errOpen
	}
	all, out := sliceForAppend(dst, len(ciphertext)-nonceSize-tagSize)
	if cshim.SharesMemoryShifted(out, ciphertext) || cshim.SharesMemory(out, additionalData) {
		overlapPanic(out, ciphertext)
	}
	if !g.c.OpenRandom(out, ciphertext, additionalData) {
		return nil, errOpen
	}
	return all, nil
}

// refused cannot happen: all that the module checks was checked before.
const refused = "aead: the module refused to seal"

// checkSize panics as crypto/cipher does, before anything is allocated or read.
func checkSize(plaintext []byte) {
	if uint64(len(plaintext)) > maxPlaintext {
		panic("crypto/cipher: message too large for GCM")
	}
}

// overlapPanic panics as crypto/cipher does, where the output lies where it may not:
// it may begin where the input does, or shares no byte with it; with the additional
// data it shares none.
func overlapPanic(out, in []byte) {
	if cshim.SharesMemoryShifted(out, in) {
		panic("crypto/cipher: invalid buffer overlap of output and input")
	}
	panic("crypto/cipher: invalid buffer overlap of output and additional data")
}

// sliceForAppend returns dst made longer by n bytes, and those n alone. The array
// is dst's where it has the room, or else a new one with room for no more. What is
// in the added bytes is not said.
func sliceForAppend(dst []byte, n int) (all, added []byte) {
	used := len(dst)
	if cap(dst)-used >= n {
		all = dst[:used+n]
	} else {
		all = cshim.NewBytes(used + n)
		copy(all, dst)
	}
	return all, all[used:]
}
