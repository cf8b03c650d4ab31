package s2n_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
	"github.com/s2n-go/s2n/internal/testcert"
)

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func concat(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			b = append(b, p...)
		case []byte:
			b = append(b, p...)
		}
	}
	return b
}

func replace(b []byte, old, new string) []byte {
	return bytes.ReplaceAll(b, []byte(old), []byte(new))
}

// cut drops the last n bytes.
func cut(b []byte, n int) []byte { return b[:len(b)-n] }

// pemShape is one way in which people write certificates and keys.
type pemShape struct {
	name      string
	cert, key []byte
	ok        bool
	part      string // of a refusal: which of the two the text must name
}

func pemShapes(t *testing.T) []pemShape {
	ec, rsaLeaf, other := pki().server, pki().rsa, pki().client
	chain, leaf, key := ec.CertPEM, encodePEM("CERTIFICATE", ec.Cert.Raw), ec.KeyPEM
	ca := pki().ca.PEM
	ecKey := ec.TLS.PrivateKey.(*ecdsa.PrivateKey)
	sec1DER, err := x509.MarshalECPrivateKey(ecKey)
	require.NoError(t, err)
	sec1 := encodePEM("EC PRIVATE KEY", sec1DER)
	params, err := asn1.Marshal(asn1.ObjectIdentifier{1, 2, 840, 10045, 3, 1, 7})
	require.NoError(t, err)
	pkcs1 := encodePEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaLeaf.TLS.PrivateKey.(*rsa.PrivateKey)))
	// What is encrypted need not be decryptable for this.
	legacy := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: make([]byte, 128),
		Headers: map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-256-CBC,00112233445566778899AABBCCDDEEFF"}})
	pkcs8Encrypted := encodePEM("ENCRYPTED PRIVATE KEY", make([]byte, 160))
	const bom = "\xef\xbb\xbf"

	return []pemShape{
		{"plain", chain, key, true, ""},
		{"leaf alone", leaf, key, true, ""},
		{"CRLF", replace(chain, "\n", "\r\n"), replace(key, "\n", "\r\n"), true, ""},
		{"no final newline", cut(chain, 1), cut(key, 1), true, ""},
		{"trailing blanks on each line", replace(chain, "\n", " \t\n"), replace(key, "\n", "  \n"), true, ""},
		{"blank lines inside", replace(chain, "-----\n", "-----\n\n"), key, true, ""},
		{"leading blank lines", concat("\n\n", chain), concat("\n \n", key), true, ""},
		{"indented", replace(chain, "\n", "\n  "), key, false, "certificate"},
		{"one line of base64", oneLine(chain), oneLine(key), true, ""},
		{"text before", concat("subject=CN = leaf\nissuer=CN = test root\n", chain), concat("Bag Attributes: <none>\n", key), true, ""},
		{"text between", concat(leaf, "\n 1 s:CN = test root\n", ca), key, true, ""},
		{"text after", concat(chain, "-- end of file --\n"), concat(key, "# eof\n"), true, ""},
		{"PKCS #1", rsaLeaf.CertPEM, pkcs1, true, ""},
		{"PKCS #8 RSA", rsaLeaf.CertPEM, rsaLeaf.KeyPEM, true, ""},
		{"SEC 1", chain, sec1, true, ""},
		{"SEC 1 after EC PARAMETERS", chain, concat(encodePEM("EC PARAMETERS", params), sec1), true, ""},
		{"SEC 1 under PKCS #8's name", chain, encodePEM("PRIVATE KEY", sec1DER), true, ""},
		{"key file holds the certificate too", chain, concat(chain, key), true, ""},
		{"certificate file holds the key too", concat(key, chain), key, true, ""},
		{"one file for both", concat(key, chain), concat(key, chain), true, ""},
		{"two keys, the first fits", chain, concat(key, other.KeyPEM), true, ""},
		{"two keys, the second fits", chain, concat(other.KeyPEM, key), false, "key"},
		{"another chain after it", concat(chain, other.CertPEM), key, true, ""},
		{"last block cut short", concat(leaf, cut(ca, 40)), key, true, ""},
		{"CA before the leaf", concat(ca, leaf), key, false, "key"},
		{"BOM", concat(bom, leaf), key, false, "certificate"},
		{"BOM before a chain", concat(bom, chain), key, false, "certificate"},
		{"BOM before the key", chain, concat(bom, key), false, "key"},
		{"UTF-16", utf16le(leaf), key, false, "certificate"},
		{"encrypted, PEM headers", chain, legacy, false, "key"},
		{"encrypted, PKCS #8", chain, pkcs8Encrypted, false, "key"},
		{"only block cut short", cut(leaf, 40), key, false, "certificate"},
		{"key cut short", chain, cut(key, 30), false, "key"},
		{"key of another certificate", chain, other.KeyPEM, false, "key"},
		{"key of another kind", chain, rsaLeaf.KeyPEM, false, "key"},
		{"swapped", key, chain, false, "certificate"},
		{"certificate twice", chain, chain, false, "key"},
		{"key twice", key, key, false, "certificate"},
		{"certificate empty", nil, key, false, "certificate"},
		{"key empty", chain, nil, false, "key"},
		{"both empty", nil, nil, false, "certificate"},
		{"certificate blank", []byte(" \n\n"), key, false, "certificate"},
		{"certificate garbage", []byte("not a certificate"), key, false, "certificate"},
		{"key garbage", chain, []byte("not a key"), false, "key"},
		{"DER instead of PEM", ec.Cert.Raw, key, false, "certificate"},
		{"PEM of garbage", encodePEM("CERTIFICATE", []byte("garbage")), key, false, "certificate"},
		{"PEM key of garbage", chain, encodePEM("PRIVATE KEY", []byte("garbage")), false, "key"},
		{"garbage as the second certificate", concat(leaf, encodePEM("CERTIFICATE", []byte("garbage"))), key, true, ""},
		{"only EC PARAMETERS", chain, encodePEM("EC PARAMETERS", params), false, "key"},
		{"public key", chain, encodePEM("PUBLIC KEY", []byte("garbage")), false, "key"},
		{"TRUSTED CERTIFICATE", replace(leaf, "CERTIFICATE", "TRUSTED CERTIFICATE"), key, false, "certificate"},
	}
}

func oneLine(b []byte) []byte {
	var out []byte
	for {
		block, rest := pem.Decode(b)
		if block == nil {
			return out
		}
		out = concat(out, "-----BEGIN "+block.Type+"-----\n", base64.StdEncoding.EncodeToString(block.Bytes), "\n-----END "+block.Type+"-----\n")
		b = rest
	}
}

func utf16le(b []byte) []byte {
	out := []byte{0xff, 0xfe}
	for _, c := range b {
		out = append(out, c, 0)
	}
	return out
}

// The verdict is crypto/tls's on each shape; a refusal names the part and shows no key.
func TestX509KeyPairShapes(t *testing.T) {
	for _, shape := range pemShapes(t) {
		t.Run(shape.name, func(t *testing.T) {
			_, reference := tls.X509KeyPair(shape.cert, shape.key)
			require.Equal(t, shape.ok, reference == nil, "crypto/tls says %v", reference)
			c, err := s2n.X509KeyPair(shape.cert, shape.key)
			if shape.name == "garbage as the second certificate" {
				// crypto/tls finds that out at the peer's; here it is found at once.
				require.ErrorContains(t, err, "certificate")
				return
			}
			require.Equal(t, reference == nil, err == nil, "crypto/tls says %v, here %v", reference, err)
			if err == nil {
				server := s2n.Config{Certificates: []s2n.Certificate{c}}
				require.NoError(t, server.Validate())
				require.NotNil(t, c.Leaf())
				return
			}
			require.Nil(t, c.Leaf())
			var e *s2n.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, s2n.KindCertificate, e.Kind)
			require.Contains(t, err.Error(), shape.part)
			require.NotContains(t, err.Error(), "\n")
			requireNoKey(t, err.Error(), shape.cert, shape.key)
		})
	}
}

// requireNoKey fails if text has 12 bytes in a row of a key, in any spelling.
func requireNoKey(t *testing.T, text string, pems ...[]byte) {
	t.Helper()
	const window = 12
	var secrets []string
	for _, p := range pems {
		for {
			block, rest := pem.Decode(p)
			if block == nil {
				break
			}
			p = rest
			if strings.Contains(block.Type, "KEY") {
				der := block.Bytes
				secrets = append(secrets, string(der), base64.StdEncoding.EncodeToString(der), hex.EncodeToString(der))
			}
		}
		if bytes.Contains(p, []byte("KEY-----")) { // what pem.Decode cannot read
			secrets = append(secrets, string(p[bytes.Index(p, []byte("KEY-----"))+8:]))
		}
	}
	for _, s := range secrets {
		for i := 0; i+window <= len(s); i++ {
			require.NotContains(t, text, s[i:i+window])
		}
	}
}

// Messages that say what to do, where crypto/tls's do not.
func TestX509KeyPairMessages(t *testing.T) {
	want := map[string]string{
		"encrypted, PEM headers":     "decrypt it first",
		"encrypted, PKCS #8":         "decrypt it first",
		"BOM":                        "byte order mark",
		"BOM before a chain":         "byte order mark",
		"BOM before the key":         "byte order mark",
		"UTF-16":                     "byte order mark",
		"only block cut short":       "cut short or damaged",
		"key cut short":              "cut short or damaged",
		"certificate empty":          "the certificate is empty",
		"key empty":                  "the key is empty",
		"swapped":                    "switched",
		"key of another certificate": "does not match",
	}
	found := 0
	for _, shape := range pemShapes(t) {
		if text, ok := want[shape.name]; ok {
			_, err := s2n.X509KeyPair(shape.cert, shape.key)
			require.ErrorContains(t, err, text, shape.name)
			found++
		}
	}
	require.Equal(t, len(want), found)
}

// What was loaded is served: the chain of the first certificate, in order, and nothing that crypto/tls leaves out.
func TestX509KeyPairServes(t *testing.T) {
	for _, shape := range pemShapes(t) {
		if !shape.ok || shape.name == "garbage as the second certificate" {
			continue
		}
		t.Run(shape.name, func(t *testing.T) {
			c, err := s2n.X509KeyPair(shape.cert, shape.key)
			require.NoError(t, err)
			reference, err := tls.X509KeyPair(shape.cert, shape.key)
			require.NoError(t, err)
			a, b := tcpPair(t)
			client := tls.Client(a, goClientConfig())
			clientErr, serverErr := handshakeBoth(client, s2n.Server(b, &s2n.Config{Certificates: []s2n.Certificate{c}}))
			require.NoError(t, clientErr)
			require.NoError(t, serverErr)
			var got [][]byte
			for _, p := range client.ConnectionState().PeerCertificates {
				got = append(got, p.Raw)
			}
			require.Equal(t, reference.Certificate, got)
		})
	}
}

func TestLoadX509KeyPairFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, b, 0o600))
		return path
	}
	cert, key := write("cert.pem", pki().server.CertPEM), write("key.pem", pki().server.KeyPEM)
	other := write("other.pem", pki().client.KeyPEM)
	missing := filepath.Join(dir, "missing.pem")
	// A link to itself cannot be opened by anybody, root included.
	loop := filepath.Join(dir, "loop.pem")
	require.NoError(t, os.Symlink(loop, loop))

	c, err := s2n.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	require.Equal(t, pki().server.Cert.Raw, c.Leaf().Raw)

	for _, row := range []struct {
		name, cert, key string
		path, part      string
		kind            s2n.Kind
		is              error
	}{
		{"no certificate file", missing, key, missing, "certificate", s2n.KindConfig, os.ErrNotExist},
		{"no key file", cert, missing, missing, "key", s2n.KindConfig, os.ErrNotExist},
		{"certificate is a folder", dir, key, dir, "certificate", s2n.KindConfig, nil},
		{"key is a folder", cert, dir, dir, "key", s2n.KindConfig, nil},
		{"certificate unreadable", loop, key, loop, "certificate", s2n.KindConfig, nil},
		{"empty names", "", "", "", "certificate", s2n.KindConfig, os.ErrNotExist},
		{"key of another certificate", cert, other, other, "key", s2n.KindCertificate, nil},
		{"swapped", key, cert, key, "switched", s2n.KindCertificate, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := s2n.LoadX509KeyPair(row.cert, row.key)
			var e *s2n.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, row.kind, e.Kind)
			require.ErrorContains(t, err, row.path)
			require.ErrorContains(t, err, row.part)
			if row.is != nil {
				require.ErrorIs(t, err, row.is)
			}
			_, reference := tls.LoadX509KeyPair(row.cert, row.key)
			require.Error(t, reference)
			requireNoKey(t, err.Error(), pki().server.KeyPEM, pki().client.KeyPEM)
		})
	}
}

// The caller's bytes are neither kept nor changed.
func TestX509KeyPairCopies(t *testing.T) {
	cert, key := bytes.Clone(pki().server.CertPEM), bytes.Clone(pki().server.KeyPEM)
	c, err := s2n.X509KeyPair(cert, key)
	require.NoError(t, err)
	require.Equal(t, pki().server.CertPEM, cert)
	require.Equal(t, pki().server.KeyPEM, key)
	clear(cert)
	clear(key)
	a, b := tcpPair(t)
	clientErr, serverErr := handshakeBoth(tls.Client(a, goClientConfig()), s2n.Server(b, &s2n.Config{Certificates: []s2n.Certificate{c}}))
	require.NoError(t, clientErr)
	require.NoError(t, serverErr)
}

func TestZeroCertificate(t *testing.T) {
	var zero s2n.Certificate
	require.Nil(t, zero.Leaf())
	err := (&s2n.Config{Certificates: []s2n.Certificate{pair(t, pki().server), zero}}).Validate()
	require.ErrorContains(t, err, "Certificates[1] is the zero Certificate")
	_, err = s2n.Listen("tcp", "127.0.0.1:0", &s2n.Config{Certificates: []s2n.Certificate{zero}})
	require.ErrorContains(t, err, "Certificates[0]")
}

// Keys whose form is rare: the module takes them, or they are refused with the reason.
func TestRareKeyForms(t *testing.T) {
	t.Run("three primes", func(t *testing.T) {
		//nolint:staticcheck // deprecated, and still met
		key, err := rsa.GenerateMultiPrimeKey(rand.Reader, 3, 2048)
		require.NoError(t, err)
		leaf := pki().ca.Issue(testcert.Options{Key: key}, "localhost")
		_, err = s2n.X509KeyPair(leaf.CertPEM, leaf.KeyPEM)
		require.ErrorContains(t, err, "3 primes")
		requireNoKey(t, err.Error(), leaf.KeyPEM)
	})
	t.Run("explicit curve parameters", func(t *testing.T) {
		// Neither crypto/tls nor s2n reads these; the certificate of such a key is refused first.
		key := encodePEM("EC PRIVATE KEY", []byte{0x30, 0x03, 0x02, 0x01, 0x01})
		_, reference := tls.X509KeyPair(pki().server.CertPEM, key)
		_, err := s2n.X509KeyPair(pki().server.CertPEM, key)
		require.Error(t, reference)
		require.ErrorContains(t, err, "key")
	})
	t.Run("leading zeros in the scalar", func(t *testing.T) {
		// About 1 key in 256; each spelling of it must give the same key.
		var key *ecdsa.PrivateKey
		for {
			key = testcert.NewKey(elliptic.P256())
			if raw, err := key.Bytes(); err == nil && raw[0] == 0 {
				break
			}
		}
		leaf := pki().ca.Issue(testcert.Options{Key: key}, "localhost")
		c := pair(t, leaf)
		a, b := tcpPair(t)
		clientErr, serverErr := handshakeBoth(tls.Client(a, goClientConfig()), s2n.Server(b, &s2n.Config{Certificates: []s2n.Certificate{c}}))
		require.NoError(t, clientErr)
		require.NoError(t, serverErr)
	})
}
