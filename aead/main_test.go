package aead_test

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n/aead"
	"github.com/s2n-go/s2n/cshim"
)

// TestMain fails the package if, after all tests, a key is alive in C that nobody
// can reach, or an error waits in AWS-LC's queue for whoever comes next.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := leftovers(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func leftovers() error {
	if n := waitForKeys(0); n != 0 {
		return fmt.Errorf("%d keys are still alive in C", n)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if cshim.ErrorQueueDepth() != 0 {
		return errors.New("an AWS-LC error is left in the queue")
	}
	return nil
}

// waitForKeys collects until at most n keys are alive in C, and returns how many are.
func waitForKeys(n int64) int64 {
	var alive int64
	for range 100 {
		runtime.GC()
		if alive = cshim.GetMemStats().AEADs; alive <= n {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	return alive
}

// kind is one of the two AEADs, beside crypto/cipher's.
type kind struct {
	name   string
	ours   func(key []byte) (cipher.AEAD, error)
	theirs func(cipher.Block) (cipher.AEAD, error)
	random bool
}

var kinds = []kind{
	{"NewAESGCM", aead.NewAESGCM, cipher.NewGCM, false},
	{"NewAESGCMRandomNonce", aead.NewAESGCMRandomNonce, cipher.NewGCMWithRandomNonce, true},
}

// eachKind runs f for both AEADs with both key sizes.
func eachKind(t *testing.T, f func(t *testing.T, k kind, ours, theirs cipher.AEAD)) {
	for _, k := range kinds {
		for _, size := range []int{16, 32} {
			t.Run(fmt.Sprintf("%s/AES-%d", k.name, size*8), func(t *testing.T) {
				ours, theirs := k.make(t, bytesOf(uint64(size), size))
				f(t, k, ours, theirs)
			})
		}
	}
}

func (k kind) make(t testing.TB, key []byte) (ours, theirs cipher.AEAD) {
	t.Helper()
	ours, err := k.ours(key)
	require.NoError(t, err)
	block, err := aes.NewCipher(key)
	require.NoError(t, err)
	theirs, err = k.theirs(block)
	require.NoError(t, err)
	return ours, theirs
}

// bytesOf are n bytes that look random and are the same each time.
func bytesOf(seed uint64, n int) []byte {
	var s [32]byte
	for i := range 8 {
		s[i] = byte(seed >> (8 * i))
	}
	b := make([]byte, n)
	_, _ = rand.NewChaCha8(s).Read(b)
	return b
}

// outcome is what a call came to: its panic, or else its result.
type outcome struct {
	panicked any
	out      []byte
	err      error
}

func try(f func() ([]byte, error)) (o outcome) {
	defer func() { o.panicked = recover() }()
	o.out, o.err = f()
	return o
}

// lockThread keeps the test on one OS thread, for what the module counts by thread.
func lockThread(t testing.TB) {
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
}
