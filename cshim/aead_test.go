//go:build linux && cgo

package cshim

import "testing"

// A Go that hands out a Builder's memory in another way must not go unnoticed:
// NewBytes would clear again, which is right and slow.
func TestNewBytes(t *testing.T) {
	if !builderKeepsItsPlace {
		t.Error("strings.Builder is not what NewBytes builds on")
	}
	for _, n := range []int{0, 1, unclearedFrom - 1, unclearedFrom, unclearedFrom + 1, 3 << 20} {
		b := NewBytes(n)
		if len(b) != n || cap(b) != n {
			t.Errorf("NewBytes(%d) has %d bytes and room for %d", n, len(b), cap(b))
		}
		for i := range b {
			b[i] = byte(i)
		}
		if n > 0 && BuildFlavour() != "asan" { // go test -asan allocates for itself
			if got := testing.AllocsPerRun(10, func() { sink = NewBytes(n) }); got != 1 {
				t.Errorf("NewBytes(%d) allocates %v times", n, got)
			}
		}
	}
}

var sink []byte

func TestSharesMemory(t *testing.T) {
	array := make([]byte, 12)
	for a := range array {
		for i := a; i <= len(array); i++ {
			for b := range array {
				for j := b; j <= len(array); j++ {
					common := max(a, b) < min(i, j)
					if got := SharesMemory(array[a:i], array[b:j]); got != common {
						t.Fatalf("SharesMemory of %d:%d and %d:%d is %v", a, i, b, j, got)
					}
					if got := SharesMemoryShifted(array[a:i], array[b:j]); got != (common && a != b) {
						t.Fatalf("SharesMemoryShifted of %d:%d and %d:%d is %v", a, i, b, j, got)
					}
				}
			}
		}
	}
	if SharesMemory(nil, array) || SharesMemory(array, nil) || SharesMemory(nil, nil) {
		t.Error("nil shares memory")
	}
}
