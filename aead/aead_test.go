package aead_test

import (
	"bytes"
	"crypto/cipher"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n/aead"
	"github.com/s2n-go/s2n/cshim"
)

// Around each border that an implementation may have: blocks, 6 blocks at a time,
// the 96-byte and 288-byte loops of AES-NI code, 3 KiB of GHASH, pages, records.
var lengths = []int{0, 1, 15, 16, 17, 31, 32, 33, 95, 96, 97, 127, 128, 129, 287, 288, 289, 384, 767, 768, 1024, 3071, 3072, 3073,
	4095, 4096, 4097, 8192, 8193, 16384, 65535, 65537}

func TestSizes(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, ours, theirs cipher.AEAD) {
		assert.Equal(t, theirs.NonceSize(), ours.NonceSize())
		assert.Equal(t, theirs.Overhead(), ours.Overhead())
	})
	a, err := aead.NewAESGCM(make([]byte, 16))
	require.NoError(t, err)
	assert.Equal(t, 12, a.NonceSize())
	assert.Equal(t, 16, a.Overhead())
	a, err = aead.NewAESGCMRandomNonce(make([]byte, 32))
	require.NoError(t, err)
	assert.Equal(t, 0, a.NonceSize())
	assert.Equal(t, 28, a.Overhead())
}

func TestKeySizes(t *testing.T) {
	for n := range 70 {
		for _, k := range kinds {
			key := bytesOf(1, n)
			a, err := k.ours(key)
			if n == 16 || n == 32 {
				require.NoError(t, err)
				continue
			}
			assert.Nil(t, a, "%s, %d bytes", k.name, n)
			assert.EqualError(t, err, fmt.Sprintf("aead: a key for AES-GCM has 16 or 32 bytes, not %d", n))
		}
	}
	_, err := aead.NewAESGCM(nil)
	assert.Error(t, err)
}

// What is not in cipher.AEAD would become part of the API by a type assertion.
func TestNoOtherMethods(t *testing.T) {
	eachKind(t, func(t *testing.T, _ kind, ours, _ cipher.AEAD) {
		assert.Equal(t, reflect.TypeFor[cipher.AEAD]().NumMethod(), reflect.TypeOf(ours).NumMethod())
	})
}

// The same bytes as crypto/cipher's, each side opens what the other sealed, at all
// lengths of text and of additional data, and at odd addresses.
func TestAgainstCryptoCipher(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, ours, theirs cipher.AEAD) {
		nonce := bytesOf(2, ours.NonceSize())
		for i, n := range lengths {
			for j, m := range lengths {
				if n > 4096 && m > 97 && (i+j)%5 != 0 {
					continue
				}
				text, ad := bytesOf(3, n+3)[3:], bytesOf(4, m+5)[5:]
				sealed := ours.Seal(nil, nonce, text, ad)
				if !k.random {
					require.Equal(t, theirs.Seal(nil, nonce, text, ad), sealed, "%d bytes, %d of additional data", n, m)
				}
				got, err := theirs.Open(nil, nonce, sealed, ad)
				require.NoError(t, err, "%d bytes, %d of additional data", n, m)
				require.True(t, bytes.Equal(text, got))
				got, err = ours.Open(nil, nonce, theirs.Seal(nil, nonce, text, ad), ad)
				require.NoError(t, err, "%d bytes, %d of additional data", n, m)
				require.True(t, bytes.Equal(text, got))
			}
		}
	})
}

// The last 32 bits of the block counter wrap by themselves after 2³² blocks only,
// with a nonce of 12 bytes; but all values of the nonce are fine.
func TestNonceValues(t *testing.T) {
	ours, theirs := kinds[0].make(t, bytesOf(5, 32))
	text := bytesOf(6, 1000)
	for _, b := range []byte{0, 1, 0x7f, 0x80, 0xff} {
		nonce := bytes.Repeat([]byte{b}, 12)
		assert.Equal(t, theirs.Seal(nil, nonce, text, nil), ours.Seal(nil, nonce, text, nil), "nonce of %#x", b)
	}
}

func TestWrongNonceSizePanics(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, ours, theirs cipher.AEAD) {
		for n := range 33 {
			nonce := make([]byte, n)
			text, sealed := make([]byte, 5), make([]byte, 50)
			for _, in := range [][]byte{text, sealed, nil} {
				want := try(func() ([]byte, error) { return theirs.Seal(nil, nonce, in, nil), nil })
				got := try(func() ([]byte, error) { return ours.Seal(nil, nonce, in, nil), nil })
				assert.Equal(t, want.panicked, got.panicked, "Seal with a nonce of %d bytes", n)
				want = try(func() ([]byte, error) { return theirs.Open(nil, nonce, in, nil) })
				got = try(func() ([]byte, error) { return ours.Open(nil, nonce, in, nil) })
				assert.Equal(t, want.panicked, got.panicked, "Open with a nonce of %d bytes", n)
				assert.Equal(t, n != ours.NonceSize(), got.panicked != nil)
			}
		}
	})
}

// nil and empty are the same for every argument, in every combination, and what
// comes back is nil exactly where crypto/cipher returns nil.
func TestNilAndEmpty(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, ours, theirs cipher.AEAD) {
		empties := [][]byte{nil, {}, make([]byte, 0, 64), make([]byte, 8)[3:3], make([]byte, 8)[8:]}
		nonce := bytesOf(7, ours.NonceSize())
		for _, dst := range empties {
			for _, text := range empties {
				for _, ad := range empties {
					sealed := ours.Seal(dst, nonce, text, ad)
					require.Len(t, sealed, ours.Overhead())
					sealed = bytes.Clone(sealed) // dst may be where Open writes
					for _, plain := range empties {
						want, err := theirs.Open(plain, nonce, sealed, ad)
						require.NoError(t, err)
						got, err := ours.Open(plain, nonce, sealed, ad)
						require.NoError(t, err)
						require.Equal(t, want == nil, got == nil)
						require.Empty(t, got)
					}
				}
			}
		}
		if k.random {
			for _, nonce := range empties {
				require.Len(t, ours.Seal(nil, nonce, nil, nil), 28)
			}
		}
	})
}

// dst's bytes stay, what follows them is the output, and the array is dst's where
// it has the room.
func TestAppend(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, ours, theirs cipher.AEAD) {
		nonce, ad := bytesOf(8, ours.NonceSize()), []byte("ad")
		for _, n := range []int{0, 1, 100, 5000} {
			text := bytesOf(9, n)
			for _, head := range []int{0, 1, 13, 300} {
				for _, spare := range []int{0, n, n + ours.Overhead() - 1, n + ours.Overhead(), n + 1000} {
					dst := append(make([]byte, 0, head+spare), bytesOf(10, head)...)
					sealed := ours.Seal(dst, nonce, text, ad)
					require.Len(t, sealed, head+n+ours.Overhead())
					require.Equal(t, bytesOf(10, head), sealed[:head])
					inPlace := cap(dst) >= head+n+ours.Overhead()
					require.Equal(t, inPlace, cap(dst) > 0 && &sealed[:1][0] == &dst[:1][0])
					got, err := theirs.Open(nil, nonce, sealed[head:], ad)
					require.NoError(t, err)
					require.True(t, bytes.Equal(text, got))

					dst = append(make([]byte, 0, head+spare), bytesOf(10, head)...)
					opened, err := ours.Open(dst, nonce, sealed[head:], ad)
					require.NoError(t, err)
					require.Equal(t, bytesOf(10, head), opened[:head:head])
					require.True(t, bytes.Equal(text, opened[head:]))
					if cap(dst) > 0 && cap(dst) >= head+n {
						require.Same(t, &dst[:1][0], &opened[:1][0])
					}
				}
			}
		}
	})
}

// The nonce's own array is a usual dst.
func TestDstIsNonce(t *testing.T) {
	ours, theirs := kinds[0].make(t, bytesOf(11, 32))
	text := bytesOf(12, 77)
	for _, room := range []int{12, 200} {
		mine, other := append(make([]byte, 0, room), bytesOf(13, 12)...), append(make([]byte, 0, room), bytesOf(13, 12)...)
		got, want := ours.Seal(mine, mine, text, nil), theirs.Seal(other, other, text, nil)
		assert.Equal(t, want, got)
		// And over the nonce itself: it has been read before it is written.
		mine, other = append(make([]byte, 0, room), bytesOf(13, 12)...), append(make([]byte, 0, room), bytesOf(13, 12)...)
		assert.Equal(t, theirs.Seal(other[:0], other, text, nil), ours.Seal(mine[:0], mine, text, nil))
	}
}

func TestRandomNoncesDiffer(t *testing.T) {
	a, err := aead.NewAESGCMRandomNonce(bytesOf(14, 16))
	require.NoError(t, err)
	seen := map[[12]byte]bool{}
	for range 10000 {
		nonce := [12]byte(a.Seal(nil, nil, nil, nil))
		require.False(t, seen[nonce], "%x came twice", nonce)
		seen[nonce] = true
	}
}

// What docs/AEAD.md and the comments claim, asked of the module itself: its service
// indicator moves for an approved service, and only for one.
func TestServiceIndicator(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, ours, _ cipher.AEAD) {
		approved := func(f func()) bool {
			before := cshim.ServiceIndicator()
			f()
			return cshim.ServiceIndicator() != before
		}
		lockThread(t)
		nonce, text := make([]byte, ours.NonceSize()), bytesOf(15, 100)
		var sealed []byte
		assert.Equal(t, k.random, approved(func() { sealed = ours.Seal(nil, nonce, text, nil) }), "Seal")
		assert.True(t, approved(func() { _, _ = ours.Open(nil, nonce, sealed, nil) }), "Open")
		sealed[len(sealed)-1]++
		assert.False(t, approved(func() { _, _ = ours.Open(nil, nonce, sealed, nil) }), "an Open that fails")
	})
}

// One AEAD, 64 goroutines, each with its own texts, good and forged ones.
func TestConcurrent(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, ours, theirs cipher.AEAD) {
		var wg sync.WaitGroup
		for g := range uint64(64) {
			wg.Go(func() {
				nonce := bytesOf(g, ours.NonceSize())
				var buf []byte
				for i := range uint64(50) {
					text, ad := bytesOf(g<<32|i, int(g*i)%3000), bytesOf(i, int(i))
					buf = ours.Seal(buf[:0], nonce, text, ad)
					if !k.random && !bytes.Equal(buf, theirs.Seal(nil, nonce, text, ad)) {
						t.Error("Seal gave another ciphertext beside other goroutines")
					}
					got, err := ours.Open(nil, nonce, buf, ad)
					if err != nil || !bytes.Equal(got, text) {
						t.Error("Open failed beside other goroutines:", err)
					}
					buf[int(i)%len(buf)] ^= 4
					if _, err := ours.Open(nil, nonce, buf, ad); err == nil {
						t.Error("Open took a forgery beside other goroutines")
					}
				}
			})
		}
		wg.Wait()
	})
}
