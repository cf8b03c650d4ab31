package aead_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
	"os"
	"reflect"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const maxPlaintext = (1<<32 - 2) * 16

// reserve returns n bytes of addresses without memory: whoever touches one dies.
func reserve(t *testing.T, n int) []byte {
	t.Helper()
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Munmap(b)) })
	return b
}

// Above the limit: crypto/cipher's panic or error, before a byte is touched and
// before memory for an output is asked for. All of it is addresses only.
func TestAboveTheLimit(t *testing.T) {
	huge := reserve(t, maxPlaintext+200)
	eachKind(t, func(t *testing.T, k kind, ours, theirs cipher.AEAD) {
		nonce := make([]byte, ours.NonceSize())
		for _, over := range []int{1, 2, 16, 100} {
			text, sealed := huge[:maxPlaintext+over], huge[:maxPlaintext+ours.Overhead()+over]
			for _, dst := range [][]byte{nil, huge[:0]} {
				got := try(func() ([]byte, error) { return ours.Seal(dst, nonce, text, nil), nil })
				assert.Equal(t, "crypto/cipher: message too large for GCM", got.panicked)
				if !k.random { // crypto/cipher's random kind allocates and copies first
					assert.Equal(t, try(func() ([]byte, error) { return theirs.Seal(dst, nonce, text, nil), nil }), got)
				}
				got = try(func() ([]byte, error) { return ours.Open(dst, nonce, sealed, nil) })
				assert.Nil(t, got.panicked)
				assert.EqualError(t, got.err, "cipher: message authentication failed")
				if !k.random {
					assert.Equal(t, try(func() ([]byte, error) { return theirs.Open(dst, nonce, sealed, nil) }).err.Error(), got.err.Error())
				}
			}
		}
	})
}

// Above 4 GiB nothing is cut to 32 bits.
func TestAbove4GiB(t *testing.T) {
	if testing.Short() || instrumented {
		t.Skip("encrypts 4 GiB several times; runs without -short, race detector and sanitizers")
	}
	testLarge(t, 1<<32+33, kinds[:1])
}

// The largest message there may be is sealed and opened.
func TestAtTheLimit(t *testing.T) {
	if os.Getenv("S2N_TEST_HUGE") == "" {
		t.Skip("encrypts 64 GiB several times, for minutes; S2N_TEST_HUGE=1 runs it")
	}
	testLarge(t, 1<<32+33, kinds[1:])
	testLarge(t, maxPlaintext, kinds)
}

// window is what repeated repeats.
const window = 4 << 20

// repeated returns n bytes of addresses behind which the same window of memory
// lies over and over, but for the end, which has memory of its own. What is
// written to it is nonsense soon, but a tag tells what went by.
func repeated(t *testing.T, n int) []byte {
	t.Helper()
	f, err := os.CreateTemp("/dev/shm", "aead")
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, os.Remove(f.Name()))
	_, err = f.Write(bytesOf(uint64(n), window))
	require.NoError(t, err)

	whole := n / window
	b := reserve(t, (whole+1)*window)
	base := reflect.ValueOf(b).Pointer()
	place := func(i int, flags, fd uintptr) {
		_, _, errno := syscall.Syscall6(syscall.SYS_MMAP, base+uintptr(i)*window, window,
			syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_FIXED|flags, fd, 0)
		require.Zero(t, errno)
	}
	for i := range whole {
		place(i, syscall.MAP_SHARED, f.Fd())
	}
	place(whole, syscall.MAP_PRIVATE|syscall.MAP_ANON, ^uintptr(0))
	return b[:n]
}

func testLarge(t *testing.T, n int, kinds []kind) {
	key := bytesOf(50, 16)
	block, err := aes.NewCipher(key)
	require.NoError(t, err)
	plain, err := cipher.NewGCM(block)
	require.NoError(t, err)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			ours, _ := k.make(t, key)
			nonce := bytesOf(51, ours.NonceSize())
			text, out := repeated(t, n), repeated(t, n+ours.Overhead())
			tag := out[len(out)-16:]

			require.Len(t, ours.Seal(out[:0], nonce, text, nil), len(out))
			got := [16]byte(tag)
			used := nonce
			if k.random {
				used = append([]byte(nil), out[:12]...)
			}
			plain.Seal(out[len(out)-16-n:][:0], used, text, nil)
			assert.Equal(t, [16]byte(tag), got, "Seal")

			// A ciphertext whose tag is known: hashed as additional data by crypto/cipher,
			// of which only the block with the lengths is another one.
			in, out := out, text
			sealed := in[len(in)-16-n : len(in)-16]
			if k.random {
				copy(in, used)
			}
			adTag := plain.Seal(nil, used, nil, sealed)
			var asAD, asText, h [16]byte
			binary.BigEndian.PutUint64(asAD[:8], uint64(n)*8)
			binary.BigEndian.PutUint64(asText[8:], uint64(n)*8)
			subtle.XORBytes(asAD[:], asAD[:], asText[:])
			block.Encrypt(h[:], h[:])
			delta := gfMul(asAD, h)
			subtle.XORBytes(tag, adTag, delta[:])
			_, err := ours.Open(out[:0], nonce, in, nil)
			require.NoError(t, err, "Open")
		})
	}
}

// gfMul multiplies in GCM's field, bit by bit: NIST SP 800-38D, 6.3.
func gfMul(x, y [16]byte) (z [16]byte) {
	for i := range 128 {
		if x[i/8]>>(7-i%8)&1 != 0 {
			subtle.XORBytes(z[:], z[:], y[:])
		}
		odd := y[15]&1 != 0
		for j := 15; j > 0; j-- {
			y[j] = y[j]>>1 | y[j-1]<<7
		}
		y[0] >>= 1
		if odd {
			y[0] ^= 0xe1
		}
	}
	return z
}
