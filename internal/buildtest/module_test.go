package buildtest

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// served is what a program prints from main. Where a power-on self-test fails,
// nobody may ever see it.
const served = "main was reached"

const reachesMain = `package main

import (
	"fmt"

	s2n "` + module + `"
)

func main() { fmt.Println("` + served + `", s2n.Version().Linked) }
`

// changedLibrary is a prefix with a copy of lib that change has altered, and the
// environment that links it into a program of the checkout.
func changedLibrary(t *testing.T, result string, change func(lib []byte)) []string {
	t.Helper()
	prefix := t.TempDir()
	lib := []byte(read(t, filepath.Join(result, "lib/libs2nshim.a")))
	change(lib)
	write(t, prefix+"/lib/libs2nshim.a", string(lib))
	for _, h := range []string{"s2nshim.h", "s2nshim_build.h"} {
		write(t, prefix+"/include/"+h, read(t, filepath.Join(result, "include", h)))
	}
	return fromPrefix(prefix)
}

// moduleBytes finds the module in an archive: the bytes between the two symbols
// that its integrity test hashes.
func moduleBytes(t *testing.T, lib []byte) []byte {
	t.Helper()
	start := bytes.Index(lib, []byte(elf.ELFMAG))
	require.Positive(t, start)
	f, err := elf.NewFile(bytes.NewReader(lib[start:]))
	require.NoError(t, err)
	names, err := f.Symbols()
	require.NoError(t, err)
	var from, to uint64
	var section *elf.Section
	for _, s := range names {
		switch s.Name {
		case "BORINGSSL_bcm_text_start":
			from, section = s.Value, f.Sections[s.Section]
		case "BORINGSSL_bcm_text_end":
			to = s.Value
		}
	}
	require.NotNil(t, section, "the module's first symbol")
	require.Greater(t, to, from)
	base := uint64(start) + section.Offset
	return lib[base+from : base+to]
}

// One bit in the middle of the module, changed after the build.
func TestAlteredModuleEndsTheProcess(t *testing.T) {
	c := consumer(t, "replace "+module+" => "+root+"\n", reachesMain)
	same := changedLibrary(t, active(t), func([]byte) {})
	assert.Contains(t, c.with(same...).ok(t, "go", "run", "."), served)

	for _, part := range []struct {
		name  string
		place func(module []byte) int
	}{
		{"rodata", func(m []byte) int {
			// The bytes that precede a SHA-256 digest in PKCS#1 signatures.
			prefix, _ := hex.DecodeString("3031300d060960864801650304020105000420")
			i := bytes.Index(m, prefix)
			require.Positive(t, i)
			return i
		}},
		{"end", func(m []byte) int { return len(m) - 1 }},
	} {
		t.Run(part.name, func(t *testing.T) {
			env := changedLibrary(t, active(t), func(lib []byte) {
				m := moduleBytes(t, lib)
				m[part.place(m)] ^= 1
			})
			out := c.with(env...).fails(t, "go", "run", ".")
			t.Log(out)
			assert.Contains(t, out, "FIPS integrity test failed")
			assert.Contains(t, out, "signal: aborted")
			assert.NotContains(t, out, served)
		})
	}
}

// AWS-LC's own way to show that its known-answer tests notice: built with
// FIPS_BREAK_TEST=TESTS it lets the integrity test pass, and then the input of
// one known-answer test is zeroed in the binary.
func TestBrokenKnownAnswerEndsTheProcess(t *testing.T) {
	slow(t)
	out := command{dir: root, env: []string{"S2NSHIM_FIPS_BREAK_TEST=TESTS"}}.ok(t, "./build.sh")
	t.Log(out)
	assert.Contains(t, out, "not made active")
	result, err := filepath.EvalSymlinks(filepath.Join(root, "third_party/out/build/3-release-broken-TESTS/result"))
	require.NoError(t, err)
	assert.NotEqual(t, active(t), result)

	c := consumer(t, "replace "+module+" => "+root+"\n", reachesMain)
	for _, kat := range []struct{ name, input, message string }{
		{"SHA-256", "ff3b857da7236a2baa0f396b51522217", "SHA-256"},
		{"AES-GCM", "8fcc4099808e75caaff582898848a88d808b55ab4e9370797d940be8cc1d7884", "AES-GCM"},
	} {
		t.Run(kat.name, func(t *testing.T) {
			input, err := hex.DecodeString(kat.input)
			require.NoError(t, err)
			env := changedLibrary(t, result, func(lib []byte) {
				require.Equal(t, 1, bytes.Count(lib, input))
				i := bytes.Index(lib, input)
				clear(lib[i : i+len(input)])
			})
			out := c.with(env...).fails(t, "go", "run", ".")
			t.Log(out)
			assert.Contains(t, out, kat.message)
			assert.Contains(t, out, "signal: aborted")
			assert.NotContains(t, out, served)
		})
	}
}

// A program with two libcryptos: the system's OpenSSL by cgo, and ours. Ours
// exports no digest, so this test takes a copy of the library in which the
// module's own SHA256 and SHA512 are made visible under other names.
func TestSecondLibcrypto(t *testing.T) {
	if _, err := os.Stat("/usr/include/openssl/sha.h"); err != nil {
		t.Fatal("no openssl/sha.h: install libssl-dev (Debian), openssl-devel (Fedora) or openssl-dev (Alpine)")
	}
	prefix := t.TempDir()
	env := changedLibrary(t, active(t), func([]byte) {})
	lib := strings.TrimPrefix(env[1], "CGO_LDFLAGS=-O2 -g -L") + "/libs2nshim.a"
	command{dir: prefix}.ok(t, "objcopy",
		"--redefine-sym", "SHA256=s2nshim_test_SHA256", "--globalize-symbol=s2nshim_test_SHA256",
		"--redefine-sym", "SHA512=s2nshim_test_SHA512", "--globalize-symbol=s2nshim_test_SHA512", lib)

	c := consumer(t, "replace "+module+" => "+root+"\n", `package main

// #cgo LDFLAGS: -ls2nshim -lcrypto
// #include <openssl/sha.h>
// #include <openssl/crypto.h>
// unsigned char *s2nshim_test_SHA256(const unsigned char *, size_t, unsigned char *);
// unsigned char *s2nshim_test_SHA512(const unsigned char *, size_t, unsigned char *);
import "C"

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"time"
	"unsafe"

	s2n "`+module+`"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func main() {
	fmt.Println(C.GoString(C.OpenSSL_version(C.OPENSSL_VERSION)))
	digests()
	overTLS()
	digests()
}

// overTLS has both ends of a connection in this program.
func overTLS() {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der := must(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: must(x509.MarshalPKCS8PrivateKey(key))})
	roots := s2n.NewCertPool()
	if !roots.AppendCertsFromPEM(certPEM) {
		panic("no root")
	}

	a, b := net.Pipe()
	go func() {
		server := s2n.Server(a, &s2n.Config{Certificates: []s2n.Certificate{must(s2n.X509KeyPair(certPEM, keyPEM))}})
		must(server.Write([]byte("TLS works")))
		server.Close()
	}()
	client := s2n.Client(b, &s2n.Config{RootCAs: roots, ServerName: "localhost"})
	fmt.Printf("%s, version %#x\n", must(io.ReadAll(client)), client.ConnectionState().Version)
	client.Close()
}

func digests() {
	text := []byte("two in one")
	p, n := (*C.uchar)(unsafe.Pointer(&text[0])), C.size_t(len(text))
	var sums [4][64]byte
	at := func(i int) *C.uchar { return (*C.uchar)(unsafe.Pointer(&sums[i])) }
	C.SHA256(p, n, at(0))
	C.s2nshim_test_SHA256(p, n, at(1))
	C.SHA512(p, n, at(2))
	C.s2nshim_test_SHA512(p, n, at(3))
	fmt.Printf("openssl %x\nours %x\nopenssl %x\nours %x\n", sums[0][:32], sums[1][:32], sums[2], sums[3])
}
`)
	out := c.with(env...).ok(t, "go", "run", ".")
	t.Log(out)
	text := []byte("two in one")
	s256, s512 := sha256.Sum256(text), sha512.Sum512(text)
	for _, who := range []string{"openssl", "ours"} {
		// Before and after the handshake.
		assert.Equal(t, 2, strings.Count(out, fmt.Sprintf("%s %x\n", who, s256)))
		assert.Equal(t, 2, strings.Count(out, fmt.Sprintf("%s %x\n", who, s512)))
	}
	assert.Contains(t, out, "OpenSSL ")
	assert.Contains(t, out, "TLS works, version 0x304")
}
