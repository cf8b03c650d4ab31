package aead_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"testing"

	"github.com/s2n-go/s2n/aead"
)

// FuzzAgainstCryptoCipher gives both the same message and the same forgery, and
// wants the same of both. where places the output in an array with text and
// additional data before it, behind it, or in the text's own place.
func FuzzAgainstCryptoCipher(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), []byte("nonce of 12."), []byte("plaintext"), []byte("additional data"), uint16(0), uint16(3))
	f.Add(make([]byte, 32), make([]byte, 12), []byte{}, []byte{}, uint16(1), uint16(0))
	f.Add(make([]byte, 24), make([]byte, 13), make([]byte, 500), make([]byte, 33), uint16(2), uint16(77))
	f.Add(make([]byte, 32), make([]byte, 12), make([]byte, 5000), make([]byte, 1), uint16(3), uint16(4000))
	f.Fuzz(func(t *testing.T, key, nonce, text, ad []byte, where, flip uint16) {
		ours, err := aead.NewAESGCM(key)
		if len(key) != 16 && len(key) != 32 {
			if err == nil {
				t.Fatalf("took a key of %d bytes", len(key))
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := cipher.NewGCM(block)
		if err != nil {
			t.Fatal(err)
		}

		// in | ad | room, and the output begins at any byte of it all.
		lay := func(in []byte) (array, dst, input, data []byte) {
			array = make([]byte, 2*(len(in)+16)+len(ad)+32)
			copy(array, in)
			copy(array[len(in):], ad)
			at := int(where) % len(array)
			return array, array[at:at], array[:len(in)], array[len(in) : len(in)+len(ad)]
		}
		compare := func(what string, in []byte, call func(a cipher.AEAD, dst, in, ad []byte) ([]byte, error)) []byte {
			mine, dst, input, data := lay(in)
			got := try(func() ([]byte, error) { return call(ours, dst, input, data) })
			other, dst, input, data := lay(in)
			want := try(func() ([]byte, error) { return call(theirs, dst, input, data) })
			if got.panicked != want.panicked || (got.err == nil) != (want.err == nil) || !bytes.Equal(got.out, want.out) {
				t.Fatalf("%s: %+v, and crypto/cipher: %+v", what, got, want)
			}
			if !bytes.Equal(mine, other) {
				t.Fatalf("%s: the array is %x, and with crypto/cipher %x", what, mine, other)
			}
			return got.out
		}
		seal := func(a cipher.AEAD, dst, in, ad []byte) ([]byte, error) { return a.Seal(dst, nonce, in, ad), nil }
		open := func(a cipher.AEAD, dst, in, ad []byte) ([]byte, error) { return a.Open(dst, nonce, in, ad) }
		compare("Seal", text, seal)
		compare("Open of anything", text, open)
		if len(nonce) != ours.NonceSize() {
			return
		}
		sealed := ours.Seal(nil, nonce, text, ad)
		compare("Open", sealed, open)
		sealed[int(flip)%len(sealed)] ^= byte(flip>>8) | 1
		compare("Open of a forgery", sealed, open)
	})
}
