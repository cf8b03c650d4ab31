package buildtest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The tests of the narrowed transcript hash notice when s2n's own is used.
func TestSwitchedOffHash(t *testing.T) {
	out := switchedOff(t, "hash", "TestTranscriptHash")
	for _, name := range []string{
		"TestTranscriptHashes/default_fips/TLS_1.3/no-request/certificate=false/client",
		"TestTranscriptHashes/default_fips/TLS_1.2/request/certificate=false/server",
		"TestTranscriptHashHelloRetryRequest/client/CurveP384/certificate=true",
		"TestTranscriptHashSSLv2Hello/default_fips/none_when_asked",
	} {
		assert.Contains(t, out, "--- FAIL: "+name)
	}
}

// The tests of the overwritten secrets notice when only s2n overwrites.
func TestSwitchedOffWipe(t *testing.T) {
	out := switchedOff(t, "wipe", "TestSecrets")
	for _, name := range []string{
		"TestSecretsClientTLS13/default_fips/X25519MLKEM768/close",
		"TestSecretsServerTLS13/default_tls13/CurveP256/close",
		"TestSecretsClientTLS12/default_pq/buffers=false",
		"TestSecretsClientFailsInTheMiddle/corrupted/buffers=true",
		"TestSecretsServerFails/corrupted/buffers=false",
	} {
		assert.Contains(t, out, "--- FAIL: "+name)
	}
}

// switchedOff runs tests against a library without one of the shim's systems.
func switchedOff(t *testing.T, system, tests string) string {
	slow(t)
	prefix := t.TempDir()
	c := command{dir: root}
	c.with("S2NSHIM_OFF="+system).ok(t, "./build.sh", "--prefix", prefix)
	return c.with(fromPrefix(prefix)...).fails(t, "go", "test", "-run", tests, ".")
}
