package buildtest

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/s2n-go/s2n"

// printsBuild is a program that tells which library it has inside.
const printsBuild = `package main

import (
	"fmt"

	s2n "` + module + `"
)

func main() { fmt.Print(s2n.Version().Linked) }
`

// buildID is the one in a s2nshim_build.h.
func buildID(t *testing.T, header string) string {
	t.Helper()
	_, rest, found := strings.Cut(read(t, header), `S2NSHIM_BUILD_ID "`)
	require.True(t, found)
	id, _, _ := strings.Cut(rest, `"`)
	return id
}

// consumer makes a module outside the checkout whose only knowledge of this one
// is its name.
func consumer(t *testing.T, goMod, program string) command {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module example.com/consumer\n\ngo 1.25.0\n\nrequire "+module+" v0.0.1\n"+goMod)
	write(t, filepath.Join(dir, "main.go"), program)
	return command{dir: dir, env: []string{"GOFLAGS=-mod=mod", "GOWORK=off"}}
}

// installed is a prefix that the active build was installed to.
func installed(t *testing.T) string {
	t.Helper()
	prefix := filepath.Join(t.TempDir(), "prefix")
	command{dir: root}.ok(t, "./build.sh", append(activeArgs(t), "--prefix", prefix)...)
	return prefix
}

// activeArgs makes build.sh keep the flavour that is active; FIPS_MODULE has to
// be 3 then, which is what the tests run with.
func activeArgs(t *testing.T) []string {
	t.Helper()
	header := read(t, filepath.Join(active(t), "include/s2nshim_build.h"))
	if !strings.Contains(header, `S2NSHIM_BUILD_MODULE "3"`) {
		t.Skip("another module than 3 is active")
	}
	for _, flavour := range []string{"debug", "asan"} {
		if strings.Contains(header, `FLAVOUR "`+flavour+`"`) {
			return []string{"--" + flavour}
		}
	}
	return nil
}

// fromPrefix is the environment of someone whose prefix is not the default one.
func fromPrefix(prefix string) []string {
	return []string{
		"CGO_CFLAGS=-O2 -g -I" + prefix + "/include",
		"CGO_LDFLAGS=-O2 -g -L" + prefix + "/lib",
	}
}

// moduleProxy serves the sources as a released version, and everything else from
// what Go has downloaded before, so that the consumer has a real module cache.
func moduleProxy(t *testing.T) []string {
	t.Helper()
	proxy, cache := t.TempDir(), t.TempDir()
	dir := filepath.Join(proxy, module, "@v")
	write(t, filepath.Join(dir, "list"), "v0.0.1\n")
	info, err := json.Marshal(map[string]string{"Version": "v0.0.1", "Time": "2026-01-01T00:00:00Z"})
	require.NoError(t, err)
	write(t, filepath.Join(dir, "v0.0.1.info"), string(info))
	write(t, filepath.Join(dir, "v0.0.1.mod"), read(t, filepath.Join(root, "go.mod")))

	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	for _, name := range sources(t) {
		if inOtherModule(name) {
			continue
		}
		w, err := z.Create(module + "@v0.0.1/" + name)
		require.NoError(t, err)
		_, err = io.WriteString(w, read(t, filepath.Join(root, name)))
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	write(t, filepath.Join(dir, "v0.0.1.zip"), packed.String())

	old := strings.TrimSpace(command{dir: root}.ok(t, "go", "env", "GOMODCACHE"))
	return []string{
		"GOPROXY=file://" + proxy + ",file://" + old + "/cache/download",
		"GOMODCACHE=" + cache, "GOSUMDB=off", "GOFLAGS=-mod=mod -modcacherw",
	}
}

// inOtherModule is whether a file lies below a go.mod that is not the root's.
func inOtherModule(name string) bool {
	for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(root, dir, "go.mod")); err == nil {
			return true
		}
	}
	return false
}

func TestFoundInTheCheckout(t *testing.T) {
	c := consumer(t, "replace "+module+" => "+root+"\n", printsBuild)
	id := c.ok(t, "go", "run", ".")
	assert.Equal(t, buildID(t, filepath.Join(active(t), "include/s2nshim_build.h")), id)
}

func TestFoundInAPrefix(t *testing.T) {
	prefix := installed(t)
	c := consumer(t, "", printsBuild).with(moduleProxy(t)...)
	id := c.with(fromPrefix(prefix)...).ok(t, "go", "run", ".")
	assert.Equal(t, buildID(t, prefix+"/include/s2nshim_build.h"), lastWord(id))
}

func TestFoundWhenVendored(t *testing.T) {
	prefix := installed(t)
	c := consumer(t, "", printsBuild).with(moduleProxy(t)...)
	c.ok(t, "go", "mod", "tidy")
	c.ok(t, "go", "mod", "vendor")
	c = c.with("GOFLAGS=-mod=vendor", "GOPROXY=off").with(fromPrefix(prefix)...)
	id := c.ok(t, "go", "run", ".")
	assert.Equal(t, buildID(t, prefix+"/include/s2nshim_build.h"), lastWord(id))
}

func TestFoundByPkgConfig(t *testing.T) {
	prefix := installed(t)
	c := consumer(t, "", printsBuild).with(moduleProxy(t)...)
	c = c.with("PKG_CONFIG_PATH=" + prefix + "/lib/pkgconfig")
	id := c.ok(t, "go", "run", "-tags", "s2nshim_pkgconfig", ".")
	assert.Equal(t, buildID(t, prefix+"/include/s2nshim_build.h"), lastWord(id))

	// Moved as a whole, it is found where it is now.
	moved := filepath.Join(t.TempDir(), "moved")
	require.NoError(t, os.Rename(prefix, moved))
	flags := command{env: []string{"PKG_CONFIG_PATH=" + moved + "/lib/pkgconfig"}}.ok(t, "pkg-config", "--cflags", "--libs", "s2nshim")
	assert.NotContains(t, flags, prefix+"/")
}

// lastWord drops what go says about downloads before a program's output.
func lastWord(out string) string {
	f := strings.Fields(out)
	return f[len(f)-1]
}

// The environment's flags come before the package's own, so another build can be
// linked into a program from a checkout that has one.
func TestEnvironmentWins(t *testing.T) {
	prefix := installed(t)
	// Another build as far as names go: a copy with another id.
	lib, header := prefix+"/lib/libs2nshim.a", prefix+"/include/s2nshim_build.h"
	text := read(t, header)
	id := buildID(t, header)
	other := strings.Repeat("0", len(id))
	write(t, header, strings.NewReplacer(id, other, id[:12], other[:12]).Replace(text))
	write(t, lib, strings.NewReplacer(id, other, "s2nshim_build_"+id[:12], "s2nshim_build_"+other[:12]).Replace(read(t, lib)))
	command{}.ok(t, "ranlib", lib)

	c := consumer(t, "replace "+module+" => "+root+"\n", printsBuild)
	assert.Equal(t, other, c.with(fromPrefix(prefix)...).ok(t, "go", "run", "."))

	// Headers of one build and library of another: no program, and the error
	// says what to do.
	out := c.with("CGO_CFLAGS=-O2 -g -I"+prefix+"/include").fails(t, "go", "build", ".")
	assert.Contains(t, out, "undefined reference to `s2nshim_build_"+other[:12]+"__library_was_rebuilt__run_go_clean_cache'")
}

func TestLibraryOfAnotherVersion(t *testing.T) {
	prefix := installed(t)
	header := prefix + "/include/s2nshim_build.h"
	write(t, header, strings.Replace(read(t, header), "S2NSHIM_BUILD_ABI ", "S2NSHIM_BUILD_ABI 1000", 1))
	c := consumer(t, "replace "+module+" => "+root+"\n", printsBuild)
	out := c.with(fromPrefix(prefix)...).fails(t, "go", "build", ".")
	assert.Contains(t, out, "belongs to another version of "+module+": run ./build.sh")
}

// unbuilt is a checkout with nothing built.
func unbuilt(t *testing.T) command {
	t.Helper()
	if _, err := os.Stat("/usr/local/include/s2nshim_build.h"); err == nil {
		t.Skip("a library is installed in /usr/local, where an unbuilt checkout finds it")
	}
	dir := t.TempDir()
	clone(t, dir)
	return command{dir: dir, env: []string{"GOWORK=off"}}
}

func TestNotBuilt(t *testing.T) {
	out := unbuilt(t).fails(t, "go", "build", "./...")
	assert.Contains(t, out, "libs2nshim is not built")
	assert.Contains(t, out, "run ./build.sh")
	// The compiler repeats the line it quotes; nothing else is reported.
	assert.Equal(t, 1, strings.Count(out, "error: "), out)
}

func TestWithoutCgo(t *testing.T) {
	out := unbuilt(t).with("CGO_ENABLED=0").fails(t, "go", "build", "./...")
	assert.Contains(t, out, "s2n_needs_cgo__set_CGO_ENABLED_1_and_install_a_C_compiler")
	assert.Equal(t, 1, strings.Count(out, "undefined: "), out)
}

func TestOtherSystems(t *testing.T) {
	for _, target := range []string{"darwin/arm64", "windows/amd64", "freebsd/amd64"} {
		goos, goarch, _ := strings.Cut(target, "/")
		out := unbuilt(t).with("GOOS="+goos, "GOARCH="+goarch).fails(t, "go", "build", "./...")
		assert.Contains(t, out, "s2n_runs_on_linux_only__", target)
		assert.Equal(t, 1, strings.Count(out, "undefined: "), "%s: %s", target, out)
	}
}
