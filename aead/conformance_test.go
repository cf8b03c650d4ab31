package aead_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n/cshim"
)

// Go's own tests of a cipher.AEAD are in crypto/internal/cryptotest, which only
// packages below crypto/ may import. An overlay gives the standard library one more
// package there for the time of one command, crypto/s2naead: a door of two lines.
// Nothing of Go's is copied. cryptotest_test.go goes through that door.
const door = `package s2naead

import (
	"crypto/internal/cryptotest"
	"testing"
)

type MakeAEAD = cryptotest.MakeAEAD

func TestAEAD(t *testing.T, make MakeAEAD) { cryptotest.TestAEAD(t, make) }

func NoExtraMethods(t *testing.T, ms any) { cryptotest.NoExtraMethods(t, ms) }
`

func TestGoConformance(t *testing.T) {
	if cshim.BuildFlavour() == "asan" {
		t.Skip("the go test that this runs would have to be built with -asan, too; the other flavours run it")
	}
	if testing.Short() {
		t.Skip("compiles these tests once more; runs without -short")
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	dir := t.TempDir()
	source := filepath.Join(dir, "door.go")
	require.NoError(t, os.WriteFile(source, []byte(door), 0o600))
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(strings.TrimSpace(string(goroot)), "src/crypto/s2naead/door.go"): source,
	}})
	require.NoError(t, err)
	file := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(file, overlay, 0o600))

	// vet would want the door's folder to be there.
	out, err := exec.Command("go", "test", "-overlay", file, "-tags", "s2n_cryptotest", "-vet=off", "-count=1", "-v", "-run", "^TestCryptotest$", ".").CombinedOutput()
	passed := 0
	var rest []string
	for line := range strings.Lines(string(out)) {
		switch {
		case strings.Contains(line, "--- PASS"):
			passed++
		case !strings.HasPrefix(line, "=== RUN"):
			rest = append(rest, line)
		}
	}
	require.NoError(t, err, strings.Join(rest, ""))
	t.Logf("%d tests and subtests of Go's passed", passed)
	require.Greater(t, passed, 1000)
}
