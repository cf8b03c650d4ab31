// Package testcert makes throwaway certificates: for tests, the demo and benchmarks.
package testcert

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// Authority signs leaves. Its certificate is a root.
type Authority struct {
	Cert *x509.Certificate
	PEM  []byte
	key  crypto.Signer
}

// Leaf is a certificate with its key, as PEM and for crypto/tls.
type Leaf struct {
	CertPEM, KeyPEM []byte // the chain is leaf, then CA
	TLS             tls.Certificate
	Cert            *x509.Certificate
}

// Pool holds the authority alone.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.Cert)
	return p
}

// Options change a leaf from what Issue makes by itself: an ECDSA P-256 key, for
// servers and clients, valid from an hour ago for a day.
type Options struct {
	Key       crypto.Signer
	NotBefore time.Time
	NotAfter  time.Time
	Usage     []x509.ExtKeyUsage
	Change    func(*x509.Certificate)
}

// NewKey makes an ECDSA key.
func NewKey(curve elliptic.Curve) *ecdsa.PrivateKey {
	k, err := ecdsa.GenerateKey(curve, rand.Reader)
	check(err)
	return k
}

// NewRSAKey makes an RSA key.
func NewRSAKey(bits int) *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, bits)
	check(err)
	return k
}

// New makes an authority with an ECDSA P-256 key, or the given one.
func New(name string, key ...crypto.Signer) *Authority {
	var k crypto.Signer
	if len(key) > 0 {
		k = key[0]
	} else {
		k = NewKey(elliptic.P256())
	}
	t := caTemplate(name, nil)
	return Authority{key: k, Cert: sign(t, t, k, k)}.encoded()
}

// Intermediate makes an authority that a certifies.
func (a *Authority) Intermediate(name string, change func(*x509.Certificate)) *Authority {
	k := NewKey(elliptic.P256())
	return Authority{key: k, Cert: sign(caTemplate(name, change), a.Cert, k, a.key)}.encoded()
}

// CrossSign certifies another authority's name and key.
func (a *Authority) CrossSign(other *Authority) *x509.Certificate {
	return sign(caTemplate(other.Cert.Subject.CommonName, nil), a.Cert, other.key, a.key)
}

// Resign makes a root's certificate anew, with the same name and key.
func Resign(a *Authority, change func(*x509.Certificate)) *x509.Certificate {
	t := caTemplate(a.Cert.Subject.CommonName, change)
	return sign(t, t, a.key, a.key)
}

// SelfSigned makes a leaf that no authority issued.
func SelfSigned(names ...string) *Leaf {
	k := NewKey(elliptic.P256())
	a := &Authority{Cert: &x509.Certificate{Subject: pkix.Name{CommonName: "leaf"}}, key: k}
	return a.Issue(Options{Key: k}, names...)
}

func (a Authority) encoded() *Authority {
	a.PEM = encode("CERTIFICATE", a.Cert.Raw)
	return &a
}

func caTemplate(name string, change func(*x509.Certificate)) *x509.Certificate {
	t := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	if change != nil {
		change(t)
	}
	return t
}

func sign(template, parent *x509.Certificate, key, parentKey crypto.Signer) *x509.Certificate {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	check(err)
	cert, err := x509.ParseCertificate(der)
	check(err)
	return cert
}

// Issue makes a leaf for names, of which IP addresses become such.
func (a *Authority) Issue(o Options, names ...string) *Leaf {
	if o.Key == nil {
		o.Key = NewKey(elliptic.P256())
	}
	if o.NotBefore.IsZero() {
		o.NotBefore = time.Now().Add(-time.Hour)
	}
	if o.NotAfter.IsZero() {
		o.NotAfter = time.Now().Add(24 * time.Hour)
	}
	if o.Usage == nil {
		o.Usage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "leaf"}, NotBefore: o.NotBefore, NotAfter: o.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: o.Usage, BasicConstraintsValid: true,
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	if o.Change != nil {
		o.Change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.Cert, o.Key.Public(), a.key)
	check(err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(o.Key)
	check(err)
	l := &Leaf{CertPEM: append(encode("CERTIFICATE", der), a.PEM...), KeyPEM: encode("PRIVATE KEY", keyDER)}
	l.TLS, err = tls.X509KeyPair(l.CertPEM, l.KeyPEM)
	check(err)
	l.Cert, err = x509.ParseCertificate(der)
	check(err)
	return l
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	check(err)
	return n
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// check panics: nothing here fails but by a mistake in a test.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
