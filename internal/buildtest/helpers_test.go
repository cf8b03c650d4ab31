package buildtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the checkout.
var root = func() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}()

// active is the result that the checkout's own Go files link.
func active(t *testing.T) string {
	dir, err := filepath.EvalSymlinks(filepath.Join(root, "third_party/out/active"))
	require.NoError(t, err, "run ./build.sh first")
	return dir
}

// slow skips what compiles for minutes.
func slow(t *testing.T) {
	t.Helper()
	if os.Getenv("S2N_TEST_BUILD") == "" {
		t.Skip("compiles s2n-tls and AWS-LC for minutes; S2N_TEST_BUILD=1 runs it, as .ci/run does")
	}
}

// command is one run of a program with all that it said.
type command struct {
	dir string
	env []string
}

func (c command) cmd(name string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	var out bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Dir = c.dir
	// What the caller of the tests has set must not decide them.
	for _, kv := range os.Environ() {
		switch name, _, _ := strings.Cut(kv, "="); name {
		case "FIPS_MODULE", "S2N_SRC", "AWSLC_SRC", "CC", "CGO_CFLAGS", "CGO_LDFLAGS",
			"CGO_ENABLED", "GOFLAGS", "GOOS", "GOARCH", "PKG_CONFIG_PATH", "S2NSHIM_FIPS_BREAK_TEST", "S2NSHIM_OFF":
		default:
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, c.env...)
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

// ok runs a program that must succeed and returns its output.
func (c command) ok(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd, out := c.cmd(name, args...)
	require.NoError(t, cmd.Run(), "%s %s\n%s", name, strings.Join(args, " "), out)
	return out.String()
}

// fails runs a program that must fail and returns its output.
func (c command) fails(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd, out := c.cmd(name, args...)
	require.Error(t, cmd.Run(), "%s %s\n%s", name, strings.Join(args, " "), out)
	return out.String()
}

func (c command) with(env ...string) command {
	c.env = append(append([]string(nil), c.env...), env...)
	return c
}

// write makes a file and the folders above it.
func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// sources are the files of the checkout as git would have them in a commit made
// now, relative to root.
func sources(t *testing.T) []string {
	t.Helper()
	out := command{dir: root}.ok(t, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	var files []string
	for _, f := range strings.Split(strings.TrimRight(out, "\x00"), "\x00") {
		if _, err := os.Stat(filepath.Join(root, f)); err == nil {
			files = append(files, f)
		}
	}
	return files
}

// clone copies the sources to a new folder: a checkout with nothing built.
func clone(t *testing.T, dir string) {
	t.Helper()
	for _, f := range sources(t) {
		from, to := filepath.Join(root, f), filepath.Join(dir, f)
		info, err := os.Lstat(from)
		require.NoError(t, err)
		if !info.Mode().IsRegular() {
			continue
		}
		b, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		require.NoError(t, os.WriteFile(to, b, info.Mode().Perm()))
	}
}
