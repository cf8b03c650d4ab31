package s2n_test

import (
	"bytes"
	"crypto/ecdh"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// memory is all that a process could write to at one moment, without the pages that
// it never touched.
type memory []region

type region struct {
	addr uint64
	name string // of the mapping, "" for anonymous ones
	data []byte
}

const pageSize = 4096

// readMemory stops a process, copies its writable memory and lets it go on. The
// kernel allows that to its parent.
func readMemory(t testing.TB, pid int) memory {
	t.Helper()
	proc := fmt.Sprintf("/proc/%d/", pid)
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	defer func() { require.NoError(t, syscall.Kill(pid, syscall.SIGCONT)) }()
	require.Eventually(t, func() bool {
		status, err := os.ReadFile(proc + "status")
		return err == nil && bytes.Contains(status, []byte("State:\tT"))
	}, 10*time.Second, time.Millisecond)
	maps, err := os.ReadFile(proc + "maps")
	require.NoError(t, err)
	mem, err := os.Open(proc + "mem")
	require.NoError(t, err)
	defer mem.Close()
	pagemap, err := os.Open(proc + "pagemap")
	require.NoError(t, err)
	defer pagemap.Close()

	var all memory
	for _, line := range strings.Split(strings.TrimSpace(string(maps)), "\n") {
		f := strings.Fields(line)
		if f[1][0] != 'r' || f[1][1] != 'w' {
			continue
		}
		name := ""
		if len(f) > 5 {
			name = f[5]
		}
		from, to, _ := strings.Cut(f[0], "-")
		start, err := strconv.ParseUint(from, 16, 64)
		require.NoError(t, err)
		end, err := strconv.ParseUint(to, 16, 64)
		require.NoError(t, err)
		entries := make([]byte, (end-start)/pageSize*8)
		_, err = pagemap.ReadAt(entries, int64(start/pageSize*8))
		require.NoError(t, err)
		touched := func(i uint64) bool { return binary.NativeEndian.Uint64(entries[i*8:])>>62 != 0 } // present, or swapped out
		for i, n := uint64(0), (end-start)/pageSize; i < n; i++ {
			if !touched(i) {
				continue
			}
			j := i
			for j < n && touched(j) {
				j++
			}
			r := region{addr: start + i*pageSize, name: name, data: make([]byte, (j-i)*pageSize)}
			_, err := mem.ReadAt(r.data, int64(r.addr))
			require.NoError(t, err, "%s", line)
			all = append(all, r)
			i = j
		}
	}
	return all
}

// find returns where a needle is, "0x7f... [heap]".
func (m memory) find(needle []byte) (hits []string) {
	for _, r := range m {
		for from := 0; ; {
			i := bytes.Index(r.data[from:], needle)
			if i < 0 {
				break
			}
			hits = append(hits, fmt.Sprintf("%#x %s", r.addr+uint64(from+i), r.name))
			from += i + 1
		}
	}
	return hits
}

// findPrivate looks for the private key of a public one: any 32 bytes (48, 66) that
// look random and were not there before, tried as the key. All that it knows of how
// AWS-LC lays keys out is that numbers have their lowest byte first.
func (m memory) findPrivate(before memory, curve ecdh.Curve, public []byte) (private []byte) {
	size := map[ecdh.Curve]int{ecdh.X25519(): 32, ecdh.P256(): 32, ecdh.P384(): 48, ecdh.P521(): 66}[curve]
	// As bytes, and as a number; for P-384, where trying is dear, only what AWS-LC has.
	asBytes, asNumber := curve != ecdh.P384(), curve != ecdh.X25519()
	try := func(b []byte) bool {
		key, err := curve.NewPrivateKey(b)
		return err == nil && bytes.Equal(key.PublicKey().Bytes(), public)
	}
	reversed := make([]byte, size)
	for _, r := range m {
		old := before.at(r.addr)
		for i := 0; i+size <= len(r.data); i += 8 {
			b := r.data[i : i+size]
			if !looksRandom(b[:32]) || !looksRandom(b[size-32:]) || i+size <= len(old) && bytes.Equal(b, old[i:i+size]) {
				continue
			}
			copy(reversed, b)
			slices.Reverse(reversed)
			if asBytes && try(b) || asNumber && try(reversed) {
				return bytes.Clone(b)
			}
		}
	}
	return nil
}

// at returns what is known from an address on.
func (m memory) at(addr uint64) []byte {
	for _, r := range m {
		if addr >= r.addr && addr < r.addr+uint64(len(r.data)) {
			return r.data[addr-r.addr:]
		}
	}
	return nil
}

// looksRandom is true for nearly all random strings of 32 bytes, and for little else: pointers,
// text, counters and zeroes have bytes that repeat.
func looksRandom(b []byte) bool {
	if b[0] == b[1] && b[1] == b[2] || b[7] == 0 && b[6] == 0 || b[15] == 0 && b[14] == 0 {
		return false
	}
	var seen [256]bool
	distinct, letters := 0, 0
	for _, c := range b {
		if !seen[c] {
			seen[c] = true
			distinct++
		}
		if c >= ' ' && c < 0x7f {
			letters++
		}
	}
	return distinct >= 23 && letters < 26
}

func TestLooksRandom(t *testing.T) {
	missed := 0
	for i := range 10_000 {
		if !looksRandom(prf12([]byte("seed"), strconv.Itoa(i), nil, 32)) {
			missed++
		}
	}
	require.Less(t, missed, 10, "of 10000 random strings")
}
