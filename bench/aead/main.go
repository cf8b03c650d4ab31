// Command aead compares package aead with crypto/cipher, and with plain C over the
// same AWS-LC if built with run.sh. It prints medians of CPU time and their ratios.
//
// What the figures are good for: all sides run in one process and by turns of a
// millisecond, so that a busy machine slows all of them alike; only CPU time of the
// process counts. Garbage is collected between the turns, at nobody's cost. Ratios
// hold, single times do not.
package main

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/fips140"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/s2n-go/s2n/aead"
)

// A side does an operation n times. dst is reused, or made by the side if fresh.
type side struct {
	name string
	run  func(op string, n int)
}

// message is what one measurement works on.
type message struct {
	key, nonce, ad, plaintext, ciphertext []byte
	fresh                                 bool // dst is nil
}

// goSide is any cipher.AEAD.
func goSide(name string, a cipher.AEAD, m *message) side {
	var dst []byte
	if !m.fresh {
		dst = make([]byte, 0, len(m.ciphertext))
	}
	return side{name, func(op string, n int) {
		if op == "seal" {
			for range n {
				a.Seal(dst, m.nonce, m.plaintext, m.ad)
			}
			return
		}
		for range n {
			if _, err := a.Open(dst, m.nonce, m.ciphertext, m.ad); err != nil {
				panic(err)
			}
		}
	}}
}

// plainC is set where it is built in.
var plainC func(m *message) side

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func main() {
	rounds := flag.Int("rounds", 301, "turns of each side")
	slice := flag.Duration("slice", time.Millisecond, "CPU time of a turn")
	keySize := flag.Int("key", 32, "bytes of the key")
	adSize := flag.Int("aad", 256, "bytes of additional data")
	quantile := flag.Float64("q", 0.5, "which quantile to print; 0.05 on a machine that is never quiet")
	sizes := flag.String("sizes", "64,1024,10485760", "bytes of plaintext")
	flag.Parse()
	// Collected between the turns, so that none pays for another's garbage.
	debug.SetGCPercent(-1)
	runtime.GOMAXPROCS(1)

	std := "crypto/cipher"
	if fips140.Enabled() {
		std += " fips140=" + fips140.Version()
	} else if boring {
		std = "boringcrypto"
	}
	fmt.Printf("AES-%d-GCM, %d B of additional data, %s; quantile %g of %d turns, ns of CPU\n", *keySize*8, *adSize, std, *quantile, *rounds)
	fmt.Printf("%-10s %-5s %-6s %12s %12s %12s  %s\n", "bytes", "op", "dst", "s2n", "crypto", "plain C", "s2n against them")
	for f := range strings.SplitSeq(*sizes, ",") {
		var size int
		if _, err := fmt.Sscan(f, &size); err != nil {
			fmt.Fprintln(os.Stderr, "aead:", f, err)
			os.Exit(2)
		}
		for _, fresh := range []bool{false, true} {
			for _, op := range []string{"seal", "open"} {
				measure(size, *keySize, *adSize, op, fresh, *rounds, *slice, *quantile)
			}
		}
	}
}

func measure(size, keySize, adSize int, op string, fresh bool, rounds int, slice time.Duration, quantile float64) {
	m := &message{key: make([]byte, keySize), nonce: make([]byte, 12), ad: make([]byte, adSize), plaintext: make([]byte, size), fresh: fresh}
	ours, err := aead.NewAESGCM(m.key)
	check(err)
	block, err := aes.NewCipher(m.key)
	check(err)
	theirs, err := cipher.NewGCM(block)
	check(err)
	m.ciphertext = ours.Seal(nil, m.nonce, m.plaintext, m.ad)
	sides := []side{goSide("s2n", ours, m), goSide("crypto", theirs, m)}
	if plainC != nil {
		sides = append(sides, plainC(m))
	}

	// As many operations a turn as fill it; each side its own number.
	counts := make([]int, len(sides))
	for i, s := range sides {
		s.run(op, 1)
		for n := 1; ; n *= 2 {
			start := cpu()
			s.run(op, n)
			if took := cpu() - start; took >= slice/2 {
				counts[i] = max(1, int(float64(n)*float64(slice)/float64(took)))
				break
			}
		}
	}
	times := make([][]float64, len(sides))
	for range rounds {
		for i, s := range sides {
			if fresh {
				runtime.GC()
			}
			start := cpu()
			s.run(op, counts[i])
			times[i] = append(times[i], float64(cpu()-start)/float64(counts[i]))
		}
	}
	at := make([]float64, 3)
	for i, t := range times {
		slices.Sort(t)
		at[i] = t[int(quantile*float64(len(t)-1))]
	}
	dst := "room"
	if fresh {
		dst = "nil"
	}
	fmt.Printf("%-10d %-5s %-6s %12.1f %12.1f %12.1f  time: %.3f x crypto", size, op, dst, at[0], at[1], at[2], at[0]/at[1])
	if at[2] != 0 {
		fmt.Printf(", %.3f x plain C", at[0]/at[2])
	}
	fmt.Printf("; bytes/s: %.2f x crypto\n", at[1]/at[0])
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "aead:", err)
		os.Exit(1)
	}
}
