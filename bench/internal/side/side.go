// Package side is what all sides in Go share: the loop that answers the driver,
// and the cases, written once over what s2n.Conn and tls.Conn have in common.
package side

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/s2n-go/s2n/bench/internal/proto"
)

// Conn is what all sides' connections have.
type Conn interface {
	net.Conn
	Handshake() error
	CloseWrite() error
	ConnectionState() tls.ConnectionState
}

// Ends makes both ends of connections for one Spec.
type Ends struct {
	Client, Server func(net.Conn) Conn
	Plain          bool // there is no TLS, so nothing is checked
}

// AEAD does n operations on one message.
type AEAD func(n int) error

// Side is one library.
type Side struct {
	Facts map[string]string
	// Ends returns an UnsupportedError for what the library does not have.
	Ends func(proto.Spec, Files) (Ends, error)
	AEAD func(proto.Spec) (AEAD, error)
}

// Files are the PEM files that the driver made, the same for all sides.
type Files struct{ dir string }

// NewFiles are those in a folder.
func NewFiles(dir string) Files { return Files{dir} }

func (f Files) read(name string) ([]byte, error) { return os.ReadFile(filepath.Join(f.dir, name)) }

// Chain is the PEM of a chain, leaf first, and of its key. who is server or client,
// kind as in Spec.Cert.
func (f Files) Chain(who, kind string) (chain, key []byte, err error) {
	if chain, err = f.read(who + "-" + kind + ".pem"); err != nil {
		return nil, nil, err
	}
	key, err = f.read(who + "-" + kind + ".key")
	return chain, key, err
}

// CA is the PEM of the authority over the chains of a kind.
func (f Files) CA(kind string) ([]byte, error) { return f.read("ca-" + kind + ".pem") }

// ServerName is what the servers' certificates say.
const ServerName = "localhost"

// Main answers the driver until its input ends.
func Main(s Side, certDir string) {
	line := "ready"
	for _, k := range slices.Sorted(maps.Keys(s.Facts)) {
		line += " " + k + "=" + s.Facts[k]
	}
	fmt.Println(line)
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			if err != io.EOF {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
		fmt.Println(proto.Line(s.answer(line, NewFiles(certDir))))
	}
}

func (s Side) answer(line string, files Files) (*proto.Answer, error) {
	r, err := proto.ParseRequest(line)
	if err != nil {
		return nil, err
	}
	if r.N < 1 {
		return nil, fmt.Errorf("n=%d", r.N)
	}
	if r.Spec.Kind == "aead" {
		return s.aead(r)
	}
	ends, err := s.Ends(r.Spec, files)
	if err != nil {
		return nil, err
	}
	if r.Verb == "hello" {
		return hello(ends)
	}
	kind, ok := kinds[r.Spec.Kind]
	if !ok {
		return nil, proto.Unsupported("no case %q", r.Spec.Kind)
	}
	b := &batch{Spec: r.Spec, Ends: ends, n: r.N, result: proto.NewResult()}
	if err := kind(b); err != nil {
		return nil, err
	}
	return &proto.Answer{Result: b.result}, nil
}

func hello(ends Ends) (*proto.Answer, error) {
	if ends.Plain {
		return nil, proto.Unsupported("no TLS")
	}
	c := &captureConn{memConn: memConn{in: newMemBuf(), out: newMemBuf()}}
	_ = ends.Client(c).Handshake() // fails, by want of a server
	if c.first == nil {
		return nil, errors.New("no ClientHello was written")
	}
	return &proto.Answer{Hello: c.first, Result: proto.NewResult()}, nil
}

func (s Side) aead(r proto.Request) (*proto.Answer, error) {
	if s.AEAD == nil {
		return nil, proto.Unsupported("no AEAD")
	}
	do, err := s.AEAD(r.Spec)
	if err != nil {
		return nil, err
	}
	if err := do(1); err != nil {
		return nil, err
	}
	b := &batch{n: r.N, result: proto.NewResult()}
	stop := b.measure()
	err = do(r.N)
	stop()
	b.result.Ops, b.result.Bytes = int64(r.N), int64(r.N)*int64(r.Spec.Size)
	return &proto.Answer{Result: b.result}, err
}

// batch is one request in the making.
type batch struct {
	proto.Spec
	Ends
	n      int
	result proto.Result
}

// measure begins now and ends when what it returned is called.
func (b *batch) measure() (stop func()) {
	runtime.GC() // no batch pays for the one before
	var m0, m1 runtime.MemStats
	var u0, u1 syscall.Rusage
	runtime.ReadMemStats(&m0)
	c0 := runtime.NumCgoCall()
	rusage(&u0)
	t0 := time.Now()
	return func() {
		wall := time.Since(t0)
		rusage(&u1)
		c1 := runtime.NumCgoCall()
		runtime.ReadMemStats(&m1)
		r := &b.result
		r.WallNS = wall.Nanoseconds()
		r.UserNS = u1.Utime.Nano() - u0.Utime.Nano()
		r.SysNS = u1.Stime.Nano() - u0.Stime.Nano()
		r.Faults = u1.Minflt - u0.Minflt
		r.Switches = u1.Nvcsw + u1.Nivcsw - u0.Nvcsw - u0.Nivcsw
		r.Crossings = c1 - c0
		r.Allocs = int64(m1.Mallocs - m0.Mallocs)
		r.AllocBytes = int64(m1.TotalAlloc - m0.TotalAlloc)
	}
}

func rusage(u *syscall.Rusage) {
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, u); err != nil {
		panic(err) // it has no way to fail
	}
}

// look reads the states of both ends, as an application would, and holds them
// against what the case is named after. Part of what is measured, on all sides.
func (b *batch) look(client, server Conn) error {
	if b.Plain {
		return nil
	}
	if err := b.lookAt(client.ConnectionState(), true); err != nil {
		return fmt.Errorf("client: %w", err)
	}
	if err := b.lookAt(server.ConnectionState(), false); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	return nil
}

func (b *batch) lookAt(s tls.ConnectionState, client bool) error {
	want := wantedSuite(b.Spec)
	switch {
	case !s.HandshakeComplete:
		return errors.New("no handshake happened")
	case s.Version != b.Version:
		return fmt.Errorf("%s was negotiated", tls.VersionName(s.Version))
	case uint16(s.CurveID) != b.Group:
		return fmt.Errorf("group %v was negotiated", s.CurveID)
	case s.CipherSuite != want:
		return fmt.Errorf("%s was negotiated", tls.CipherSuiteName(s.CipherSuite))
	case s.DidResume:
		return errors.New("a session was resumed")
	case s.HelloRetryRequest:
		return errors.New("there was a HelloRetryRequest")
	}
	if client || b.Mutual {
		if len(s.PeerCertificates) == 0 || len(s.VerifiedChains) == 0 {
			return errors.New("the peer's chain was not verified")
		}
		kind := ""
		switch s.PeerCertificates[0].PublicKey.(type) {
		case *ecdsa.PublicKey:
			kind = "ecdsa-p256"
		case *rsa.PublicKey:
			kind = "rsa-2048"
		}
		if kind != b.Cert {
			return fmt.Errorf("the peer's key is %s", kind)
		}
	} else if len(s.PeerCertificates) != 0 {
		return errors.New("the client sent a certificate")
	}
	r := &b.result
	r.Version, r.Group, r.Suite, r.Mutual = int64(s.Version), int64(s.CurveID), int64(s.CipherSuite), 0
	if b.Mutual {
		r.Mutual = 1
	}
	return nil
}

// wantedSuite is AES-128-GCM throughout: what crypto/tls and s2n's policies prefer by themselves.
func wantedSuite(s proto.Spec) uint16 {
	switch {
	case s.Version == tls.VersionTLS13:
		return tls.TLS_AES_128_GCM_SHA256
	case s.Cert == "rsa-2048":
		return tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
	}
	return tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
}
