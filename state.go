package s2n

import (
	"crypto"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"

	"github.com/s2n-go/s2n/cshim"
)

// State is what a connection knows beyond tls.ConnectionState. Before the end of
// the handshake only the counts and OfferedShares are set.
type State struct {
	Policy                Policy
	Group                 Group
	SignatureScheme       tls.SignatureScheme // the server's
	ClientSignatureScheme tls.SignatureScheme // 0: no client certificate
	HandshakeType         string              // s2n_connection_get_handshake_type_name
	OfferedShares         []OfferedShare      // a client's, each that it sent: after a HelloRetryRequest, the retry's is last
	TranscriptHashes      []crypto.Hash       // still running over the messages at the end of the handshake
	FIPS                  bool                // module, policy and what was negotiated all within FIPS 140-3
	WireIn, WireOut       uint64              // bytes on the wire
	NativeBytes           int64               // C memory that this connection holds now
}

// State returns what is known now; at any time, from any goroutine, also after Close.
func (c *Conn) State() State {
	var s State
	if info := c.info.Load(); info != nil {
		s = State{
			Policy:                Policy(info.Policy),
			Group:                 Group(info.Group),
			SignatureScheme:       tls.SignatureScheme(info.Scheme),
			ClientSignatureScheme: tls.SignatureScheme(info.ClientScheme),
			HandshakeType:         info.HandshakeType,
			TranscriptHashes:      hashesOf(info.Hashes),
			// The policy's rule covers all that it lets be negotiated, but not the
			// sizes of the peer's keys.
			FIPS: info.FIPS && FIPS().Enabled && approvedKeys(c.peerCerts),
		}
	}
	counts := c.counts()
	s.OfferedShares = offeredShares(counts)
	s.WireIn, s.WireOut, s.NativeBytes = counts.WireIn, counts.WireOut, counts.Native
	return s
}

// approvedKeys reports that SP 800-131A allows every key of a chain: RSA from 2048
// bits. (A FIPS policy has no curve but NIST's.)
func approvedKeys(chain []*x509.Certificate) bool {
	for _, cert := range chain {
		if key, ok := cert.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() < 2048 {
			return false
		}
	}
	return true
}

// counts reads the C object's counters, or those it had at its end.
func (c *Conn) counts() cshim.Counts {
	if shim := c.shimPtr.Load(); shim != nil && shim.Acquire() {
		defer shim.Release()
		return shim.GetCounts()
	}
	if last := c.lastCounts.Load(); last != nil {
		return *last
	}
	return cshim.Counts{}
}

// ConnectionState returns what net/http, gRPC and middleware know how to read; at
// any time, from any goroutine. Before the handshake it is empty but for ServerName:
// http.Server asks then, for Request.TLS. VerifiedChains holds the one chain that
// AWS-LC verified. The certificates are shared with other connections and must not
// be changed. ExportKeyingMaterial cannot work (crypto/tls gives no way to fill it)
// and panics with a nil dereference.
func (c *Conn) ConnectionState() tls.ConnectionState {
	info := c.info.Load()
	if info == nil {
		return tls.ConnectionState{ServerName: c.sni}
	}
	return tls.ConnectionState{
		Version:                    info.Version,
		HandshakeComplete:          true,
		DidResume:                  info.Resumed,
		CipherSuite:                info.Suite,
		CurveID:                    tls.CurveID(info.Group),
		NegotiatedProtocol:         info.Protocol,
		NegotiatedProtocolIsMutual: true,
		ServerName:                 info.ServerName,
		PeerCertificates:           c.peerCerts,
		VerifiedChains:             c.verifiedChains,
		HelloRetryRequest:          info.Retried,
	}
}

// VerifyHostname checks that the peer's certificate is valid for host, as
// tls.Conn.VerifyHostname does; for a client after its handshake.
func (c *Conn) VerifyHostname(host string) error {
	if c.role != roleClient {
		return configError("verify", "VerifyHostname is for clients")
	}
	if c.info.Load() == nil {
		return configError("verify", "the handshake has not been made")
	}
	if len(c.verifiedChains) == 0 {
		return &Error{Op: "verify", Kind: KindCertificate, Message: "the handshake did not verify a certificate chain",
			Err: errors.New("InsecureSkipVerify was set")}
	}
	return c.peerCerts[0].VerifyHostname(host)
}
