package s2n_test

import (
	"crypto/tls"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
	"github.com/s2n-go/s2n/internal/testcert"
)

// secretsEnd is a way for a handshake to come to nothing.
type secretsEnd struct {
	name string
	do   func(r *secretsRun)
}

// fails waits for the child's handshake to fail.
func (r *secretsRun) fails(part string) {
	r.Helper()
	r.child.do(secretsCommand{Do: "wait"}).failed(r, part)
}

var secretsEnds = []secretsEnd{
	{"canceled", func(r *secretsRun) {
		r.child.do(secretsCommand{Do: "cancel"}).ok(r)
		r.fails("context canceled")
	}},
	{"closed", func(r *secretsRun) {
		r.child.do(secretsCommand{Do: "close"})
		r.fails("use of closed network connection")
	}},
	{"cut", func(r *secretsRun) {
		require.NoError(r, r.wire.conn.Close())
		r.fails("")
	}},
}

// A record that does not decrypt: s2n has the connection live on for 10 to 30 seconds.
var secretsCorrupted = secretsEnd{"corrupted", func(r *secretsRun) {
	r.wire.mu.Lock()
	r.wire.toChild[r.wire.delivered+5+20] ^= 1
	r.wire.mu.Unlock()
	r.wire.deliverAll(r)
	r.fails("S2N_ERR_DECRYPT")
	r.child.blinded++
}}

// failed checks that nothing of a handshake is left once it has failed, in a
// connection that nobody has closed yet, and nor after the garbage collector.
func (r *secretsRun) failed(what ...needles) {
	r.Helper()
	m := readMemory(r, r.child.cmd.Process.Pid)
	for _, n := range what {
		n.gone(r.T, m, "after the failure")
	}
}

// Nothing but the ClientHello is sent: both halves of each key share wait for the server.
func TestSecretsClientFailsAtOnce(t *testing.T) {
	child := startSecretsChild(t)
	garbage := secretsEnd{"garbage", func(r *secretsRun) {
		r.wire.mu.Lock()
		_, err := r.wire.conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
		r.wire.mu.Unlock()
		require.NoError(r, err)
		r.fails("TLS")
	}}
	for _, end := range append(secretsEnds, garbage) {
		for _, buffers := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/buffers=%v", end.name, buffers), func(t *testing.T) {
				r := child.run(t, secretsCommand{Policy: s2n.DefaultPQ, Buffers: buffers}, goServerConfig())
				private := needles{}
				shares := helloShares(t, r.message(1, 0))
				m := r.memory()
				for _, s := range shares {
					s.privateKeys(r, m, private)
				}
				end.do(r)
				r.failed(private)
			})
		}
	}
}

// The server's flight has come in part: the secrets of the handshake are in use, and
// half of a message that was decrypted lies there.
func TestSecretsClientFailsInTheMiddle(t *testing.T) {
	child := startSecretsChild(t)
	other := testcert.New("another root")
	ends := append(secretsEnds, secretsCorrupted, secretsEnd{"untrusted", func(r *secretsRun) {
		r.wire.deliverAll(r)
		r.fails("S2N_ERR_CERT_UNTRUSTED")
	}}, secretsEnd{"wrong name", func(r *secretsRun) {
		r.wire.deliverAll(r)
		r.fails("another name")
	}})
	for _, end := range ends {
		for _, buffers := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/buffers=%v", end.name, buffers), func(t *testing.T) {
				cmd := secretsCommand{Policy: s2n.DefaultPQ, Buffers: buffers}
				config := requestingServer(goServerConfig())
				switch end.name {
				case "untrusted":
					cmd.CA = string(other.PEM)
				case "wrong name":
					config.Certificates = []tls.Certificate{pki().ca.Issue(testcert.Options{}, "elsewhere").TLS}
				}
				r := child.run(t, cmd, config)
				r.wire.deliver(t, largeRecord)
				secrets, messages := r.handshakeSecrets(true, false)
				m := r.memory()
				secrets.there(t, m, "in the middle")
				part := needles{"the part of CertificateRequest that came": messages["the peer's CertificateRequest, from byte 1061"]}
				part.there(t, m, "in the middle")
				end.do(r)
				secrets, messages = r.handshakeSecrets(true, true)
				r.failed(secrets, messages)
			})
		}
	}
}

// The server's flight is sent, and the client's does not come, or is not what it should be.
func TestSecretsServerFails(t *testing.T) {
	child := startSecretsChild(t)
	cert, key := leafPEM(pki().server)
	other := testcert.New("another root").Issue(testcert.Options{}, "client")
	ends := append(secretsEnds, secretsCorrupted, secretsEnd{"untrusted", func(r *secretsRun) {
		r.wire.deliverAll(r)
		r.fails("S2N_ERR_CERT_UNTRUSTED")
	}})
	for _, end := range ends {
		for _, buffers := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/buffers=%v", end.name, buffers), func(t *testing.T) {
				config := goClientConfig()
				config.Certificates = []tls.Certificate{pki().client.TLS}
				if end.name == "untrusted" {
					config.Certificates = []tls.Certificate{other.TLS}
				}
				cmd := secretsCommand{Server: true, Policy: s2n.DefaultPQ, Buffers: buffers, Cert: cert, Key: key, ClientAuth: tls.RequireAndVerifyClientCert}
				r := child.run(t, cmd, config)
				r.wire.deliver(t, func(i int, rec record) bool { return rec.kind == 22 })
				// And ChangeCipherSpec, so that what comes next is encrypted.
				r.wire.deliver(t, func(i int, rec record) bool { return rec.kind == 20 })
				r.wire.wait(t, func() bool { return len(records(r.wire.toChild)) >= 4 })
				secrets, _ := r.handshakeSecrets(false, false)
				secrets.there(t, r.memory(), "in the middle")
				end.do(r)
				secrets, messages := r.handshakeSecrets(false, true)
				r.failed(secrets, messages)
			})
		}
	}
}

// TLS 1.2: the server has sent its half of the key exchange and waits for the client's.
func TestSecretsServerTLS12Fails(t *testing.T) {
	child := startSecretsChild(t)
	cert, key := leafPEM(pki().server)
	garbage := secretsEnd{"garbage", func(r *secretsRun) {
		r.wire.mu.Lock()
		_, err := r.wire.conn.Write([]byte{22, 3, 3, 0, 4, 14, 0, 0, 0}) // a ServerHelloDone, from the client
		r.wire.mu.Unlock()
		require.NoError(r, err)
		r.fails("S2N_ERR_BAD_MESSAGE")
	}}
	for _, end := range append(secretsEnds, garbage) {
		for _, group := range []tls.CurveID{tls.CurveP256, tls.X25519} {
			t.Run(fmt.Sprintf("%s/%v", end.name, group), func(t *testing.T) {
				config := goClientConfig()
				config.MaxVersion, config.CurvePreferences = tls.VersionTLS12, []tls.CurveID{group}
				r := child.run(t, secretsCommand{Server: true, Policy: s2n.DefaultTLS13, Cert: cert, Key: key}, config)
				r.wire.deliver(t, func(i int, rec record) bool { return rec.kind == 22 })
				exchange := r.message(12, 0)
				s := share{group, exchange[4 : 4+int(exchange[3])]}
				r.message(14, 0)
				private := needles{}
				s.privateKeys(r, r.memory(), private)
				end.do(r)
				r.failed(private)
			})
		}
	}
}
