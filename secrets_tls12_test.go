package s2n_test

import (
	"bytes"
	"crypto"
	"crypto/ecdh"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"slices"
	"testing"

	"github.com/s2n-go/s2n"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A client that offered TLS 1.3 and got TLS 1.2 never uses its key shares, and s2n keeps them.
func TestSecretsClientTLS12(t *testing.T) {
	child := startSecretsChild(t)
	for _, policy := range []s2n.Policy{s2n.DefaultFIPS, s2n.DefaultPQ, s2n.DefaultTLS13} {
		for _, buffers := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/buffers=%v", policy, buffers), func(t *testing.T) {
				config := goServerConfig()
				config.MaxVersion = tls.VersionTLS12
				r := child.run(t, secretsCommand{Policy: policy, Buffers: buffers}, config)
				shares := helloShares(t, r.message(1, 0))
				private := needles{}
				m := r.memory()
				for _, s := range shares {
					s.privateKeys(r, m, private)
				}
				r.finish()
				m = r.memory()
				private.gone(t, m, "after the handshake")
				for _, s := range shares {
					s.noPrivateKey(r, m, "after the handshake")
				}
				// What the client sent in ClientKeyExchange has a private key too.
				point := r.message(16, 0)[1:]
				curve, group := ecdh.P256(), tls.CurveP256
				if len(point) == 32 {
					curve, group = ecdh.X25519(), tls.X25519
				}
				assert.Nil(t, m.findPrivate(r.child.before, curve, point), "the private key of ClientKeyExchange, %v", group)
				r.end(m, "close")
			})
		}
	}
}

func TestSecretsServerTLS12(t *testing.T) {
	child := startSecretsChild(t)
	cert, key := leafPEM(pki().server)
	for _, c := range []struct {
		policy s2n.Policy
		group  tls.CurveID
	}{{s2n.DefaultFIPS, tls.CurveP256}, {s2n.DefaultFIPS, tls.CurveP384}, {s2n.DefaultTLS13, tls.X25519}} {
		t.Run(c.group.String(), func(t *testing.T) {
			config := goClientConfig()
			config.MaxVersion, config.CurvePreferences = tls.VersionTLS12, []tls.CurveID{c.group}
			r := child.run(t, secretsCommand{Server: true, Policy: c.policy, Cert: cert, Key: key}, config)
			r.wire.deliver(t, func(i int, rec record) bool { return rec.kind == 22 })
			exchange := r.message(12, 0)
			s := share{c.group, exchange[4 : 4+int(exchange[3])]}
			r.message(14, 0) // ServerHelloDone
			private := needles{}
			s.privateKeys(r, r.memory(), private)
			r.finish()

			// The premaster secret, from the server's private key and the client's public one.
			curve, _, _, _ := s.parts(t)
			r.wire.mu.Lock()
			clientPoint := plainMessage(r.wire.toChild, 16, 0)[1:]
			r.wire.mu.Unlock()
			peer, err := curve.NewPublicKey(clientPoint)
			require.NoError(t, err)
			var own *ecdh.PrivateKey
			for _, b := range private {
				if k, err := curve.NewPrivateKey(b); err == nil && bytes.Equal(k.PublicKey().Bytes(), s.key) {
					own = k
				}
			}
			premaster, err := own.ECDH(peer)
			require.NoError(t, err)
			checkMaster(r, premaster)
			private.add("the premaster secret", premaster)
			slices.Reverse(premaster)
			private.add("the premaster secret, reversed", premaster)

			m := r.memory()
			private.gone(t, m, "after the handshake")
			s.noPrivateKey(r, m, "after the handshake")
			r.end(m, "close")
		})
	}
}

// checkMaster fails if a premaster secret is not the one that the handshake used, so
// that a test does not look for what never was.
func checkMaster(r *secretsRun, premaster []byte) {
	r.Helper()
	cs := r.peer.ConnectionState()
	require.Equal(r, crypto.SHA256, suiteHash(cs.CipherSuite), "a suite with SHA-256")
	r.wire.mu.Lock()
	defer r.wire.mu.Unlock()
	// Both sides' plaintext messages in order (RFC 7627, 4: up to ClientKeyExchange).
	h := sha256.New()
	for _, step := range []struct {
		client bool
		kinds  []byte
	}{{true, []byte{1}}, {false, []byte{2, 11, 22, 12, 13, 14}}, {true, []byte{11, 16}}} {
		stream := r.wire.toChild
		if step.client != (plainMessage(r.wire.toChild, 1, 0) != nil) {
			stream = r.wire.fromChild
		}
		for _, kind := range step.kinds {
			if m := plainMessage(stream, kind, 0); m != nil {
				h.Write(append([]byte{kind, byte(len(m) >> 16), byte(len(m) >> 8), byte(len(m))}, m...))
			}
		}
	}
	require.Equal(r, r.log.secret(r, "CLIENT_RANDOM"), prf12(premaster, "extended master secret", h.Sum(nil), 48))
}

// RSA key exchange: the premaster secret goes over the wire, encrypted to the server's key.
func TestSecretsRSAKeyExchange(t *testing.T) {
	child := startSecretsChild(t)
	cert, key := leafPEM(pki().rsa)
	const policy = "20240417"
	premaster := func(r *secretsRun, stream []byte) needles {
		p, err := pki().rsa.TLS.PrivateKey.(crypto.Decrypter).Decrypt(nil, plainMessage(stream, 16, 0)[2:], nil)
		require.NoError(r, err)
		checkMaster(r, p)
		n := needles{}
		n.add("the premaster secret", p)
		return n
	}
	t.Run("client", func(t *testing.T) {
		config := goServerConfig()
		config.Certificates = []tls.Certificate{pki().rsa.TLS}
		config.MaxVersion, config.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256}
		r := child.run(t, secretsCommand{Policy: policy}, config)
		r.finish()
		m := r.memory()
		premaster(r, r.wire.fromChild).gone(t, m, "after the handshake")
		r.end(m, "close")
	})
	t.Run("server", func(t *testing.T) {
		config := goClientConfig()
		config.MaxVersion, config.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256}
		r := child.run(t, secretsCommand{Server: true, Policy: policy, Cert: cert, Key: key}, config)
		r.finish()
		m := r.memory()
		premaster(r, r.wire.toChild).gone(t, m, "after the handshake")
		r.end(m, "close")
	})
}

// The client's last messages and its first data arrive as one, and the data is read
// in part: the buffer in which all of it was decrypted stays in use.
func TestSecretsInReadAhead(t *testing.T) {
	child := startSecretsChild(t)
	cert, key := leafPEM(pki().server)
	for _, buffers := range []bool{false, true} {
		t.Run(fmt.Sprintf("buffers=%v", buffers), func(t *testing.T) {
			config := goClientConfig()
			config.Certificates = []tls.Certificate{pki().client.TLS}
			r := child.run(t, secretsCommand{Server: true, Policy: s2n.DefaultPQ, Buffers: buffers, Cert: cert, Key: key,
				ClientAuth: tls.RequireAndVerifyClientCert}, config)
			r.wire.deliver(t, func(i int, rec record) bool { return rec.kind == 22 })
			require.NoError(t, <-r.err)
			_, err := r.peer.Write(bytes.Repeat([]byte("data"), 1000))
			require.NoError(t, err)
			r.wire.deliverAll(t)
			child.do(secretsCommand{Do: "wait"}).ok(t)
			require.Equal(t, "datad", child.do(secretsCommand{Do: "read", N: 5}).ok(t).Data)
			m := r.memory()
			require.NotEmpty(t, m.find([]byte("atadatadatadata")), "the rest of the data is in the buffer")
			secrets, messages := r.handshakeSecrets(false, true)
			require.Len(t, messages, 2)
			secrets.gone(t, m, "after the handshake")
			messages.gone(t, m, "after the handshake")
		})
	}
}
