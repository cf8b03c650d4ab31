package s2n

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/s2n-go/s2n/cshim"
)

// Certificate is a certificate chain with its private key. It is immutable, and
// may be shared by any number of Configs. The zero Certificate is not usable.
type Certificate struct{ c *certificate }

type certificate struct {
	shim *cshim.Cert
	leaf *x509.Certificate
}

// X509KeyPair makes a Certificate from PEM: the leaf first, then what leads to a
// root. What tls.X509KeyPair accepts and refuses is accepted and refused here, so
// that PEM may come in every shape people have; but every certificate of the chain
// must parse, not the leaf alone, and of the keys only RSA of 2048 to 8192 bits and
// ECDSA on P-256, P-384 and P-521 are served. The key is copied into C
// memory (s2n_cert_chain_and_key_load_pem_bytes), and errors never show any of it.
func X509KeyPair(certPEM, keyPEM []byte) (Certificate, error) {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return Certificate{}, &Error{Op: "certificate", Kind: KindCertificate, Err: plainPairError(err, certPEM, keyPEM)}
	}
	if err := servedKey(pair.PrivateKey); err != nil {
		return Certificate{}, err
	}
	// One spelling for s2n, whatever the caller's was.
	var chain bytes.Buffer
	for _, der := range pair.Certificate {
		if err := pem.Encode(&chain, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
			return Certificate{}, &Error{Op: "certificate", Kind: KindInternal, Err: err}
		}
	}
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return Certificate{}, &Error{Op: "certificate", Kind: KindCertificate, Message: "the key cannot be encoded as PKCS #8"}
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	clear(der)
	defer clear(key)

	if r := cshim.Init(); r.Status != cshim.OK {
		return Certificate{}, s2nError("certificate", r)
	}
	shim, r := cshim.NewCert(chain.Bytes(), key)
	if r.Status != cshim.OK {
		return Certificate{}, s2nError("certificate", r)
	}
	leaf := pair.Leaf
	if leaf == nil {
		if leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return Certificate{}, &Error{Op: "certificate", Kind: KindCertificate, Message: "the leaf", Err: err}
		}
	}
	return Certificate{&certificate{shim, leaf}}, nil
}

// LoadX509KeyPair is X509KeyPair of two files; its errors name the file.
func LoadX509KeyPair(certFile, keyFile string) (Certificate, error) {
	certPEM, err := os.ReadFile(certFile)
	if err != nil {
		return Certificate{}, &Error{Op: "certificate", Kind: KindConfig, Message: "cannot read the certificate", Err: err}
	}
	keyPEM, err := os.ReadFile(keyFile)
	if err != nil {
		return Certificate{}, &Error{Op: "certificate", Kind: KindConfig, Message: "cannot read the key", Err: err}
	}
	defer clear(keyPEM)
	c, err := X509KeyPair(certPEM, keyPEM)
	if e, ok := errors.AsType[*Error](err); ok {
		e.Message = fmt.Sprintf("certificate %s with key %s%s", certFile, keyFile, prefixed(": ", e.Message))
	}
	return c, err
}

// Leaf returns the parsed leaf, nil for the zero Certificate. It must not be changed.
func (c Certificate) Leaf() *x509.Certificate {
	if c.c == nil {
		return nil
	}
	return c.c.leaf
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// hasBOM finds the mark of UTF-8 and of both kinds of UTF-16.
func hasBOM(b []byte) bool {
	return len(trimBOM(b)) < len(b) || bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff"))
}

func trimBOM(b []byte) []byte { return bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")) }

// plainPairError names the part that is wrong where crypto/tls's text needs help.
func plainPairError(err error, certPEM, keyPEM []byte) error {
	for _, part := range []struct {
		name string
		pem  []byte
	}{{"certificate", certPEM}, {"key", keyPEM}} {
		if len(bytes.TrimSpace(part.pem)) == 0 {
			return fmt.Errorf("the %s is empty: %w", part.name, err)
		}
		if hasBOM(part.pem) {
			return fmt.Errorf("the %s begins with a byte order mark, so it is no PEM; save it as plain text: %w", part.name, err)
		}
		block, _ := pem.Decode(part.pem)
		if block == nil && bytes.Contains(part.pem, []byte("-----BEGIN")) {
			return fmt.Errorf("the %s is PEM that is cut short or damaged: %w", part.name, err)
		}
	}
	if block, _ := pem.Decode(keyPEM); block != nil {
		if block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "" {
			return errors.New("the key is encrypted with a passphrase; decrypt it first (openssl pkey)")
		}
	}
	return err
}

// servedKey refuses the kinds of key that the module's TLS cannot sign with.
func servedKey(key crypto.PrivateKey) error {
	refuse := func(format string, args ...any) error {
		return &Error{Op: "certificate", Kind: KindCertificate,
			Message: fmt.Sprintf(format, args...) + "; RSA of 2048 to 8192 bits and ECDSA on P-256, P-384 and P-521 are served"}
	}
	switch key := key.(type) {
	case *rsa.PrivateKey:
		if bits := key.N.BitLen(); bits < 2048 || bits > 8192 {
			return refuse("RSA keys of %d bits are not served", bits)
		}
		if n := len(key.Primes); n != 2 {
			return refuse("RSA keys of %d primes are not served", n)
		}
	case *ecdsa.PrivateKey:
		switch name := key.Curve.Params().Name; name {
		case "P-256", "P-384", "P-521":
		default:
			return refuse("ECDSA keys on %s are not served", name)
		}
	case ed25519.PrivateKey:
		return refuse("Ed25519 keys are not served")
	default:
		return refuse("%T is no kind of key that is served", key)
	}
	return nil
}

// CertPool is a set of trusted root certificates. It is parsed into C once, on
// first use, and must not be added to after that: an addition then is seen by
// Configs that were not used yet, and by no other.
type CertPool struct{ p *pool }

type pool struct {
	mu    sync.Mutex
	certs []*x509.Certificate
	seen  map[string]bool
	store *cshim.Store // of all certs; nil: not made since the last addition
}

// NewCertPool returns an empty set. A Config with an empty set trusts nobody, and
// says so when it is checked.
func NewCertPool() *CertPool { return &CertPool{&pool{seen: map[string]bool{}}} }

// AddCert adds one certificate; nil and repeated ones are ignored.
func (p *CertPool) AddCert(c *x509.Certificate) {
	if c == nil {
		return
	}
	p.p.mu.Lock()
	defer p.p.mu.Unlock()
	if p.p.seen[string(c.Raw)] {
		return
	}
	p.p.seen[string(c.Raw)] = true
	p.p.certs = append(p.p.certs, c)
	p.p.store = nil
}

// AppendCertsFromPEM adds each certificate of a PEM bundle and reports whether it
// had any; what is no certificate, or cannot be parsed, is passed over, as
// x509.CertPool does.
func (p *CertPool) AppendCertsFromPEM(bundle []byte) (ok bool) {
	bundle = trimBOM(bundle)
	for len(bundle) > 0 {
		var block *pem.Block
		block, bundle = pem.Decode(bundle)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" || len(block.Headers) != 0 {
			continue
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			p.AddCert(c)
			ok = true
		}
	}
	return ok
}

// shimStore makes the X509_STORE, once.
func (p *CertPool) shimStore() (*cshim.Store, error) {
	p.p.mu.Lock()
	defer p.p.mu.Unlock()
	if p.p.store != nil {
		return p.p.store, nil
	}
	if len(p.p.certs) == 0 {
		return nil, configError("config", "the set of trusted roots is empty, so no certificate could be accepted")
	}
	store, r := cshim.NewStore()
	if r.Status != cshim.OK {
		return nil, s2nError("config", r)
	}
	for _, c := range p.p.certs {
		if r := store.Add(c.Raw); r.Status != cshim.OK {
			err := s2nError("config", r)
			err.Message = fmt.Sprintf("root %q: %s", c.Subject, err.Message)
			return nil, err
		}
	}
	p.p.store = store
	return store, nil
}

// Where Linux systems keep their roots: the same files and folders, in the same
// order, as Go's crypto/x509.
var (
	systemFiles = []string{
		"/etc/ssl/certs/ca-certificates.crt",
		"/etc/pki/tls/certs/ca-bundle.crt",
		"/etc/ssl/ca-bundle.pem",
		"/etc/pki/tls/cacert.pem",
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
		"/etc/ssl/cert.pem",
	}
	systemDirs = []string{"/etc/ssl/certs", "/etc/pki/tls/certs"}
)

var systemPool = sync.OnceValues(loadSystemPool)

// SystemCertPool returns a copy of the system's roots, from where Go finds them;
// SSL_CERT_FILE and SSL_CERT_DIR (a list with ":") come before. The files are read
// once a process.
func SystemCertPool() (*CertPool, error) {
	shared, err := systemPool()
	if err != nil {
		return nil, err
	}
	own := NewCertPool()
	for _, c := range shared.p.certs {
		own.AddCert(c)
	}
	return own, nil
}

func loadSystemPool() (*CertPool, error) {
	files, dirs := systemFiles, systemDirs
	if f := os.Getenv("SSL_CERT_FILE"); f != "" {
		files = []string{f}
	}
	if d := os.Getenv("SSL_CERT_DIR"); d != "" {
		dirs = filepath.SplitList(d)
	}
	pool := NewCertPool()
	var first error
	note := func(err error) {
		if first == nil && !errors.Is(err, os.ErrNotExist) {
			first = err
		}
	}
	for _, f := range files {
		bundle, err := os.ReadFile(f)
		if err == nil {
			pool.AppendCertsFromPEM(bundle)
			break
		}
		note(err)
	}
	for _, d := range dirs {
		entries, err := os.ReadDir(d)
		if err != nil {
			note(err)
			continue
		}
		for _, e := range entries {
			if e.IsDir() {
				continue
			}
			if bundle, err := os.ReadFile(filepath.Join(d, e.Name())); err == nil {
				pool.AppendCertsFromPEM(bundle)
			}
		}
	}
	if len(pool.p.certs) == 0 {
		return nil, &Error{Op: "config", Kind: KindConfig, Err: first,
			Message: "no trusted roots found on this system; install ca-certificates, or set RootCAs or SSL_CERT_FILE"}
	}
	return pool, nil
}
