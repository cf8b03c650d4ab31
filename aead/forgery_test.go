package aead_test

import (
	"bytes"
	"crypto/cipher"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n/cshim"
)

// Each single bit of nonce, ciphertext, tag and additional data matters, and a
// failed Open leaves zeros where the output is, in every byte, and all else as it
// was: before dst, in dst, after the output up to the end of the array.
func TestForgeries(t *testing.T) {
	eachKind(t, func(t *testing.T, _ kind, ours, theirs cipher.AEAD) {
		const margin = 64
		for _, n := range []int{0, 1, 16, 31, 200} {
			nonce, ad, text := bytesOf(30, ours.NonceSize()), bytesOf(31, 21), bytesOf(32, n)
			sealed := theirs.Seal(nil, nonce, text, ad)
			for what, part := range map[string][]byte{"nonce": nonce, "ciphertext": sealed, "additional data": ad} {
				for bit := range len(part) * 8 {
					part[bit/8] ^= 1 << (bit % 8)
					array := bytesOf(33, margin+n+margin)
					want := bytes.Clone(array)
					clear(want[margin : margin+n])
					got, err := ours.Open(array[5:margin], nonce, sealed, ad)
					require.Error(t, err, "bit %d of %s", bit, what)
					require.Nil(t, got)
					require.Equal(t, want, array, "bit %d of %s, %d bytes", bit, what, n)
					part[bit/8] ^= 1 << (bit % 8)
				}
			}
			// Other sizes of everything.
			for cut := range sealed {
				_, err := ours.Open(nil, nonce, sealed[:cut], ad)
				require.Error(t, err, "ciphertext cut to %d bytes", cut)
			}
			_, err := ours.Open(nil, nonce, append(bytes.Clone(sealed), 0), ad)
			require.Error(t, err)
			_, err = ours.Open(nil, nonce, sealed, ad[:20])
			require.Error(t, err)
			_, err = ours.Open(nil, nonce, sealed, append(bytes.Clone(ad), 0))
			require.Error(t, err)
			got, err := ours.Open(nil, nonce, sealed, ad)
			require.NoError(t, err)
			require.True(t, bytes.Equal(text, got))
		}
	})
}

// A failed Open in place: the plaintext's room is zero, tag and the rest as they were.
func TestForgeryInPlace(t *testing.T) {
	eachKind(t, func(t *testing.T, _ kind, ours, theirs cipher.AEAD) {
		for _, n := range []int{0, 1, 16, 100, 3000, 70000} {
			nonce := bytesOf(34, ours.NonceSize())
			array := bytesOf(35, n+ours.Overhead()+50)
			sealed := theirs.Seal(array[:0], nonce, bytesOf(36, n), nil)
			sealed[len(sealed)-1] ^= 0x80
			want := bytes.Clone(array)
			clear(want[:n])
			got, err := ours.Open(array[:0], nonce, sealed, nil)
			require.Error(t, err)
			require.Nil(t, got)
			require.True(t, bytes.Equal(want, array), "%d bytes", n)
		}
	})
}

// A ciphertext too short for a tag does not touch dst: there is no output.
func TestTooShort(t *testing.T) {
	eachKind(t, func(t *testing.T, _ kind, ours, theirs cipher.AEAD) {
		nonce := make([]byte, ours.NonceSize())
		for n := range ours.Overhead() {
			array := bytesOf(37, 100)
			got, err := ours.Open(array[:10], nonce, make([]byte, n), nil)
			_, want := theirs.Open(nil, nonce, make([]byte, n), nil)
			assert.Equal(t, want, err)
			assert.Nil(t, got)
			assert.Equal(t, bytesOf(37, 100), array)
		}
	})
}

// One error for all causes, the same value each time, and it says what
// crypto/cipher's says.
func TestOneOpaqueError(t *testing.T) {
	var errs []error
	eachKind(t, func(t *testing.T, _ kind, ours, theirs cipher.AEAD) {
		nonce := make([]byte, ours.NonceSize())
		sealed := ours.Seal(nil, nonce, []byte("text"), nil)
		_, short := ours.Open(nil, nonce, nil, nil)
		_, ad := ours.Open(nil, nonce, sealed, []byte("ad"))
		sealed[len(sealed)-1]++
		_, tag := ours.Open(nil, nonce, sealed, nil)
		_, want := theirs.Open(nil, nonce, sealed, nil)
		assert.EqualError(t, tag, want.Error())
		errs = append(errs, short, ad, tag)
	})
	for _, err := range errs {
		assert.Equal(t, fmt.Sprintf("%p", errs[0]), fmt.Sprintf("%p", err))
	}
}

// AWS-LC's error stays in the call that met it.
func TestNoErrorIsLeftInTheQueue(t *testing.T) {
	eachKind(t, func(t *testing.T, _ kind, ours, _ cipher.AEAD) {
		lockThread(t)
		nonce := make([]byte, ours.NonceSize())
		for n := range 3 {
			_, err := ours.Open(nil, nonce, make([]byte, ours.Overhead()+n*100), nil)
			require.Error(t, err)
			require.Zero(t, cshim.ErrorQueueDepth())
		}
	})
}
