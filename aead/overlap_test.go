package aead_test

import (
	"bytes"
	"crypto/cipher"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// layout is where the arguments of a call lie in one array.
type layout struct {
	dst, dstLen    int // dst is array[dst : dst+dstLen], with all that follows as room
	in, inLen      int
	ad, adLen      int
	nonce, dstRoom int
}

const arraySize = 160

// each tells f of every way in which a short input, a shorter additional data and
// the output can lie in one array. Some outputs have no room and are made anew.
func (k kind) each(ours cipher.AEAD, seal bool, f func(l layout)) {
	lengths := []int{0, 1, 15, 16, 17, 33}
	if !seal {
		for i := range lengths {
			lengths[i] += ours.Overhead()
		}
	}
	for _, inLen := range lengths {
		const in = 50 // the output is moved past it
		for dst := range arraySize - 20 {
			for _, room := range []int{arraySize - dst, 20} {
				f(layout{dst: dst, in: in, inLen: inLen, ad: 0, adLen: 0, nonce: arraySize - 12, dstRoom: room})
			}
		}
		// The additional data is moved past both, with the output in place and apart.
		for _, dst := range []int{in, 0} {
			for ad := range arraySize - 20 {
				for _, adLen := range []int{0, 1, 20} {
					f(layout{dst: dst, dstLen: 0, in: in, inLen: inLen, ad: ad, adLen: adLen, nonce: arraySize - 12, dstRoom: arraySize - dst})
				}
			}
		}
		// A dst with bytes in it: the output begins after them.
		for dst := range 50 {
			f(layout{dst: dst, dstLen: 50 - dst, in: in, inLen: inLen, nonce: arraySize - 12, dstRoom: arraySize - dst})
			f(layout{dst: dst, dstLen: 7, in: in, inLen: inLen, nonce: arraySize - 12, dstRoom: arraySize - dst})
		}
	}
}

func (l layout) args(array []byte, nonceSize int) (dst, nonce, in, ad []byte) {
	return array[l.dst : l.dst+l.dstLen : l.dst+max(l.dstRoom, l.dstLen)], array[l.nonce : l.nonce+nonceSize],
		array[l.in : l.in+l.inLen], array[l.ad : l.ad+l.adLen]
}

// Whatever lies where: the same panic as crypto/cipher's, or the same result, and
// the same bytes in all of the array afterwards.
func TestOverlapOfSeal(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, ours, theirs cipher.AEAD) {
		panics, inPlace := 0, 0
		k.each(ours, true, func(l layout) {
			array := bytesOf(20, arraySize)
			run := func(a cipher.AEAD, array []byte) outcome {
				dst, nonce, in, ad := l.args(array, a.NonceSize())
				return try(func() ([]byte, error) { return a.Seal(dst, nonce, in, ad), nil })
			}
			mine, other := bytes.Clone(array), bytes.Clone(array)
			got, want := run(ours, mine), run(theirs, other)
			require.Equal(t, want.panicked, got.panicked, "%+v", l)
			if want.panicked != nil {
				panics++
				require.Equal(t, array, mine, "a call that panics writes nothing: %+v", l)
				return
			}
			if l.dst+l.dstLen == l.in && l.inLen > 0 {
				inPlace++
			}
			if !k.random {
				require.Equal(t, want.out, got.out, "%+v", l)
				require.Equal(t, other, mine, "%+v", l)
				return
			}
			_, _, in, ad := l.args(array, 0)
			opened, err := theirs.Open(nil, nil, got.out[l.dstLen:], ad)
			require.NoError(t, err, "%+v", l)
			require.True(t, bytes.Equal(in, opened), "%+v", l)
			l.requireOutsideEqual(t, array, mine, ours.Overhead())
		})
		assert.Positive(t, panics)
		assert.Positive(t, inPlace)
	})
}

func TestOverlapOfOpen(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, ours, theirs cipher.AEAD) {
		panics, inPlace := 0, 0
		for _, forged := range []bool{false, true} {
			k.each(ours, false, func(l layout) {
				array := bytesOf(21, arraySize)
				_, nonce, in, ad := l.args(array, ours.NonceSize())
				// Sealed with the additional data as it is once the ciphertext is in the
				// array; where the two overlap that is a forgery, which is fine too.
				text := bytesOf(22, l.inLen-ours.Overhead())
				copy(in, theirs.Seal(nil, bytes.Clone(nonce), text, bytes.Clone(ad)))
				if forged {
					in[len(in)-1] ^= 1
				}
				run := func(a cipher.AEAD, array []byte) outcome {
					dst, nonce, in, ad := l.args(array, a.NonceSize())
					return try(func() ([]byte, error) { return a.Open(dst, nonce, in, ad) })
				}
				mine, other := bytes.Clone(array), bytes.Clone(array)
				got, want := run(ours, mine), run(theirs, other)
				if _, ok := want.panicked.(runtime.Error); ok && k.random && l.dst+l.dstLen == l.in {
					// crypto/cipher wants room for the ciphertext in an array that it opens
					// in place, and runs out of bounds where there is none.
					l.dstRoom = arraySize - l.dst
					copy(other, array)
					want = run(theirs, other)
				}
				require.Equal(t, want.panicked, got.panicked, "%+v", l)
				if want.panicked != nil {
					panics++
					require.Equal(t, array, mine, "a call that panics writes nothing: %+v", l)
					return
				}
				if l.dst+l.dstLen == l.in && len(text) > 0 {
					inPlace++
				}
				if !k.random {
					require.Equal(t, other, mine, "%+v", l)
				} else {
					// In place crypto/cipher's random kind moves the tag down before it looks
					// at the additional data, which may lie there; ours writes the output only.
					dst, nonce, in, ad := l.args(bytes.Clone(array), 0)
					want = try(func() ([]byte, error) { return theirs.Open(nil, nonce, in, ad) })
					if want.err == nil {
						want.out = append(bytes.Clone(dst), want.out...)
					}
				}
				require.Equal(t, want.err, got.err, "%+v", l)
				require.True(t, bytes.Equal(want.out, got.out), "%+v", l)
				l.requireOutsideEqual(t, array, mine, -ours.Overhead())
			})
		}
		assert.Positive(t, panics)
		assert.Positive(t, inPlace)
	})
}

// requireOutsideEqual looks at all that is not the output, which is longer than
// the input by extra.
func (l layout) requireOutsideEqual(t *testing.T, before, after []byte, extra int) {
	t.Helper()
	from, to := l.dst+l.dstLen, l.dst+l.dstLen+l.inLen+extra
	if to > l.dst+l.dstRoom {
		to = from // a new array was made
	}
	require.Equal(t, before[:from], after[:from], "%+v", l)
	require.Equal(t, before[to:], after[to:], "%+v", l)
}

// Buffers that touch do not overlap.
func TestNeighbours(t *testing.T) {
	eachKind(t, func(t *testing.T, _ kind, ours, _ cipher.AEAD) {
		const n = 40
		array := make([]byte, 4*n+100)
		text, ad := array[:n], array[n:2*n]
		copy(text, bytesOf(23, n))
		nonce := make([]byte, ours.NonceSize())
		sealed := ours.Seal(array[2*n:2*n], nonce, text, ad)
		got, err := ours.Open(array[2*n+len(sealed):][:0], nonce, sealed, ad)
		require.NoError(t, err)
		assert.Equal(t, bytesOf(23, n), got)
		assert.Equal(t, bytesOf(23, n), text)
	})
}

// In place, at lengths where implementations change over from one loop to another.
func TestInPlace(t *testing.T) {
	eachKind(t, func(t *testing.T, _ kind, ours, theirs cipher.AEAD) {
		nonce, ad := bytesOf(24, ours.NonceSize()), bytesOf(25, 20)
		for _, n := range lengths {
			text := bytesOf(26, n)
			buf := append(make([]byte, 0, n+ours.Overhead()), text...)
			sealed := ours.Seal(buf[:0], nonce, buf, ad)
			got, err := theirs.Open(nil, nonce, sealed, ad)
			require.NoError(t, err)
			require.True(t, bytes.Equal(text, got), "Seal in place, %d bytes", n)
			got, err = ours.Open(sealed[:0], nonce, sealed, ad)
			require.NoError(t, err, "Open in place, %d bytes", n)
			require.True(t, bytes.Equal(text, got), "Open in place, %d bytes", n)
		}
	})
}
