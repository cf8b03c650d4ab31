package buildtest

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n/internal/testcert"
)

// The setter that the shim declares for itself (cshim/src/seams.h) is as s2n defines it.
func TestPolicySetterIsS2Ns(t *testing.T) {
	setter := regexp.MustCompile(`(?m)^int s2n_config_set_security_policy\([^)]*\)`)
	declared := setter.FindString(read(t, filepath.Join(root, "cshim/src/seams.h")))
	require.NotEmpty(t, declared)
	sources, err := filepath.Glob(filepath.Join(root, "third_party/out/src/s2n-tls-sys-*/lib/tls/s2n_security_policies.c"))
	require.NoError(t, err)
	require.Len(t, sources, 1)
	assert.Equal(t, declared, setter.FindString(read(t, sources[0])))
}

// Handshakes of all kinds, ended in every place, in a C program of AddressSanitizer
// and LeakSanitizer: what a share's keys are made of is freed exactly once.
func TestKeySharesHaveOneOwnerEach(t *testing.T) {
	slow(t)
	prefix := t.TempDir()
	c := command{dir: root}
	before := activeArgs(t)
	c.ok(t, "./build.sh", "--asan", "--prefix", prefix)
	t.Cleanup(func() { c.ok(t, "./build.sh", before...) })

	leaf := testcert.New("root").Issue(testcert.Options{}, "localhost")
	write(t, prefix+"/chain.pem", string(leaf.CertPEM))
	write(t, prefix+"/key.pem", string(leaf.KeyPEM))
	c.ok(t, "cc", "-g", "-Wall", "-Wextra", "-Werror", "-fsanitize=address", "-o", prefix+"/keyshares", "-I"+prefix+"/include",
		"internal/buildtest/testdata/keyshares.c", "-L"+prefix+"/lib", "-ls2nshim", "-lpthread", "-ldl")
	out := c.with("ASAN_OPTIONS=detect_leaks=1").ok(t, prefix+"/keyshares", prefix+"/chain.pem", prefix+"/key.pem")
	t.Log(out)
	assert.Regexp(t, `^[0-9]+ handshakes, [0-9]{2,} complete\n$`, out)
}

// The tests of the reuse notice when there is none.
func TestSwitchedOffReuse(t *testing.T) {
	slow(t)
	prefix := t.TempDir()
	c := command{dir: root}
	c.with("S2NSHIM_OFF=reuse").ok(t, "./build.sh", "--prefix", prefix)
	out := c.with(fromPrefix(prefix)...).fails(t, "go", "test", "-run", "TestKeyShareReuse", ".")
	for _, name := range []string{"default_pq/0", "default_pq/1", "FIPSNIST2026/0", "FIPSNIST2026/1", "SecP384r1MLKEM1024/0"} {
		assert.Contains(t, out, "--- FAIL: TestKeyShareReuse/"+name)
	}
}
