package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A Side is one library as a program that speaks internal/proto.
type Side struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	kinds string // of cases that it has; "": all
	build func(*builder) error
	args  func(*builder) []string
	env   []string
}

// allSides are in the order of their turns.
func allSides() []Side {
	var sides []Side
	s2n := func(module, profile, title string) {
		s := Side{
			ID: "s2n" + module, Title: title,
			build: func(b *builder) error { return b.s2n(module) },
			args:  func(b *builder) []string { return []string{b.bin("side-s2n-" + module), "-profile", profile} },
		}
		if profile != "default" {
			s.ID, s.kinds = s.ID+"-"+profile, "handshake storm newconn" // in the others it is the same
		}
		sides = append(sides, s)
	}
	plainC := func(module, profile, title string) {
		s := Side{
			ID: "c" + module, Title: title, kinds: "handshake bulk pingpong write aead",
			build: func(b *builder) error { return b.plainC(module) },
			args: func(b *builder) []string {
				return []string{filepath.Join(b.out, "c-"+module, "side-c"), "-profile", profile}
			},
		}
		if profile != "default" {
			s.ID, s.kinds = s.ID+"-"+profile, "handshake"
		}
		sides = append(sides, s)
	}
	rustls := func(module, title string) {
		sides = append(sides, Side{
			ID: "rustls" + module, Title: title, kinds: "handshake bulk pingpong write",
			build: func(b *builder) error { return b.rustls(module) },
			args: func(b *builder) []string {
				return []string{filepath.Join(b.out, "rustls-"+module, "release", "rustls-side"), "-version", b.rustlsVersion(module)}
			},
		})
	}
	goTLS := func(id, title, want string, runEnv []string, buildEnv ...string) {
		sides = append(sides, Side{
			ID: id, Title: title, env: runEnv,
			build: func(b *builder) error { return b.goBuild("side-"+id, "./cmd/side-gotls", buildEnv...) },
			args:  func(b *builder) []string { return []string{b.bin("side-" + id), "-want", want} },
		})
	}
	s2n("3", "default", "s2n (this module), FIPS module 3, default_fips")
	s2n("3", "2026", "s2n (this module), FIPS module 3, s2ngo-fips-pq-2026 and -nist-2026")
	goTLS("go-fips", "crypto/tls, GODEBUG=fips140=on, GOFIPS140=v1.0.0", "fips", []string{"GODEBUG=fips140=on"}, "GOFIPS140=v1.0.0")
	s2n("4", "default", "s2n (this module), FIPS module 4, default_fips")
	s2n("4", "2026", "s2n (this module), FIPS module 4, s2ngo-fips-pq-2026 and -nist-2026")
	goTLS("go", "crypto/tls, plain", "plain", nil, "GOFIPS140=off")
	goTLS("go-boring", "crypto/tls, GOEXPERIMENT=boringcrypto", "boring", nil, "GOEXPERIMENT=boringcrypto", "GOFIPS140=off")
	plainC("3", "default", "s2n-tls in plain C, FIPS module 3, default_fips")
	plainC("3", "one-share", "s2n-tls in plain C, FIPS module 3, one key share")
	rustls("3", "rustls 0.23, FIPS module 3")
	plainC("4", "default", "s2n-tls in plain C, FIPS module 4, default_fips")
	plainC("4", "one-share", "s2n-tls in plain C, FIPS module 4, one key share")
	rustls("4", "rustls 0.23, FIPS module 4")
	sides = append(sides, Side{
		ID: "tcp", Title: "TCP without TLS", kinds: "handshake newconn bulk pingpong write parallel",
		build: func(b *builder) error { return b.goBuild("side-go", "./cmd/side-gotls", "GOFIPS140=off") },
		args:  func(b *builder) []string { return []string{b.bin("side-go"), "-raw"} },
	})
	return sides
}

// takes says whether a side has a part in a case at all.
func (s Side) takes(c Case) bool {
	if c.Only != nil && !slices.Contains(c.Only, s.ID) {
		return false
	}
	if s.kinds != "" && !slices.Contains(strings.Fields(s.kinds), c.Spec.Kind) {
		return false
	}
	switch {
	case s.ID == "tcp" && c.Spec.Kind == "handshake":
		// One is enough to show what a connection costs without a handshake.
		return c.Name == "Handshake/tls13/X25519MLKEM768/ecdsa-p256/tcp"
	case strings.HasPrefix(s.ID, "rustls") && c.Spec.Both:
		return false // one connection there reads and writes in one thread
	case c.Spec.Kind == "handshake":
		return s.hasGroup(c)
	}
	return true
}

// hasGroup is about groups that a side's policies are not for.
func (s Side) hasGroup(c Case) bool {
	hybrid := strings.HasSuffix(groupName(c.Spec.Group), "MLKEM768")
	switch {
	case strings.HasSuffix(s.ID, "-2026"), strings.HasSuffix(s.ID, "-one-share"):
		return hybrid
	case s.ID == "s2n3", s.ID == "s2n4", s.ID == "c3", s.ID == "c4":
		return groupName(c.Spec.Group) != "SecP256r1MLKEM768" // default_fips would not choose it
	}
	return true
}

// builder builds each program once.
type builder struct {
	root, bench, out string
	done             map[string]error
	libraries        map[string]string // module: folder with lib and include
	module           string            // which one the checkout had
}

func newBuilder(bench, out string) (*builder, error) {
	bench, err := filepath.Abs(bench)
	if err != nil {
		return nil, err
	}
	out, err = filepath.Abs(out)
	if err != nil {
		return nil, err
	}
	b := &builder{root: filepath.Dir(bench), bench: bench, out: out, done: map[string]error{}, libraries: map[string]string{}}
	if _, err := os.Stat(filepath.Join(b.root, "build.sh")); err != nil {
		return nil, fmt.Errorf("run this in bench/ of a checkout: %w", err)
	}
	b.module = "3"
	header, err := os.ReadFile(filepath.Join(b.root, "third_party/out/include/s2nshim_build.h"))
	if m := regexp.MustCompile(`BUILD_MODULE "(.*)"`).FindSubmatch(header); err == nil && m != nil {
		b.module = string(m[1])
	}
	return b, os.MkdirAll(filepath.Join(out, "bin"), 0o755)
}

func (b *builder) bin(name string) string { return filepath.Join(b.out, "bin", name) }

// once remembers how a build ended.
func (b *builder) once(name string, build func() error) error {
	err, ok := b.done[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "bench: building %s\n", name)
		err = build()
		b.done[name] = err
	}
	return err
}

// Packages by the tool that is missing.
var packages = map[string]string{
	"go":    "golang-go (Debian), golang (Fedora), go (Alpine), or go.dev/dl",
	"cargo": "cargo (Debian, Fedora, Alpine), or rustup.rs; rustls needs Rust 1.71 or newer",
	"cmake": "cmake (Debian, Fedora, Alpine)",
	"make":  "ninja-build or make (Debian, Fedora), samurai or make (Alpine)",
	"bash":  "bash (Debian, Fedora, Alpine)",
}

func (b *builder) run(dir string, env []string, name string, args ...string) error {
	path, err := exec.LookPath(name)
	if err != nil {
		return fmt.Errorf("%s not found; install %s", name, packages[name])
	}
	c := exec.Command(path, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	if output, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, tail(output, 4000))
	}
	return nil
}

func tail(b []byte, n int) []byte { return bytes.TrimSpace(b[max(0, len(b)-n):]) }

// library builds libs2nshim.a with a module and returns the folder of that very
// build. build.sh makes it the checkout's active one; restore puts that right.
func (b *builder) library(module string) (string, error) {
	err := b.once("libs2nshim.a with module "+module, func() error {
		if err := b.run(b.root, []string{"FIPS_MODULE=" + module}, "bash", "build.sh"); err != nil {
			return err
		}
		// Its name holds the build's hash, so Go's cache cannot mistake one for another.
		dir, err := filepath.EvalSymlinks(filepath.Join(b.root, "third_party/out/active"))
		b.libraries[module] = dir
		return err
	})
	return b.libraries[module], err
}

// restore makes the library active that was so before.
func (b *builder) restore() error {
	return b.run(b.root, []string{"FIPS_MODULE=" + b.module}, "bash", "build.sh")
}

func (b *builder) s2n(module string) error {
	library, err := b.library(module)
	if err != nil {
		return err
	}
	return b.goBuild("side-s2n-"+module, "./cmd/side-s2n",
		"CGO_CFLAGS=-O2 -g -I"+library+"/include", "CGO_LDFLAGS=-L"+library+"/lib")
}

func (b *builder) goBuild(name, pkg string, env ...string) error {
	return b.once(name, func() error {
		return b.run(b.bench, env, "go", "build", "-o", b.bin(name), pkg)
	})
}

// pinned is the version of a crate in a lock.
func (b *builder) pinned(lock, crate string) string {
	text, _ := os.ReadFile(filepath.Join(b.root, lock))
	m := regexp.MustCompile(`name = "` + regexp.QuoteMeta(crate) + `"\nversion = "(.*)"`).FindSubmatch(text)
	if m == nil {
		return "none"
	}
	return string(m[1])
}

// plainC builds on the sources and the libcrypto.a that build.sh has made.
func (b *builder) plainC(module string) error {
	if _, err := b.library(module); err != nil {
		return err
	}
	return b.once("side-c with module "+module, func() error {
		if os.Getenv("S2N_SRC") != "" || os.Getenv("AWSLC_SRC") != "" || os.Getenv("CC") != "" {
			return fmt.Errorf("plain C is built from the pinned sources; unset S2N_SRC, AWSLC_SRC and CC, or leave this side out")
		}
		made := filepath.Join(b.root, "third_party/out")
		awslc := filepath.Join(made, "src", "aws-lc-fips-sys-"+b.pinned("third_party/aws-lc-fips-"+module+"/Cargo.lock", "aws-lc-fips-sys"), "aws-lc")
		dir := filepath.Join(b.out, "c-"+module)
		args := []string{
			"-S", filepath.Join(b.bench, "plainc"), "-B", dir, "-DCMAKE_BUILD_TYPE=Release",
			"-DS2N_SRC=" + filepath.Join(made, "src", "s2n-tls-sys-"+b.pinned("third_party/s2n-tls/Cargo.lock", "s2n-tls-sys"), "lib"),
			"-DAWSLC_INCLUDE=" + awslc + "/include",
			"-DAWSLC_LIB=" + filepath.Join(made, "build", module+"-awslc", "crypto", "libcrypto.a"),
		}
		if _, err := os.Stat(filepath.Join(dir, "CMakeCache.txt")); err != nil {
			if _, err := exec.LookPath("ninja"); err == nil {
				args = append(args, "-G", "Ninja")
			} else if _, err := exec.LookPath("make"); err != nil {
				return fmt.Errorf("neither ninja nor make found; install %s", packages["make"])
			}
		}
		if err := b.run(b.bench, nil, "cmake", args...); err != nil {
			return err
		}
		return b.run(b.bench, nil, "cmake", "--build", dir, "--target", "side-c", "--parallel")
	})
}

func (b *builder) rustlsVersion(module string) string {
	lock := "bench/rustls/module-" + module + "/Cargo.lock"
	return fmt.Sprintf("%s+aws-lc-fips-sys_%s", b.pinned(lock, "rustls"), b.pinned(lock, "aws-lc-fips-sys"))
}

func (b *builder) rustls(module string) error {
	return b.once("rustls with module "+module+" (minutes, the first time)", func() error {
		manifest := filepath.Join(b.bench, "rustls", "module-"+module, "Cargo.toml")
		return b.run(b.bench, []string{"CARGO_TARGET_DIR=" + filepath.Join(b.out, "rustls-"+module)},
			"cargo", "build", "--release", "--locked", "--manifest-path", manifest)
	})
}
