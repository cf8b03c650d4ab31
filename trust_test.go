package s2n_test

import (
	"crypto"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
	"github.com/s2n-go/s2n/internal/testcert"
)

// trustCase is a chain and who trusts it. The peer sends leaf and sent.
type trustCase struct {
	name  string
	leaf  *testcert.Leaf
	sent  []*x509.Certificate
	roots []*x509.Certificate
	alert s2n.Alert // RFC 8446, 6.2; 0: accepted
	// Where AWS-LC and crypto/x509 differ in what they say first; nil: the same error as crypto/tls's.
	differs func(t *testing.T, err error)
}

const (
	alertBadCertificate         = s2n.Alert(42)
	alertUnsupportedCertificate = s2n.Alert(43)
	alertCertificateExpired     = s2n.Alert(45)
	alertUnknownCA              = s2n.Alert(48)
	alertCertificateRequired    = s2n.Alert(116)
	alertNoApplicationProtocol  = s2n.Alert(120)
)

func trustCases() []trustCase {
	ca, other := pki().ca, testcert.New("other root")
	issue := func(from *testcert.Authority, o testcert.Options) *testcert.Leaf { return from.Issue(o, "localhost") }
	change := func(f func(*x509.Certificate)) testcert.Options { return testcert.Options{Change: f} }
	day := 24 * time.Hour
	list := func(c ...*x509.Certificate) []*x509.Certificate { return c }

	middle := ca.Intermediate("intermediate", nil)
	deep := []*testcert.Authority{middle}
	for i := range 4 {
		deep = append(deep, deep[i].Intermediate(fmt.Sprintf("intermediate %d", i), nil))
	}
	certs := func(from []*testcert.Authority) (out []*x509.Certificate) {
		for i := len(from) - 1; i >= 0; i-- {
			out = append(out, from[i].Cert)
		}
		return out
	}
	crossed := testcert.New("crossed")
	crossedByCA := ca.CrossSign(crossed)
	noPath := ca.Intermediate("path 0", func(c *x509.Certificate) { c.MaxPathLenZero = true })
	belowNoPath := noPath.Intermediate("below path 0", nil)
	notCA := ca.Intermediate("not a CA", func(c *x509.Certificate) { c.IsCA = false })
	noSign := ca.Intermediate("may not sign", func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature })
	excluded := ca.Intermediate("excludes", func(c *x509.Certificate) {
		c.PermittedDNSDomainsCritical, c.ExcludedDNSDomains = true, []string{"localhost"}
	})
	permitted := ca.Intermediate("permits another", func(c *x509.Certificate) {
		c.PermittedDNSDomainsCritical, c.PermittedDNSDomains = true, []string{"example.com"}
	})
	permitting := ca.Intermediate("permits", func(c *x509.Certificate) {
		c.PermittedDNSDomainsCritical, c.PermittedDNSDomains = true, []string{"localhost"}
	})
	oldMiddle := ca.Intermediate("expired intermediate", func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	emailMiddle := ca.Intermediate("for e-mail", func(c *x509.Certificate) {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageEmailProtection}
	})
	impostor := testcert.New("test root") // the trusted name, another key
	selfSigned := testcert.SelfSigned("localhost")
	oldRoot := testcert.New("old root")
	oldRoot.Cert = testcert.Resign(oldRoot, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })

	unknownCritical := func(c *x509.Certificate) {
		c.ExtraExtensions = append(c.ExtraExtensions, pkix.Extension{Id: []int{1, 3, 6, 1, 4, 1, 99999, 1}, Critical: true, Value: []byte{5, 0}})
	}
	unknownOptional := func(c *x509.Certificate) {
		c.ExtraExtensions = append(c.ExtraExtensions, pkix.Extension{Id: []int{1, 3, 6, 1, 4, 1, 99999, 1}, Value: []byte{5, 0}})
	}
	email := []x509.ExtKeyUsage{x509.ExtKeyUsageEmailProtection}
	kinds := func(k crypto.Signer) testcert.Options { return testcert.Options{Key: k} }

	return []trustCase{
		{"trusted", issue(ca, testcert.Options{}), nil, list(ca.Cert), 0, nil},
		{"trusted, root sent too", issue(ca, testcert.Options{}), list(ca.Cert), list(ca.Cert), 0, nil},
		{"trusted among others", issue(ca, testcert.Options{}), nil, list(other.Cert, ca.Cert), 0, nil},
		{"P-384 leaf", issue(ca, kinds(testcert.NewKey(elliptic.P384()))), nil, list(ca.Cert), 0, nil},
		{"untrusted issuer", issue(other, testcert.Options{}), nil, list(ca.Cert), alertUnknownCA, nil},
		{"untrusted issuer, its root sent", issue(other, testcert.Options{}), list(other.Cert), list(ca.Cert), alertUnknownCA, nil},
		{"issuer of the same name with another key", issue(impostor, testcert.Options{}), nil, list(ca.Cert), alertUnknownCA, func(t *testing.T, err error) {
			// AWS-LC takes the issuer by its key identifier, Go by its name and then its signature.
			require.ErrorAs(t, err, new(x509.UnknownAuthorityError))
		}},
		{"self-signed, unknown", selfSigned, nil, list(ca.Cert), alertUnknownCA, nil},
		{"self-signed, trusted", selfSigned, nil, list(selfSigned.Cert), 0, nil},
		{"expired", issue(ca, testcert.Options{NotBefore: time.Now().Add(-2 * day), NotAfter: time.Now().Add(-time.Minute)}), nil, list(ca.Cert), alertCertificateExpired, nil},
		{"not yet valid", issue(ca, testcert.Options{NotBefore: time.Now().Add(time.Hour)}), nil, list(ca.Cert), alertCertificateExpired, nil},
		{"for neither role", issue(ca, testcert.Options{Usage: email}), nil, list(ca.Cert), alertUnsupportedCertificate, nil},
		{"no extended key usage", issue(ca, testcert.Options{Usage: []x509.ExtKeyUsage{}}), nil, list(ca.Cert), 0, nil},
		{"intermediate missing", issue(middle, testcert.Options{}), nil, list(ca.Cert), alertUnknownCA, nil},
		{"intermediate sent", issue(middle, testcert.Options{}), list(middle.Cert), list(ca.Cert), 0, nil},
		{"intermediate trusted by itself", issue(middle, testcert.Options{}), nil, list(middle.Cert), 0, nil},
		{"intermediate among the roots", issue(middle, testcert.Options{}), nil, list(ca.Cert, middle.Cert), 0, nil},
		{"leaf trusted by itself", issue(other, testcert.Options{}), nil, nil, 0, nil}, // roots below
		{"intermediate expired", issue(oldMiddle, testcert.Options{}), list(oldMiddle.Cert), list(ca.Cert), alertCertificateExpired, nil},
		{"root expired", issue(oldRoot, testcert.Options{}), nil, list(oldRoot.Cert), alertCertificateExpired, nil},
		{"intermediate for e-mail", issue(emailMiddle, testcert.Options{}), list(emailMiddle.Cert), list(ca.Cert), alertUnsupportedCertificate, nil},
		{"five intermediates", issue(deep[4], testcert.Options{}), certs(deep[:5]), list(ca.Cert), 0, nil},
		{"intermediates out of order", issue(deep[4], testcert.Options{}), reversed(certs(deep[:5])), list(ca.Cert), 0, nil},
		{"stray certificates", issue(middle, testcert.Options{}), list(other.Cert, middle.Cert, selfSigned.Cert), list(ca.Cert), 0, nil},
		{"cross-signed, old root", issue(crossed, testcert.Options{}), list(crossedByCA), list(ca.Cert), 0, nil},
		{"cross-signed, new root", issue(crossed, testcert.Options{}), list(crossedByCA), list(crossed.Cert), 0, nil},
		{"path too long", issue(belowNoPath, testcert.Options{}), list(belowNoPath.Cert, noPath.Cert), list(ca.Cert), alertBadCertificate, nil},
		{"issuer is no CA", issue(notCA, testcert.Options{}), list(notCA.Cert), list(ca.Cert), alertBadCertificate, nil},
		{"issuer may not sign", issue(noSign, testcert.Options{}), list(noSign.Cert), list(ca.Cert), alertUnknownCA, nil},
		{"name excluded", issue(excluded, testcert.Options{}), list(excluded.Cert), list(ca.Cert), alertBadCertificate, nil},
		{"name not permitted", issue(permitted, testcert.Options{}), list(permitted.Cert), list(ca.Cert), alertBadCertificate, nil},
		{"name permitted", issue(permitting, testcert.Options{}), list(permitting.Cert), list(ca.Cert), 0, nil},
		{"unknown critical extension", issue(ca, change(unknownCritical)), nil, list(ca.Cert), alertBadCertificate, nil},
		{"unknown extension", issue(ca, change(unknownOptional)), nil, list(ca.Cert), 0, nil},
		{"CN is an IP address", issue(ca, change(func(c *x509.Certificate) { c.Subject.CommonName = "10.1.2.3" })), nil, list(ca.Cert), 0, nil},
		{"empty subject", issue(ca, change(func(c *x509.Certificate) { c.Subject = pkix.Name{} })), nil, list(ca.Cert), 0, nil},
		{"a URI beside the name", issue(ca, change(func(c *x509.Certificate) {
			c.URIs = []*url.URL{{Scheme: "spiffe", Host: "test", Path: "/x"}}
		})), nil, list(ca.Cert), 0, nil},
		{"leaf is a CA", issue(ca, change(func(c *x509.Certificate) { c.IsCA = true; c.KeyUsage |= x509.KeyUsageCertSign })), nil, list(ca.Cert), 0, nil},
	}
}

func reversed(in []*x509.Certificate) (out []*x509.Certificate) {
	for _, c := range in {
		out = append([]*x509.Certificate{c}, out...)
	}
	return out
}

func (c *trustCase) chain() (out tls.Certificate, pems []byte) {
	out = tls.Certificate{Certificate: [][]byte{c.leaf.Cert.Raw}, PrivateKey: c.leaf.TLS.PrivateKey}
	pems = encodePEM("CERTIFICATE", c.leaf.Cert.Raw)
	for _, s := range c.sent {
		out.Certificate = append(out.Certificate, s.Raw)
		pems = append(pems, encodePEM("CERTIFICATE", s.Raw)...)
	}
	return out, pems
}

func (c *trustCase) pools() (*s2n.CertPool, *x509.CertPool) {
	ours, theirs := s2n.NewCertPool(), x509.NewCertPool()
	trusted := c.roots
	if trusted == nil {
		trusted = []*x509.Certificate{c.leaf.Cert}
	}
	for _, r := range trusted {
		ours.AddCert(r)
		theirs.AddCert(r)
	}
	return ours, theirs
}

// shake runs both sides; a server of TLS 1.3 may refuse when the client is done, so the client reads too.
func shake(client, server tlsConn) (clientErr, serverErr error) {
	done := make(chan error, 1)
	go func() {
		err := server.Handshake()
		if err == nil {
			_, err = server.Write([]byte{1})
		}
		server.Close()
		done <- err
	}()
	clientErr = client.Handshake()
	if clientErr == nil {
		var n int
		if n, clientErr = client.Read(make([]byte, 1)); n == 1 {
			clientErr = nil // crypto/tls may have io.EOF beside it
		}
	}
	client.Close()
	return clientErr, <-done
}

// errorLike fails unless got has the x509 error, and the reason, of reference.
func errorLike(t *testing.T, reference, got error) {
	t.Helper()
	want, have := new(tls.CertificateVerificationError), new(tls.CertificateVerificationError)
	require.ErrorAs(t, reference, &want)
	require.ErrorAs(t, got, &have)
	require.Equal(t, want.UnverifiedCertificates[0].Raw, have.UnverifiedCertificates[0].Raw)
	require.Equal(t, len(want.UnverifiedCertificates), len(have.UnverifiedCertificates))
	switch w := want.Err.(type) {
	case x509.CertificateInvalidError:
		h, ok := have.Err.(x509.CertificateInvalidError)
		require.Truef(t, ok, "crypto/tls: %v; here: %v", reference, got)
		require.Equalf(t, w.Reason, h.Reason, "crypto/tls: %v; here: %v", reference, got)
	default:
		require.IsTypef(t, want.Err, have.Err, "crypto/tls: %v; here: %v", reference, got)
	}
}

// requireAlert fails unless the peer was told by this alert.
func requireAlert(t *testing.T, want s2n.Alert, peer error) {
	t.Helper()
	require.ErrorContains(t, peer, "remote error: "+want.Error())
}

// What our client says to a server's chain, beside what crypto/tls's client says.
func TestClientTrust(t *testing.T) {
	for _, c := range trustCases() {
		t.Run(c.name, func(t *testing.T) {
			ours, theirs := c.pools()
			chain, _ := c.chain()
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				server := &tls.Config{Certificates: []tls.Certificate{chain}, MinVersion: version, MaxVersion: version}
				a, b := tcpPair(t)
				reference, _ := shake(tls.Client(a, &tls.Config{RootCAs: theirs, ServerName: "localhost"}), tls.Server(b, server))
				a, b = tcpPair(t)
				client := s2n.Client(a, &s2n.Config{RootCAs: ours, ServerName: "localhost"})
				err, peer := shake(client, tls.Server(b, server))
				c.judge(t, reference, err, peer)
				if err == nil {
					c.requireChain(t, client.ConnectionState())
				}
			}
		})
	}
}

// The same chains, as clients' to our server.
func TestServerTrust(t *testing.T) {
	for _, c := range trustCases() {
		t.Run(c.name, func(t *testing.T) {
			ours, theirs := c.pools()
			chain, _ := c.chain()
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				peer := goClientConfig()
				peer.MinVersion, peer.MaxVersion = version, version
				peer.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &chain, nil }
				config := goServerConfig()
				config.ClientCAs, config.ClientAuth = theirs, tls.RequireAndVerifyClientCert
				a, b := tcpPair(t)
				_, reference := shake(tls.Client(a, peer), tls.Server(b, config))
				a, b = tcpPair(t)
				server := s2n.Server(b, &s2n.Config{Certificates: []s2n.Certificate{pair(t, pki().server)},
					ClientCAs: ours, ClientAuth: tls.RequireAndVerifyClientCert})
				told, err := shake(tls.Client(a, peer), server)
				c.judge(t, reference, err, told)
				if err == nil {
					c.requireChain(t, server.ConnectionState())
				}
			}
		})
	}
}

func (c *trustCase) judge(t *testing.T, reference, err, peer error) {
	t.Helper()
	require.Equal(t, c.alert == 0, reference == nil, "crypto/tls: %v", reference)
	if c.alert == 0 {
		require.NoError(t, err)
		require.NoError(t, peer)
		return
	}
	require.Error(t, err)
	if c.differs != nil {
		c.differs(t, err)
	} else {
		errorLike(t, reference, err)
	}
	e := new(s2n.Error)
	require.ErrorAs(t, err, &e)
	require.Equal(t, s2n.KindCertificate, e.Kind)
	require.Equal(t, c.alert, e.Alert, err)
	requireAlert(t, c.alert, peer)
}

// requireChain checks that VerifiedChains goes from the leaf to what is trusted, each signed by the next.
func (c *trustCase) requireChain(t *testing.T, state tls.ConnectionState) {
	t.Helper()
	require.Len(t, state.VerifiedChains, 1)
	chain := state.VerifiedChains[0]
	require.Equal(t, c.leaf.Cert.Raw, chain[0].Raw)
	for i := range chain[1:] {
		require.NoError(t, chain[i].CheckSignatureFrom(chain[i+1]))
	}
	last, trusted := chain[len(chain)-1], c.roots
	if trusted == nil {
		trusted = []*x509.Certificate{c.leaf.Cert}
	}
	found := false
	for _, r := range trusted {
		found = found || r.Equal(last)
	}
	require.True(t, found, "the chain ends in %q", last.Subject)
	require.Len(t, state.PeerCertificates, 1+len(c.sent))
}

// A certificate for "any" use and not for TLS is taken by crypto/tls; AWS-LC takes only what names the role.
func TestAnyUsageIsNotEnough(t *testing.T) {
	leaf := pki().ca.Issue(testcert.Options{Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}, "localhost")
	a, b := tcpPair(t)
	err, peer := shake(s2n.Client(a, clientConfig(t)), tls.Server(b, &tls.Config{Certificates: []tls.Certificate{leaf.TLS}}))
	invalid := new(x509.CertificateInvalidError)
	require.ErrorAs(t, err, invalid)
	require.Equal(t, x509.IncompatibleUsage, invalid.Reason)
	requireAlert(t, alertUnsupportedCertificate, peer)
}

// More than 7 certificates are refused with that reason; crypto/tls takes up to 100 of them.
func TestChainTooDeep(t *testing.T) {
	top := pki().ca
	var sent []*x509.Certificate
	for i := range 9 {
		top = top.Intermediate(fmt.Sprintf("deep %d", i), nil)
		sent = append([]*x509.Certificate{top.Cert}, sent...)
	}
	c := trustCase{leaf: top.Issue(testcert.Options{}, "localhost"), sent: sent, roots: []*x509.Certificate{pki().ca.Cert}}
	chain, _ := c.chain()
	a, b := tcpPair(t)
	err, peer := shake(s2n.Client(a, clientConfig(t)), tls.Server(b, &tls.Config{Certificates: []tls.Certificate{chain}}))
	require.ErrorContains(t, err, "S2N_ERR_CERT_MAX_CHAIN_DEPTH_EXCEEDED")
	invalid := new(x509.CertificateInvalidError)
	require.ErrorAs(t, err, invalid)
	require.Equal(t, x509.TooManyIntermediates, invalid.Reason)
	requireAlert(t, alertBadCertificate, peer)
}

// Roots that are given stand alone: what the system trusts is not trusted beside them.
func TestRootsReplaceSystem(t *testing.T) {
	if _, err := s2n.SystemCertPool(); err != nil {
		t.Skip("this machine has no system roots to be replaced: ", err)
	}
	dial := func(roots *s2n.CertPool) error {
		a, b := tcpPair(t)
		err, _ := shake(s2n.Client(a, &s2n.Config{RootCAs: roots, ServerName: "localhost"}), tls.Server(b, goServerConfig()))
		return err
	}
	require.NoError(t, dial(roots(t, pki().ca)))
	require.ErrorAs(t, dial(roots(t, testcert.New("other root"))), new(x509.UnknownAuthorityError))
	// The test root is none of the system's.
	require.ErrorAs(t, dial(nil), new(x509.UnknownAuthorityError))
}

// InsecureSkipVerify takes each of these, and still hands over what was sent.
func TestSkipVerify(t *testing.T) {
	for _, c := range trustCases() {
		t.Run(c.name, func(t *testing.T) {
			chain, _ := c.chain()
			a, b := tcpPair(t)
			client := s2n.Client(a, &s2n.Config{InsecureSkipVerify: true})
			err, peer := shake(client, tls.Server(b, &tls.Config{Certificates: []tls.Certificate{chain}}))
			require.NoError(t, err)
			require.NoError(t, peer)
			state := client.ConnectionState()
			require.Empty(t, state.VerifiedChains)
			require.Len(t, state.PeerCertificates, 1+len(c.sent))
			require.Equal(t, c.leaf.Cert.Raw, state.PeerCertificates[0].Raw)
		})
	}
}
