package buildtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUnknownArguments(t *testing.T) {
	c := command{dir: root}
	for _, tc := range []struct {
		env  []string
		args []string
		want string
	}{
		{args: []string{"--fast"}, want: "unknown argument: --fast"},
		{args: []string{"--debug", "--asan"}, want: "--debug and --asan exclude each other"},
		{args: []string{"--prefix="}, want: "--prefix needs a folder"},
		{env: []string{"FIPS_MODULE=5"}, want: "FIPS_MODULE=5: there are 3, 3.1 and 4"},
		{env: []string{"CC=no-such-cc"}, want: "CC=no-such-cc: no-such-cc not found"},
		{env: []string{"S2N_SRC=/nowhere"}, want: "S2N_SRC=/nowhere: no api/s2n.h in it"},
		{env: []string{"AWSLC_SRC=/nowhere"}, want: "AWSLC_SRC=/nowhere: no crypto/fipsmodule in it"},
	} {
		out := c.with(tc.env...).fails(t, "./build.sh", tc.args...)
		assert.Contains(t, out, "build.sh: error: "+tc.want)
		assert.Equal(t, 1, strings.Count(out, "\n"), "one line: %s", out)
	}
	assert.Contains(t, c.ok(t, "./build.sh", "-h"), "usage:")
}

// pathWithout is a PATH with all that this machine has but some tools.
func pathWithout(t *testing.T, missing ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, from := range filepath.SplitList(os.Getenv("PATH")) {
		files, err := os.ReadDir(from)
		if err != nil {
			continue
		}
	files:
		for _, f := range files {
			for _, m := range missing {
				if f.Name() == m {
					continue files
				}
			}
			_ = os.Symlink(filepath.Join(from, f.Name()), filepath.Join(dir, f.Name()))
		}
	}
	return "PATH=" + dir
}

func TestMissingTools(t *testing.T) {
	for _, tc := range []struct{ tool, debian, fedora, alpine string }{
		{"cmake", "cmake", "cmake", "cmake"},
		{"perl", "perl", "perl", "perl"},
		{"go", "golang-go", "golang", "go"},
		{"cc", "gcc", "gcc", "gcc musl-dev"},
		{"objcopy", "binutils", "binutils", "binutils"},
		{"ninja", "ninja-build", "ninja-build", "samurai"},
	} {
		missing := []string{tc.tool}
		if tc.tool == "ninja" {
			missing = append(missing, "make")
		}
		out := command{dir: root, env: []string{pathWithout(t, missing...)}}.fails(t, "./build.sh")
		assert.Equal(t, fmt.Sprintf("build.sh: error: %s not found. Install it: Debian/Ubuntu: apt install %s; Fedora: dnf install %s; Alpine: apk add %s\n",
			tc.tool, tc.debian, tc.fedora, tc.alpine), out)
	}
}

func TestOtherSystemIsRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/uname", "#!/bin/sh\necho Darwin\n")
	require.NoError(t, os.Chmod(dir+"/uname", 0o755))
	out := command{dir: root, env: []string{"PATH=" + dir + ":" + os.Getenv("PATH")}}.fails(t, "./build.sh")
	assert.Contains(t, out, "this is Darwin: the static FIPS module of AWS-LC builds on Linux only")
}

// cargoHome copies one downloaded crate into a CARGO_HOME of the test's own and
// returns that and the path of the crate in it.
func cargoHome(t *testing.T, name string) (home, crate string) {
	t.Helper()
	old := os.Getenv("CARGO_HOME")
	if old == "" {
		user, err := os.UserHomeDir()
		require.NoError(t, err)
		old = filepath.Join(user, ".cargo")
	}
	found, err := filepath.Glob(filepath.Join(old, "registry/cache/*", name+".crate"))
	require.NoError(t, err)
	require.NotEmpty(t, found, "%s was not downloaded: run ./build.sh first", name)
	home = t.TempDir()
	crate = filepath.Join(home, "registry/cache/r", name+".crate")
	write(t, crate, read(t, found[0]))
	return home, crate
}

const s2nCrate = "s2n-tls-sys-0.3.47"

// stopsAfterUnpacking is a CC that no build gets past, for tests of the sources.
const stopsAfterUnpacking = "CC=false"

func TestAlteredDownloadIsRefused(t *testing.T) {
	home, crate := cargoHome(t, s2nCrate)
	b := []byte(read(t, crate))
	b[len(b)/2] ^= 1
	write(t, crate, string(b))
	out := unbuilt(t).with("CARGO_HOME="+home).fails(t, "./build.sh")
	assert.Contains(t, out, "refused: "+crate+" does not have the checksum that Cargo.lock pins")
}

func TestTreeAlteredInCargoIsRefused(t *testing.T) {
	home, crate := cargoHome(t, s2nCrate)
	src := filepath.Join(home, "registry/src/r")
	require.NoError(t, os.MkdirAll(src, 0o755))
	command{}.ok(t, "tar", "-xzf", crate, "-C", src)
	file := filepath.Join(src, s2nCrate, "lib/tls/s2n_client_hello.c")
	write(t, file, read(t, file)+"\n")
	out := unbuilt(t).with("CARGO_HOME="+home).fails(t, "./build.sh")
	assert.Contains(t, out, "    ./lib/tls/s2n_client_hello.c\n")
	assert.Contains(t, out, "refused: "+filepath.Join(src, s2nCrate)+" was altered after cargo unpacked it")
}

func TestTreeAlteredAfterUnpackingIsRefused(t *testing.T) {
	c := unbuilt(t).with(stopsAfterUnpacking)
	assert.Contains(t, c.fails(t, "./build.sh"), "CC=false --version failed")
	tree := filepath.Join(c.dir, "third_party/out/src", s2nCrate)
	file := filepath.Join(tree, "lib/tls/s2n_client_hello.c")
	text := read(t, file)

	write(t, file, text+"\n")
	out := c.fails(t, "./build.sh")
	assert.Contains(t, out, "refused: third_party/out/src/"+s2nCrate+" was altered after it was unpacked")
	assert.Contains(t, out, "./lib/tls/s2n_client_hello.c")
	write(t, file, text)
	assert.NotContains(t, c.fails(t, "./build.sh"), "refused")

	// s2n's CMake takes whatever .c file it finds.
	write(t, filepath.Join(tree, "lib/tls/added.c"), "")
	assert.Contains(t, c.fails(t, "./build.sh"), "./lib/tls/added.c")
	require.NoError(t, os.RemoveAll(tree))
	assert.NotContains(t, c.fails(t, "./build.sh"), "refused")
}

func TestNothingToDo(t *testing.T) {
	c := command{dir: root}
	args := activeArgs(t)
	c.ok(t, "./build.sh", args...)
	before := active(t)
	start := time.Now()
	out := c.ok(t, "./build.sh", args...)
	took := time.Since(start)
	t.Logf("%s%v", out, took)
	assert.Contains(t, out, "build.sh: nothing to do: FIPS_MODULE=3")
	assert.Equal(t, before, active(t))
	// One second here, with room for a machine that does other things too.
	assert.Less(t, took, 5*time.Second)
}

// built is a checkout of the tests' own, built from nothing with no download, no
// Go cache and no cargo cache: made once, for all tests that change things.
var built = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "s2n-built") })

func builtCheckout(t *testing.T) command {
	t.Helper()
	slow(t)
	dir, err := built()
	require.NoError(t, err)
	c := command{dir: dir, env: []string{"GOWORK=off"}}
	if _, err := os.Stat(filepath.Join(dir, "build.sh")); err == nil {
		return c
	}
	clone(t, dir)
	cmd, out := c.with("CARGO_HOME="+t.TempDir(), "GOCACHE="+t.TempDir()).cmd("./build.sh")
	start := time.Now()
	require.NoError(t, cmd.Run(), "%s", out)
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	t.Logf("from nothing: %v, %v of CPU\n%s", time.Since(start), cpu, out)
	// Under three minutes on two cores, and true on a machine that is busy.
	assert.Less(t, cpu, 6*time.Minute)
	return c
}

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := built(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

func TestFromNothing(t *testing.T) {
	c := builtCheckout(t)
	assert.Contains(t, c.ok(t, "./build.sh"), "nothing to do")
}

// After a change in C, a rebuilt library is what go build and go test use, with
// no flag and nothing cleaned.
func TestRebuiltLibraryIsUsed(t *testing.T) {
	c := builtCheckout(t)
	source := filepath.Join(c.dir, "cshim/src/probe.c")
	answer := func(n int) {
		write(t, source, fmt.Sprintf("int s2nshim_probe(void);\nint s2nshim_probe(void) { return %d; }\n", n))
		c.ok(t, "./build.sh")
	}
	write(t, filepath.Join(c.dir, "cshim/probe.go"), `package cshim

// int s2nshim_probe(void);
import "C"

func Probe() int { return int(C.s2nshim_probe()) }
`)
	write(t, filepath.Join(c.dir, "probe/main.go"), `package main

import "`+module+`/cshim"

func main() { print("probe ", cshim.Probe()) }
`)
	write(t, filepath.Join(c.dir, "probe/main_test.go"), `package main

import (
	"testing"

	"`+module+`/cshim"
)

func TestProbe(t *testing.T) { t.Log("probe", cshim.Probe()) }
`)
	defer func() {
		for _, f := range []string{"cshim/src/probe.c", "cshim/probe.go", "probe"} {
			assert.NoError(t, os.RemoveAll(filepath.Join(c.dir, f)))
		}
	}()

	for n := 1; n <= 2; n++ {
		answer(n)
		want := fmt.Sprintf("probe %d", n)
		c.ok(t, "go", "build", "-o", "probe/probe", "./probe")
		assert.Equal(t, want, c.ok(t, "./probe/probe"))
		out := c.ok(t, "go", "test", "-v", "./probe")
		assert.Contains(t, out, want)
		assert.NotContains(t, out, "(cached)")
		assert.Contains(t, c.ok(t, "go", "test", "-v", "./probe"), "(cached)", "unchanged, it may come from the cache")
	}
}

// killed runs build.sh with a build already begun and ends it, with all that it
// started, after a while.
func killed(t *testing.T, c command, after time.Duration, sig syscall.Signal, args ...string) {
	t.Helper()
	cmd, out := c.cmd("./build.sh", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	time.Sleep(after)
	err := syscall.Kill(-cmd.Process.Pid, sig)
	require.True(t, err == nil || errors.Is(err, syscall.ESRCH))
	require.Error(t, cmd.Wait(), "it was done before it could be interrupted\n%s", out)
}

func TestInterruptedAtAnyPoint(t *testing.T) {
	c := builtCheckout(t)
	awslc := filepath.Join(c.dir, "third_party/out/build/3-awslc")
	require.NoError(t, os.RemoveAll(awslc))
	for _, after := range []time.Duration{time.Second, 10 * time.Second} {
		killed(t, c, after, syscall.SIGKILL)
		killed(t, c, after, syscall.SIGINT)
	}
	c.ok(t, "./build.sh")
	for _, after := range []time.Duration{2 * time.Second, 5 * time.Second} {
		killed(t, c, after, syscall.SIGKILL, "--debug")
		killed(t, c, after, syscall.SIGTERM, "--debug")
	}
	assert.Contains(t, c.ok(t, "./build.sh", "--debug"), "is ready")
	assert.Contains(t, c.ok(t, "go", "vet", "./cshim"), "")
	assert.Contains(t, c.ok(t, "./build.sh"), "is ready", "back to release, which is still there")
}

func TestTwoAtOnce(t *testing.T) {
	c := builtCheckout(t)
	require.NoError(t, os.RemoveAll(filepath.Join(c.dir, "third_party/out/build/3-debug")))
	var wg sync.WaitGroup
	outs := make([]string, 2)
	for i := range outs {
		wg.Go(func() {
			cmd, out := c.cmd("./build.sh", "--debug")
			if err := cmd.Run(); err != nil {
				fmt.Fprintln(out, err)
			}
			outs[i] = out.String()
		})
	}
	wg.Wait()
	both := outs[0] + outs[1]
	assert.Equal(t, 1, strings.Count(both, "is ready"), both)
	assert.Equal(t, 1, strings.Count(both, "nothing to do"), both)
	assert.Equal(t, 1, strings.Count(both, "another build.sh is at work"), both)
}

// A tree of one's own is taken as it is, built beside the pinned one, and rebuilt
// when it changes.
func TestOwnSources(t *testing.T) {
	c := builtCheckout(t)
	own := filepath.Join(t.TempDir(), "s2n")
	require.NoError(t, os.CopyFS(own, os.DirFS(filepath.Join(c.dir, "third_party/out/src", s2nCrate, "lib"))))
	mine := c.with("S2N_SRC=" + own)
	assert.Contains(t, mine.ok(t, "./build.sh", "--debug"), "s2n-tls custom, debug")
	assert.Contains(t, mine.ok(t, "./build.sh", "--debug"), "nothing to do")
	file := filepath.Join(own, "utils/s2n_init.c")
	write(t, file, read(t, file)+"\nconst char s2n_own_source[] = \"mine\";\n")
	assert.Contains(t, mine.ok(t, "./build.sh", "--debug"), "is ready")
	assert.Contains(t, c.ok(t, "./build.sh"), "s2n-tls 0.3.47, release")
}

// The checksum in the lock is what cargo itself goes by.
func TestCargoRefusesAnotherChecksum(t *testing.T) {
	slow(t)
	c := unbuilt(t)
	lock := filepath.Join(c.dir, "third_party/s2n-tls/Cargo.lock")
	_, sum, _ := strings.Cut(read(t, lock), "checksum = \"")
	write(t, lock, strings.Replace(read(t, lock), sum[:64], strings.Repeat("0", 64), 1))
	out := c.with("CARGO_HOME="+t.TempDir()).fails(t, "./build.sh")
	t.Log(out)
	assert.Contains(t, out, "checksum")
	assert.Contains(t, out, "cargo could not fetch "+s2nCrate)
}
