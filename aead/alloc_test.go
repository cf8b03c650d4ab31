package aead_test

import (
	"crypto/cipher"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// One allocation for a Seal and for an Open with a nil dst, of no more than the
// output (by size class), and none where dst has room. Also in place, and for a
// forgery. Sizes to 10 MiB.
func TestAllocations(t *testing.T) {
	if instrumented {
		t.Skip("race detector and sanitizers allocate; the tests without them cover this")
	}
	eachKind(t, func(t *testing.T, k kind, ours, _ cipher.AEAD) {
		nonce, ad := make([]byte, ours.NonceSize()), make([]byte, 256)
		for _, n := range []int{1, 16, 64, 1 << 10, 16 << 10, 100_000, 1 << 20, 10 << 20} {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				text := make([]byte, n)
				sealed := ours.Seal(nil, nonce, text, ad)
				forged := append(sealed[:len(sealed)-1:len(sealed)-1], sealed[len(sealed)-1]+1)
				room := make([]byte, 0, n+ours.Overhead())
				for _, c := range []struct {
					name string
					want int
					f    func()
				}{
					{"Seal, nil dst", 1, func() { ours.Seal(nil, nonce, text, ad) }},
					{"Open, nil dst", 1, func() { _, _ = ours.Open(nil, nonce, sealed, ad) }},
					{"Open, nil dst, forged", 1, func() { _, _ = ours.Open(nil, nonce, forged, ad) }},
					{"Seal, dst has room", 0, func() { ours.Seal(room, nonce, text, ad) }},
					{"Open, dst has room", 0, func() { _, _ = ours.Open(room, nonce, sealed, ad) }},
					{"Open, dst has room, forged", 0, func() { _, _ = ours.Open(room, nonce, forged, ad) }},
					{"Seal in place", 0, func() { ours.Seal(room, nonce, room[:n], ad) }},
				} {
					runs := 20
					if n >= 1<<20 {
						runs = 4
					}
					// The collector has made all it needs for itself.
					runtime.GC()
					assert.Equal(t, float64(c.want), testing.AllocsPerRun(runs, c.f), c.name)
					// To the next size class or page, which is an eighth at most.
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					for range runs {
						c.f()
					}
					runtime.ReadMemStats(&after)
					limit := uint64(c.want*runs)*(uint64(n+ours.Overhead())*9/8+8192) + 16384
					assert.LessOrEqual(t, after.TotalAlloc-before.TotalAlloc, limit, c.name)
				}
			})
		}
	})
}

// New output comes uncleared from the allocator: there is no room behind it in which
// to see what was there before.
func TestNoRoomBehindNewOutput(t *testing.T) {
	eachKind(t, func(t *testing.T, _ kind, ours, _ cipher.AEAD) {
		nonce := make([]byte, ours.NonceSize())
		for _, n := range []int{0, 1, 100, 4000, 4095, 4096, 5000, 8193, 100_001, 1<<20 + 1} {
			for _, head := range []int{0, 7} {
				sealed := ours.Seal(make([]byte, head), nonce, bytesOf(41, n), nil)
				require.Equal(t, len(sealed), cap(sealed), "%d bytes", n)
				opened, err := ours.Open(make([]byte, head), nonce, sealed[head:], nil)
				require.NoError(t, err)
				require.Equal(t, bytesOf(41, n), opened[head:])
				if n > 0 {
					require.Equal(t, len(opened), cap(opened), "%d bytes", n)
				}
			}
		}
	})
}

func TestKeyIsNotKept(t *testing.T) {
	for _, k := range kinds {
		key := bytesOf(40, 32)
		ours, theirs := k.make(t, key)
		clear(key)
		nonce := make([]byte, ours.NonceSize())
		got, err := theirs.Open(nil, nonce, ours.Seal(nil, nonce, []byte("text"), nil), nil)
		require.NoError(t, err)
		assert.Equal(t, "text", string(got))
	}
}
