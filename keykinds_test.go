package s2n_test

import (
	"crypto"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
	"github.com/s2n-go/s2n/internal/testcert"
)

// storedKey reads a key that would take long to make. No secret is in these: their
// primes are those of RFC 3526 and RFC 7919, of half the key's size.
func storedKey(t *testing.T, name string) *rsa.PrivateKey {
	t.Helper()
	b, err := os.ReadFile("testdata/keys/" + name)
	require.NoError(t, err)
	block, _ := pem.Decode(b)
	require.NotNil(t, block)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	require.NoError(t, err)
	return key.(*rsa.PrivateKey)
}

func ed25519Key(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	return key
}

// Which keys are served, and by which of the default policies; each that is served shakes hands.
func TestKeyKinds(t *testing.T) {
	all := []s2n.Policy{s2n.DefaultFIPS, s2n.DefaultTLS13, s2n.DefaultPQ}
	for _, row := range []struct {
		name   string
		key    func() crypto.Signer
		refuse string // by X509KeyPair, with this in its text
		scheme tls.SignatureScheme
	}{
		{"RSA-1024", func() crypto.Signer { return testcert.NewRSAKey(1024) }, "RSA keys of 1024 bits", 0},
		{"RSA-2048", func() crypto.Signer { return testcert.NewRSAKey(2048) }, "", tls.PSSWithSHA256},
		{"RSA-3072", func() crypto.Signer { return testcert.NewRSAKey(3072) }, "", tls.PSSWithSHA256},
		{"RSA-4096", func() crypto.Signer { return storedKey(t, "rsa4096.pem") }, "", tls.PSSWithSHA256},
		{"RSA-8192", func() crypto.Signer { return storedKey(t, "rsa8192.pem") }, "", tls.PSSWithSHA256},
		{"RSA-16384", func() crypto.Signer { return storedKey(t, "rsa16384.pem") }, "RSA keys of 16384 bits", 0},
		{"P-224", func() crypto.Signer { return testcert.NewKey(elliptic.P224()) }, "ECDSA keys on P-224", 0},
		{"P-256", func() crypto.Signer { return testcert.NewKey(elliptic.P256()) }, "", tls.ECDSAWithP256AndSHA256},
		{"P-384", func() crypto.Signer { return testcert.NewKey(elliptic.P384()) }, "", tls.ECDSAWithP384AndSHA384},
		{"P-521", func() crypto.Signer { return testcert.NewKey(elliptic.P521()) }, "", tls.ECDSAWithP521AndSHA512},
		{"Ed25519", func() crypto.Signer { return ed25519Key(t) }, "Ed25519 keys", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			leaf := pki().ca.Issue(testcert.Options{Key: row.key()}, "localhost")
			start := time.Now()
			c, err := s2n.X509KeyPair(leaf.CertPEM, leaf.KeyPEM)
			require.Less(t, time.Since(start), 5*time.Second)
			if row.refuse != "" {
				require.ErrorContains(t, err, row.refuse+" are not served")
				require.ErrorContains(t, err, "RSA of 2048 to 8192 bits and ECDSA on P-256, P-384 and P-521 are served")
				var e *s2n.Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, s2n.KindCertificate, e.Kind)
				requireNoKey(t, err.Error(), leaf.KeyPEM)
				return
			}
			require.NoError(t, err)
			for _, policy := range all {
				config := &s2n.Config{Policy: policy, Certificates: []s2n.Certificate{c}}
				require.NoError(t, config.Validate(), policy)
				for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
					a, b := tcpPair(t)
					peer := goClientConfig()
					peer.MinVersion, peer.MaxVersion = version, version
					server := s2n.Server(b, config)
					clientErr, serverErr := handshakeBoth(tls.Client(a, peer), server)
					require.NoError(t, clientErr)
					require.NoError(t, serverErr)
					if version == tls.VersionTLS13 {
						require.Equal(t, row.scheme, server.State().SignatureScheme)
					}
				}
				// And as what our client verifies.
				a, b := tcpPair(t)
				ours := clientConfig(t)
				ours.Policy = policy
				clientErr, serverErr := handshakeBoth(s2n.Client(a, ours), tls.Server(b, &tls.Config{Certificates: []tls.Certificate{leaf.TLS}}))
				require.NoError(t, clientErr)
				require.NoError(t, serverErr)
			}
		})
	}
}

// What a client meets at servers with keys that this package does not serve: never a long wait, always a reason.
func TestPeerKeyKinds(t *testing.T) {
	for _, row := range []struct {
		name     string
		key      crypto.Signer
		accepted bool
	}{
		{"RSA-1024", testcert.NewRSAKey(1024), true}, // as crypto/tls; but State().FIPS is false
		{"RSA-16384", storedKey(t, "rsa16384.pem"), false},
		{"P-224", testcert.NewKey(elliptic.P224()), false},
		{"Ed25519", ed25519Key(t), false},
		{"RSA-8192", storedKey(t, "rsa8192.pem"), true},
		{"P-256", testcert.NewKey(elliptic.P256()), true},
	} {
		t.Run(row.name, func(t *testing.T) {
			leaf := pki().ca.Issue(testcert.Options{Key: row.key}, "localhost")
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				a, b := tcpPair(t)
				server := tls.Server(b, &tls.Config{Certificates: []tls.Certificate{leaf.TLS}, MinVersion: version, MaxVersion: version})
				client := s2n.Client(a, clientConfig(t))
				var cpu time.Duration
				done := make(chan error, 1)
				go func() {
					err := server.Handshake()
					if err != nil {
						server.Close()
					}
					done <- err
				}()
				start := time.Now()
				clientErr := client.Handshake()
				cpu = time.Since(start)
				if row.accepted {
					require.NoError(t, clientErr)
					require.NoError(t, <-done)
					require.Equal(t, row.name != "RSA-1024", client.State().FIPS)
					continue
				}
				require.Error(t, clientErr, "TLS %x", version)
				client.Close()
				<-done
				require.Less(t, cpu, 30*time.Second) // crypto/tls's own signature is most of it
				t.Logf("TLS %x: %v", version, clientErr)
			}
		})
	}
}

// A policy that takes other keys says so when the Config is checked, not at the first client.
func TestPolicyRefusesCertificate(t *testing.T) {
	p384 := pair(t, pki().ca.Issue(testcert.Options{Key: testcert.NewKey(elliptic.P384())}, "localhost"))
	caP384 := testcert.New("P-384 root", testcert.NewKey(elliptic.P384()))
	all384 := pair(t, caP384.Issue(testcert.Options{Key: testcert.NewKey(elliptic.P384())}, "localhost"))
	for _, row := range []struct {
		name   string
		policy s2n.Policy
		cert   s2n.Certificate
		ok     bool
	}{
		{"CNSA 1, P-256", "rfc9151", pair(t, pki().server), false},
		{"CNSA 1, P-384 signed by P-256", "rfc9151", p384, false},
		{"CNSA 1, all P-384", "rfc9151", all384, true},
		{"default, P-256", "", pair(t, pki().server), true},
	} {
		t.Run(row.name, func(t *testing.T) {
			config := &s2n.Config{Policy: row.policy, Certificates: []s2n.Certificate{row.cert}}
			err := config.Validate()
			if row.ok {
				require.NoError(t, err)
				return
			}
			var e *s2n.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, "S2N_ERR_SECURITY_POLICY_INCOMPATIBLE_CERT", e.Name)
			require.Equal(t, s2n.KindCertificate, e.Kind)
			require.Contains(t, e.Message, "Policy.Info")
			require.Contains(t, err.Error(), "Certificates[0]")
			_, err = s2n.Listen("tcp", "127.0.0.1:0", config)
			require.ErrorAs(t, err, &e)
		})
	}
}
