package s2n_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
	"github.com/s2n-go/s2n/internal/testcert"
)

var clientAuthModes = []tls.ClientAuthType{
	tls.NoClientCert, tls.RequestClientCert, tls.RequireAnyClientCert, tls.VerifyClientCertIfGiven, tls.RequireAndVerifyClientCert,
}

// tls12Policy is one that negotiates nothing above TLS 1.2 with ECDSA certificates.
const tls12Policy = s2n.Policy("20240501")

// authCell is one cell of the table: what crypto/tls does with itself, ours must do with anyone.
type authCell struct {
	mode    tls.ClientAuthType
	cert    *testcert.Leaf // nil: none
	version uint16
}

// authOutcome is what both sides see.
type authOutcome struct {
	client, server bool     // whether it works
	alert          string   // the refusal as the client reads it
	peerCerts      int      // that the server has
	chains         int      // that the server verified
	clientChains   [][]byte // that the client verified: leaf and root
}

func (c authCell) goServer(t testing.TB, conn net.Conn) tlsConn {
	config := goServerConfig()
	config.ClientAuth, config.MinVersion, config.MaxVersion = c.mode, c.version, c.version
	return tls.Server(conn, config)
}

func (c authCell) ourServer(t testing.TB, conn net.Conn) tlsConn {
	config := serverConfig(t)
	config.ClientAuth = c.mode
	if c.version == tls.VersionTLS12 {
		config.Policy = tls12Policy
	}
	return s2n.Server(conn, config)
}

func (c authCell) goClient(t testing.TB, conn net.Conn) tlsConn {
	config := goClientConfig()
	config.MinVersion, config.MaxVersion = c.version, c.version
	if c.cert != nil {
		// As s2n does, it sends what it has, whether or not the server's list of CAs has its issuer.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c.cert.TLS, nil }
	}
	return tls.Client(conn, config)
}

func (c authCell) ourClient(t testing.TB, conn net.Conn) tlsConn {
	config := clientConfig(t)
	if c.version == tls.VersionTLS12 {
		config.Policy = tls12Policy
	}
	if c.cert != nil {
		config.Certificates = []s2n.Certificate{pair(t, c.cert)}
	}
	return s2n.Client(conn, config)
}

// run shakes hands and has a byte go each way: in TLS 1.3 a client learns only then that it was refused.
func (c authCell) run(t *testing.T, makeClient, makeServer func(testing.TB, net.Conn) tlsConn) authOutcome {
	t.Helper()
	a, b := tcpPair(t)
	client, server := makeClient(t, a), makeServer(t, b)
	clientErr, serverErr := shake(client, server)
	out := authOutcome{client: clientErr == nil, server: serverErr == nil}
	if clientErr != nil {
		require.NotErrorIs(t, clientErr, io.EOF, "a refusal must not look like a clean end")
		require.NotErrorIs(t, clientErr, io.ErrUnexpectedEOF)
		out.alert = alertText(t, clientErr)
	}
	if serverErr == nil {
		state := server.ConnectionState()
		out.peerCerts, out.chains = len(state.PeerCertificates), len(state.VerifiedChains)
	}
	if clientErr == nil {
		state := client.ConnectionState()
		require.NotEmpty(t, state.PeerCertificates)
		for _, cert := range state.VerifiedChains[0] {
			out.clientChains = append(out.clientChains, cert.Raw)
		}
	}
	return out
}

// alertText is the peer's alert by name, from either package's error.
func alertText(t *testing.T, err error) string {
	t.Helper()
	if alert, ok := errors.AsType[s2n.Alert](err); ok {
		e := new(s2n.Error)
		require.ErrorAs(t, err, &e)
		require.Equal(t, s2n.KindAlert, e.Kind)
		require.Equal(t, alert, e.Alert)
		return alert.Error()
	}
	op := new(net.OpError)
	require.ErrorAs(t, err, &op, "no alert reached the client: %v", err)
	require.Equal(t, "remote error", op.Op, err)
	return op.Err.Error()
}

// All modes, with every kind of client certificate and both versions, ours on either side and
// on both: cell by cell what crypto/tls does with itself.
func TestClientAuthTable(t *testing.T) {
	serverOnly := pki().ca.Issue(testcert.Options{Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, "client")
	untrusted := testcert.New("other root").Issue(testcert.Options{}, "client")
	certs := []struct {
		name string
		leaf *testcert.Leaf
	}{{"none", nil}, {"trusted", pki().client}, {"untrusted", untrusted}, {"server only", serverOnly}}
	for _, mode := range clientAuthModes {
		for _, cert := range certs {
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				t.Run(fmt.Sprintf("%v/%s/%s", mode, cert.name, tls.VersionName(version)), func(t *testing.T) {
					cell := authCell{mode, cert.leaf, version}
					reference := cell.run(t, cell.goClient, cell.goServer)
					// crypto/tls says bad_certificate where RFC 8446, 6.2 has a closer name.
					if cert.name == "server only" && !reference.client {
						require.Equal(t, "tls: bad certificate", reference.alert)
						reference.alert = "tls: unsupported certificate"
					}
					require.Equal(t, reference, cell.run(t, cell.goClient, cell.ourServer), "our server")
					require.Equal(t, reference, cell.run(t, cell.ourClient, cell.ourServer), "ours with ours")
					if !reference.client && cert.name == "server only" {
						reference.alert = "tls: bad certificate"
					}
					require.Equal(t, reference, cell.run(t, cell.ourClient, cell.goServer), "our client")
				})
			}
		}
	}
}

// The refusals by name, as a table of their own, so that a wrong oracle cannot hide them.
func TestClientAuthRefusals(t *testing.T) {
	untrusted := testcert.New("other root").Issue(testcert.Options{}, "client")
	for _, row := range []struct {
		name       string
		mode       tls.ClientAuthType
		cert       *testcert.Leaf
		at12, at13 s2n.Alert
	}{
		{"none, any required", tls.RequireAnyClientCert, nil, 40, alertCertificateRequired},
		{"none, verified required", tls.RequireAndVerifyClientCert, nil, 40, alertCertificateRequired},
		{"untrusted, if given", tls.VerifyClientCertIfGiven, untrusted, alertUnknownCA, alertUnknownCA},
		{"untrusted, verified required", tls.RequireAndVerifyClientCert, untrusted, alertUnknownCA, alertUnknownCA},
	} {
		t.Run(row.name, func(t *testing.T) {
			for version, want := range map[uint16]s2n.Alert{tls.VersionTLS12: row.at12, tls.VersionTLS13: row.at13} {
				cell := authCell{row.mode, row.cert, version}
				a, b := tcpPair(t)
				client := cell.ourClient(t, a)
				clientErr, serverErr := shake(client, cell.ourServer(t, b))
				var got s2n.Alert
				require.ErrorAs(t, clientErr, &got)
				require.Equal(t, want, got)
				e := new(s2n.Error)
				require.ErrorAs(t, serverErr, &e)
				require.Equal(t, want, e.Alert)
				require.Equal(t, s2n.KindCertificate, e.Kind)
				if row.cert == nil {
					require.Contains(t, e.Message, "the client sent no certificate")
				} else {
					require.ErrorAs(t, serverErr, new(x509.UnknownAuthorityError))
				}
			}
		})
	}
}

// In TLS 1.3 the client is done before the server has judged: the first Read has the alert, and every one after it.
func TestRefusalOnFirstRead(t *testing.T) {
	cell := authCell{tls.RequireAndVerifyClientCert, nil, tls.VersionTLS13}
	for name, makeServer := range map[string]func(testing.TB, net.Conn) tlsConn{"ours": cell.ourServer, "crypto/tls": cell.goServer} {
		t.Run(name, func(t *testing.T) {
			a, b := tcpPair(t)
			server := makeServer(t, b)
			done := make(chan error, 1)
			go func() {
				err := server.Handshake()
				server.Close()
				done <- err
			}()
			client := cell.ourClient(t, a)
			require.NoError(t, client.Handshake())
			require.True(t, client.ConnectionState().HandshakeComplete)
			for range 3 {
				_, err := client.Read(make([]byte, 1))
				var alert s2n.Alert
				require.ErrorAs(t, err, &alert)
				require.Equal(t, alertCertificateRequired, alert)
			}
			require.Error(t, <-done)
			client.Close()
		})
	}
}

// What both sides know of each other after mutual authentication.
func TestClientCertificateOnBothSides(t *testing.T) {
	cell := authCell{tls.RequireAndVerifyClientCert, pki().client, tls.VersionTLS13}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		cell.version = version
		a, b := tcpPair(t)
		client, server := cell.ourClient(t, a).(*s2n.Conn), cell.ourServer(t, b).(*s2n.Conn)
		clientErr, serverErr := handshakeBoth(client, server)
		require.NoError(t, clientErr)
		require.NoError(t, serverErr)
		at := server.ConnectionState()
		require.Equal(t, pki().client.Cert.Raw, at.PeerCertificates[0].Raw)
		require.Len(t, at.VerifiedChains, 1)
		require.Equal(t, pki().ca.Cert.Raw, at.VerifiedChains[0][len(at.VerifiedChains[0])-1].Raw)
		require.Equal(t, tls.ECDSAWithP256AndSHA256, server.State().ClientSignatureScheme)
		require.Equal(t, tls.ECDSAWithP256AndSHA256, client.State().ClientSignatureScheme)
		at = client.ConnectionState()
		require.Equal(t, pki().server.Cert.Raw, at.PeerCertificates[0].Raw)
		require.Len(t, at.VerifiedChains, 1)
	}
}

// A client with a certificate that nobody asks for does not send it.
func TestCertificateNotAskedFor(t *testing.T) {
	cell := authCell{tls.NoClientCert, pki().client, tls.VersionTLS13}
	a, b := tcpPair(t)
	client, server := cell.ourClient(t, a).(*s2n.Conn), cell.ourServer(t, b).(*s2n.Conn)
	clientErr, serverErr := handshakeBoth(client, server)
	require.NoError(t, clientErr)
	require.NoError(t, serverErr)
	require.Empty(t, server.ConnectionState().PeerCertificates)
	require.Zero(t, server.State().ClientSignatureScheme)
	require.Zero(t, client.State().ClientSignatureScheme)
}
