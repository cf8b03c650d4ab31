package s2n

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
)

// Alerts that this package sends by itself, RFC 8446, 6.
const (
	alertBadCertificate       Alert = 42
	alertIllegalParameter     Alert = 47
	alertUnsupportedExtension Alert = 110
)

// serverNameToSend returns what SNI says for a name: no dot at the end, and nothing
// for an IP address (RFC 6066, 3). A name with bytes that no host name has is an
// error, since C would cut it at a NUL.
func serverNameToSend(name string) (string, error) {
	for i := 0; i < len(name); i++ {
		if name[i] <= ' ' || name[i] >= 0x7f {
			return "", configError("config", "ServerName %q: byte %#02x is in no host name; an international name is given in its xn-- form", name, name[i])
		}
	}
	if len(name) > 255 {
		return "", configError("config", "ServerName: %d bytes, a host name has 255 at most", len(name))
	}
	host := strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if i := strings.LastIndex(host, "%"); i > 0 {
		host = host[:i] // an IPv6 zone
	}
	if net.ParseIP(host) != nil {
		return "", nil
	}
	return strings.TrimRight(name, "."), nil
}

func parseChain(ders [][]byte) ([]*x509.Certificate, error) {
	chain := make([]*x509.Certificate, 0, len(ders))
	for _, der := range ders {
		c, err := parseCertificate(der)
		if err != nil {
			return chain, err
		}
		chain = append(chain, c)
	}
	return chain, nil
}

// maxPeerRSA bounds what verifying a peer's signature costs; crypto/tls has the same bound.
const maxPeerRSA = 8192

// verifyPeer is the step between AWS-LC's verdict on the peer's chain and the
// handshake's going on: it keeps the certificates, and holds the name of the leaf
// against ServerName. It returns the alert for the peer, 0 to go on.
func (c *Conn) verifyPeer() (Alert, error) {
	sentDER, verifiedDER := c.shim.PeerCerts()
	sent, err := parseChain(sentDER)
	if err == nil && len(sent) == 0 {
		err = errors.New("it could not be read: out of memory")
	}
	if err != nil {
		return alertBadCertificate, &Error{Op: "handshake", Kind: KindCertificate, Alert: alertBadCertificate,
			Message: "the peer's certificate cannot be parsed", Err: err}
	}
	for _, cert := range sent {
		if key, ok := cert.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxPeerRSA {
			return alertBadCertificate, &Error{Op: "handshake", Kind: KindCertificate, Alert: alertBadCertificate,
				Message: fmt.Sprintf("the peer sent a certificate with an RSA key of %d bits; %d are taken at most", key.N.BitLen(), maxPeerRSA)}
		}
	}
	c.peerCerts = sent
	if len(verifiedDER) > 0 {
		chain, err := parseChain(verifiedDER)
		if err != nil {
			return alertBadCertificate, &Error{Op: "handshake", Kind: KindCertificate, Alert: alertBadCertificate,
				Message: "a certificate of the verified chain cannot be parsed", Err: err}
		}
		c.verifiedChains = [][]*x509.Certificate{chain}
	}
	if c.role == roleServer || c.config.InsecureSkipVerify {
		return 0, nil
	}
	if err := sent[0].VerifyHostname(c.name); err != nil {
		return alertBadCertificate, &Error{Op: "handshake", Kind: KindCertificate, Alert: alertBadCertificate,
			Message: "the certificate is for another name",
			Err:     &tls.CertificateVerificationError{UnverifiedCertificates: sent, Err: err}}
	}
	return 0, nil
}
