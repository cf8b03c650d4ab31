package aead_test

import (
	"bufio"
	"bytes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n/cshim"
)

// A mask keeps the test's own copy of a secret from being found.
const mask = 0x5c

func masked(b []byte) []byte {
	m := make([]byte, len(b))
	for i := range b {
		m[i] = b[i] ^ mask
	}
	return m
}

// search returns each address in the process's own writable memory at which one of
// the secrets lies, given with the mask on.
func search(t *testing.T, secrets ...[]byte) (found []uintptr) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	mem, err := os.Open("/proc/self/mem")
	require.NoError(t, err)
	defer mem.Close()
	// Apart from the heap, so that nothing is found in it. Reads overlap, to find what
	// lies across a border.
	const size, overlap = 1 << 20, 64
	buf, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Munmap(buf)) }()
	masks := bytes.Repeat([]byte{mask}, size)
	for lines := bufio.NewScanner(bytes.NewReader(maps)); lines.Scan(); {
		var from, to uint64
		var perms string
		_, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &perms)
		require.NoError(t, err)
		if !strings.HasPrefix(perms, "rw") {
			continue
		}
		for at := from; at < to; at += size - overlap {
			n, _ := mem.ReadAt(buf[:min(size, to-at)], int64(at)) // 0: no memory there
			subtle.XORBytes(buf, buf[:n], masks)
			for _, secret := range secrets {
				for i := 0; i+len(secret) <= n; i++ {
					j := bytes.Index(buf[i:n], secret)
					if j < 0 {
						break
					}
					i += j
					found = append(found, uintptr(at)+uintptr(i))
				}
			}
			clear(buf[:n])
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// peek returns the bytes at an address, with the mask on; nil if it is gone.
func peek(t *testing.T, at uintptr, n int) []byte {
	t.Helper()
	mem, err := os.Open("/proc/self/mem")
	require.NoError(t, err)
	defer mem.Close()
	b := make([]byte, n)
	if _, err := mem.ReadAt(b, int64(at)); err != nil {
		return nil
	}
	for i := range b {
		b[i] ^= mask
	}
	return b
}

// The key and all that is made of it (round keys, GHASH table) is in C memory while
// the AEAD lives, found there by looking through the process's memory; when it is
// dead none of it is.
func TestKeyIsOverwritten(t *testing.T) {
	if instrumented {
		t.Skip("the shadow memory of race detector and sanitizers is more than can be looked through; the test without them covers this")
	}
	for _, k := range kinds {
		for _, size := range []int{16, 32} {
			t.Run(fmt.Sprintf("%s/AES-%d", k.name, size*8), func(t *testing.T) {
				require.Zero(t, waitForKeys(0), "keys of other tests")
				key := make([]byte, size)
				_, err := rand.Read(key)
				require.NoError(t, err)
				secret := masked(key)
				var at uintptr
				var before []byte // all that EVP_AEAD_CTX has from there on
				rounds := 16 * (size/4 + 7)
				func() {
					a, err := k.ours(key)
					require.NoError(t, err)
					clear(key)
					use(t, a)
					found := search(t, secret)
					require.Len(t, found, 1, "one place holds the key: where the key schedule begins")
					at = found[0]
					before = peek(t, at, 560)
					require.NotNil(t, before)
					runtime.KeepAlive(a)
				}()
				require.Zero(t, waitForKeys(0))

				secrets := [][]byte{secret}
				for i := 0; i < rounds; i += 16 {
					secrets = append(secrets, before[i:i+16])
				}
				assert.Empty(t, search(t, secrets...), "the key or a round key")
				after := peek(t, at, 560)
				same, zero := 0, bytes.Repeat([]byte{mask}, 8)
				for i := 0; i+8 <= len(after); i += 8 {
					if !bytes.Equal(before[i:i+8], zero) && bytes.Equal(before[i:i+8], after[i:i+8]) {
						same++
					}
				}
				assert.Zero(t, same, "words that are still what they were where the schedule was")
			})
		}
	}
}

//go:noinline
func use(t *testing.T, a cipher.AEAD) {
	nonce := make([]byte, a.NonceSize())
	_, err := a.Open(nil, nonce, a.Seal(nil, nonce, []byte("text"), nil), nil)
	require.NoError(t, err)
}

// A dropped AEAD's memory in C comes back in step with the collector, which is told
// of its size: many short-lived ones do not pile up.
func TestDroppedKeysDoNotPileUp(t *testing.T) {
	key := make([]byte, 32)
	var most int64
	for i := range 200_000 {
		k := kinds[i%2]
		_, err := k.ours(key)
		require.NoError(t, err)
		if i%100 == 0 {
			most = max(most, cshim.GetMemStats().AEADs)
		}
	}
	// 4 MiB is the least that the collector lets grow; a cleanup may lag behind.
	assert.Less(t, most, int64(60_000))
	assert.Zero(t, waitForKeys(0))
}
