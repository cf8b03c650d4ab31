package main

import (
	"crypto/tls"
	"fmt"

	"github.com/s2n-go/s2n"
)

// negotiated is what a handshake agreed on.
type negotiated struct {
	Version               string         `json:"version"`
	Suite                 string         `json:"suite"`
	Group                 string         `json:"group"`
	SignatureScheme       string         `json:"signature_scheme"`
	ClientSignatureScheme string         `json:"client_signature_scheme,omitempty"`
	Protocol              string         `json:"protocol,omitempty"` // ALPN
	ServerName            string         `json:"server_name,omitempty"`
	Peer                  string         `json:"peer,omitempty"` // subject of the peer's certificate
	Resumed               bool           `json:"resumed"`
	Policy                string         `json:"policy"`
	FIPS                  bool           `json:"fips"` // module, policy and connection within FIPS 140-3
	Module                s2n.FIPSStatus `json:"module"`
}

func newNegotiated(c *s2n.Conn) *negotiated {
	cs, st := c.ConnectionState(), c.State()
	n := &negotiated{
		Version: tls.VersionName(cs.Version), Suite: suiteName(cs.CipherSuite), Group: groupName(st.Group),
		SignatureScheme: schemeName(st.SignatureScheme), Protocol: cs.NegotiatedProtocol, ServerName: cs.ServerName,
		Resumed: cs.DidResume, Policy: string(st.Policy), FIPS: st.FIPS, Module: s2n.FIPS(),
	}
	if st.ClientSignatureScheme != 0 {
		n.ClientSignatureScheme = schemeName(st.ClientSignatureScheme)
	}
	if len(cs.PeerCertificates) > 0 {
		n.Peer = cs.PeerCertificates[0].Subject.String()
	}
	return n
}

// String is one line.
func (n *negotiated) String() string {
	s := fmt.Sprintf("%s, %s, %s, %s", n.Version, n.Suite, n.Group, n.SignatureScheme)
	if n.ClientSignatureScheme != "" {
		s += fmt.Sprintf(", client %q signed with %s", n.Peer, n.ClientSignatureScheme)
	}
	if n.Protocol != "" {
		s += ", ALPN " + n.Protocol
	}
	return s + fmt.Sprintf("; policy %s, %s", n.Policy, n.inFIPS())
}

func (n *negotiated) inFIPS() string {
	rule := "not within"
	if n.FIPS {
		rule = "within"
	}
	return fmt.Sprintf("%s FIPS 140-3's rules, %s %s", rule, n.Module.Module, n.Module.Version)
}

func groupName(g s2n.Group) string {
	if g == 0 {
		return "none" // RSA key exchange
	}
	return g.String()
}

// suiteName is IANA's. crypto/tls names those that it has, and s2n has more.
func suiteName(id uint16) string {
	if name := moreSuites[id]; name != "" {
		return name
	}
	return tls.CipherSuiteName(id)
}

var moreSuites = map[uint16]string{
	0x0033: "TLS_DHE_RSA_WITH_AES_128_CBC_SHA",
	0x0039: "TLS_DHE_RSA_WITH_AES_256_CBC_SHA",
	0x0016: "TLS_DHE_RSA_WITH_3DES_EDE_CBC_SHA",
	0x003d: "TLS_RSA_WITH_AES_256_CBC_SHA256",
	0x0067: "TLS_DHE_RSA_WITH_AES_128_CBC_SHA256",
	0x006b: "TLS_DHE_RSA_WITH_AES_256_CBC_SHA256",
	0x009e: "TLS_DHE_RSA_WITH_AES_128_GCM_SHA256",
	0x009f: "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384",
	0xc024: "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384",
	0xc028: "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384",
	0xccaa: "TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
	0x0004: "TLS_RSA_WITH_RC4_128_MD5",
	0x0000: "TLS_NULL_WITH_NULL_NULL",
}

// schemeName is IANA's, as other TLS tools print it.
func schemeName(s tls.SignatureScheme) string {
	if name := schemes[s]; name != "" {
		return name
	}
	return s.String()
}

var schemes = map[tls.SignatureScheme]string{
	0x0201: "rsa_pkcs1_sha1", 0x0203: "ecdsa_sha1",
	0x0301: "rsa_pkcs1_sha224", 0x0303: "ecdsa_sha224",
	0x0401: "rsa_pkcs1_sha256", 0x0501: "rsa_pkcs1_sha384", 0x0601: "rsa_pkcs1_sha512",
	0x0403: "ecdsa_secp256r1_sha256", 0x0503: "ecdsa_secp384r1_sha384", 0x0603: "ecdsa_secp521r1_sha512",
	0x0804: "rsa_pss_rsae_sha256", 0x0805: "rsa_pss_rsae_sha384", 0x0806: "rsa_pss_rsae_sha512",
	0x0809: "rsa_pss_pss_sha256", 0x080a: "rsa_pss_pss_sha384", 0x080b: "rsa_pss_pss_sha512",
	0x0904: "mldsa44", 0x0905: "mldsa65", 0x0906: "mldsa87",
	0xffff: "rsa_pkcs1_md5_sha1", // s2n's number for what TLS 1.0 and 1.1 do
}
