package side

import (
	"crypto/cipher"

	"github.com/s2n-go/s2n/bench/internal/proto"
)

// aeadAD is about what a protocol has: a record's header.
const aeadAD = 16

// CipherAEAD is a cipher.AEAD on one message of spec.Size bytes, into a buffer that
// has the room.
func CipherAEAD(spec proto.Spec, a cipher.AEAD) (AEAD, error) {
	nonce, ad, plaintext := make([]byte, a.NonceSize()), make([]byte, aeadAD), make([]byte, spec.Size)
	ciphertext := a.Seal(nil, nonce, plaintext, ad)
	dst := make([]byte, 0, len(ciphertext))
	switch spec.Op {
	case "seal":
		return func(n int) error {
			for range n {
				a.Seal(dst, nonce, plaintext, ad)
			}
			return nil
		}, nil
	case "open":
		return func(n int) error {
			for range n {
				if _, err := a.Open(dst, nonce, ciphertext, ad); err != nil {
					return err
				}
			}
			return nil
		}, nil
	}
	return nil, proto.Unsupported("no operation %q", spec.Op)
}
