package s2n

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/s2n-go/s2n/cshim"
)

// Kind says what the caller of a failed call can do about it.
type Kind uint8

const (
	KindIO          Kind = iota + 1 // the transport failed or a deadline passed: try again on a new connection
	KindClosed                      // closed, here or by the peer
	KindAlert                       // the peer refused, and said why: Error.Alert
	KindProtocol                    // the peer does not speak TLS as it should
	KindCertificate                 // a certificate was not accepted
	KindConfig                      // the Config, or an argument, must be changed
	KindInternal                    // a fault here: of memory, the module or this package
)

var kindNames = [...]string{
	KindIO: "I/O", KindClosed: "closed", KindAlert: "alert", KindProtocol: "protocol",
	KindCertificate: "certificate", KindConfig: "config", KindInternal: "internal",
}

func (k Kind) String() string {
	if k == 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// Alert is a TLS alert, RFC 8446, 6. As an error it is the peer's.
type Alert uint8

// Error names the alert as crypto/tls does, "tls: bad certificate".
func (a Alert) Error() string { return tls.AlertError(a).Error() }

// Error is a failed call of this package. Use errors.As to get it, and errors.Is
// and errors.As to look into what it wraps.
type Error struct {
	Op      string // "handshake", "read", "write", "close", "dial", "config", "certificate"
	Kind    Kind
	Code    int    // s2n's error number, 0 where s2n did not fail
	Name    string // s2n's name for it, "S2N_ERR_CERT_UNTRUSTED"
	Message string // what went wrong, and what to do about it
	Alert   Alert  // the peer's (KindAlert), or the one sent to it; 0 for none
	Err     error
}

// Error is one line; it never holds bytes of a key.
func (e *Error) Error() string {
	s := "s2n: " + e.Op + ": " + e.Message
	if e.Err != nil {
		if e.Message == "" {
			s += e.Err.Error()
		} else {
			s += ": " + e.Err.Error()
		}
	}
	if e.Name != "" {
		s += " (" + e.Name + ")"
	}
	return s
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Timeout reports whether a deadline passed; with Temporary it makes Error a net.Error.
func (e *Error) Timeout() bool {
	var t interface{ Timeout() bool }
	return e.Err != nil && errors.As(e.Err, &t) && t.Timeout()
}

// Temporary is false: a TLS connection that failed stays failed.
func (e *Error) Temporary() bool { return false }

// configError is a mistake in a Config or an argument.
func configError(op, format string, args ...any) *Error {
	return &Error{Op: op, Kind: KindConfig, Message: fmt.Sprintf(format, args...)}
}

// s2nError turns a failed s2n call into an Error.
func s2nError(op string, r cshim.Result) *Error {
	e := &Error{
		Op: op, Kind: kindOf(r.Code), Code: int(r.Code), Name: cshim.ErrorName(r.Code),
		Message: cshim.ErrorMessage(r.Code), Alert: Alert(r.Alert),
	}
	if hint := hints[e.Name]; hint != "" {
		e.Message += "; " + hint
	}
	if r.Crypto != 0 {
		e.Err = errors.New(cshim.CryptoMessage(r.Crypto))
	}
	return e
}

// hints say what to do, where s2n's text only says what is.
var hints = map[string]string{
	"S2N_ERR_CERT_UNTRUSTED":                    "its chain leads to none of the roots in RootCAs (of a server: ClientCAs), or is not allowed to",
	"S2N_ERR_CIPHER_NOT_SUPPORTED":              "the two sides have no cipher suite in common that the server's certificate can serve: compare their policies",
	"S2N_ERR_PROTOCOL_VERSION_UNSUPPORTED":      "the peer offers no version that this policy allows",
	"S2N_ERR_ECDHE_UNSUPPORTED_CURVE":           "the two sides have no group in common",
	"S2N_ERR_SECURITY_POLICY_INCOMPATIBLE_CERT": "the policy allows other kinds or sizes of certificate keys and signatures: see Policy.Info",
	"S2N_ERR_MISSING_CLIENT_CERT":               "the client sent no certificate and ClientAuth requires one",
	"S2N_ERR_NO_APPLICATION_PROTOCOL":           "no protocol of NextProtos is among the client's",
	"S2N_ERR_KEY_MISMATCH":                      "the key is not that of the certificate",
	"S2N_ERR_TOO_MANY_CERTIFICATES":             "a client has one certificate at most",
	"S2N_ERR_INVALID_SECURITY_POLICY":           "s2n.Policies lists those that exist",
	"S2N_ERR_CERT_INTENT_INVALID":               "its key usage does not allow this role",
	"S2N_ERR_CERT_MAX_CHAIN_DEPTH_EXCEEDED":     "more than 7 certificates",
	"S2N_ERR_BAD_MESSAGE":                       "the peer sent what does not belong here",
	"S2N_ERR_DECRYPT":                           "a record was altered on the way, or the peer's keys are others",
}

// kindOf sorts s2n's codes by what a caller can do. Every code has a kind.
func kindOf(code int32) Kind {
	if certificateCodes[cshim.ErrorName(code)] {
		return KindCertificate
	}
	if cshim.ErrorName(code) == "S2N_ERR_PQ_CRYPTO" {
		return KindProtocol // the peer's key or ciphertext; where a key of our own fails its test, the module ends the process
	}
	switch cshim.ErrorType(code) {
	case cshim.TypeIO:
		return KindIO
	case cshim.TypeClosed:
		return KindClosed
	case cshim.TypeAlert:
		return KindAlert
	case cshim.TypeProto:
		return KindProtocol
	case cshim.TypeUsage:
		return KindConfig
	}
	return KindInternal
}

var certificateCodes = map[string]bool{
	"S2N_ERR_CERT_UNTRUSTED": true, "S2N_ERR_CERT_INVALID_HOSTNAME": true, "S2N_ERR_CERT_REVOKED": true,
	"S2N_ERR_CERT_NOT_YET_VALID": true, "S2N_ERR_CERT_EXPIRED": true, "S2N_ERR_CERT_TYPE_UNSUPPORTED": true,
	"S2N_ERR_CERT_INVALID": true, "S2N_ERR_CERT_MAX_CHAIN_DEPTH_EXCEEDED": true, "S2N_ERR_CERT_REJECTED": true,
	"S2N_ERR_CERT_UNHANDLED_CRITICAL_EXTENSION": true, "S2N_ERR_CERT_INTENT_INVALID": true,
	"S2N_ERR_CRL_LOOKUP_FAILED": true, "S2N_ERR_CRL_SIGNATURE": true, "S2N_ERR_CRL_ISSUER": true,
	"S2N_ERR_CRL_UNHANDLED_CRITICAL_EXTENSION": true, "S2N_ERR_CRL_INVALID_THIS_UPDATE": true,
	"S2N_ERR_CRL_INVALID_NEXT_UPDATE": true, "S2N_ERR_CRL_NOT_YET_VALID": true, "S2N_ERR_CRL_EXPIRED": true,
	"S2N_ERR_DECODE_CERTIFICATE": true, "S2N_ERR_MISSING_CLIENT_CERT": true, "S2N_ERR_NO_CERT_FOUND": true,
	"S2N_ERR_SECURITY_POLICY_INCOMPATIBLE_CERT": true,
}

// resultError turns the end of a connection call into an error. The caller has
// dealt with the statuses that ask for more.
func (c *Conn) resultError(op string, r cshim.Result) error {
	switch r.Status {
	case cshim.OK:
		return nil
	case cshim.CloseNotify, cshim.Cut:
		if op == "handshake" { // not a clean end, whatever the peer calls it
			return &Error{Op: op, Kind: KindIO, Err: io.ErrUnexpectedEOF,
				Message: fmt.Sprintf("the peer %v closed the connection without a reason; does it speak TLS?", c.conn.RemoteAddr())}
		}
		if r.Status == cshim.CloseNotify {
			return io.EOF
		}
		return io.ErrUnexpectedEOF
	case cshim.Sys:
		call := "write"
		if r.ReadFailed() {
			call = "read"
		}
		return &Error{Op: op, Kind: KindIO, Err: c.opError(call, os.NewSyscallError(call, syscall.Errno(r.Errno)))}
	case cshim.PeerAlert:
		return &Error{Op: op, Kind: KindAlert, Message: "remote error", Alert: Alert(r.Alert), Err: Alert(r.Alert)}
	case cshim.Flood:
		return &Error{Op: op, Kind: KindProtocol, Alert: Alert(r.Alert),
			Message: "too many records in a row that carry no data (key updates, tickets or empty ones)"}
	case cshim.NotTLS:
		e := &Error{Op: op, Kind: KindProtocol,
			Message: fmt.Sprintf("the peer %v does not speak TLS; is this the right port?", c.conn.RemoteAddr())}
		header := tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake", Conn: c.conn}
		copy(header.RecordHeader[:], c.shim.FirstBytes())
		e.Err = header
		return e
	}
	e := s2nError(op, r)
	if e.Kind == KindCertificate && op == "handshake" {
		e.Err = c.certificateError(r)
	}
	return e
}

// transportError wraps what the transport returned.
func transportError(op string, err error) error {
	kind := KindIO
	if errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		kind = KindClosed
	}
	return &Error{Op: op, Kind: kind, Err: err}
}

// errClosed is what every call gets after Close.
func closedError(op string) error {
	return &Error{Op: op, Kind: KindClosed, Err: net.ErrClosed}
}

// opError is the net.OpError that a *net.TCPConn would have returned.
func (c *Conn) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: c.conn.LocalAddr().Network(), Source: c.conn.LocalAddr(), Addr: c.conn.RemoteAddr(), Err: err}
}

// certificateError is what crypto/tls would have said of the peer's chain.
func (c *Conn) certificateError(r cshim.Result) error {
	sent, _ := c.shim.PeerCerts()
	chain, _ := parseChain(sent)
	if len(chain) == 0 {
		return nil
	}
	leaf := chain[0]
	detail := ""
	if r.X509 != 0 {
		detail = cshim.X509Message(r.X509)
	}
	invalid := func(reason x509.InvalidReason) error {
		return x509.CertificateInvalidError{Cert: leaf, Reason: reason, Detail: detail}
	}
	var cause error
	switch cshim.ErrorName(r.Code) {
	case "S2N_ERR_CERT_EXPIRED", "S2N_ERR_CERT_NOT_YET_VALID":
		cause = outOfDate(chain, detail)
	case "S2N_ERR_CERT_INTENT_INVALID":
		cause = invalid(x509.IncompatibleUsage)
	case "S2N_ERR_CERT_MAX_CHAIN_DEPTH_EXCEEDED":
		cause = invalid(x509.TooManyIntermediates)
	case "S2N_ERR_CERT_UNHANDLED_CRITICAL_EXTENSION":
		cause = x509.UnhandledCriticalExtension{}
	case "S2N_ERR_CERT_UNTRUSTED":
		switch r.X509 {
		case x509PathTooLong:
			cause = invalid(x509.TooManyIntermediates)
		case x509InvalidPurpose:
			cause = invalid(x509.IncompatibleUsage)
		case x509PermittedViolation, x509ExcludedViolation:
			cause = invalid(x509.CANotAuthorizedForThisName)
		default:
			cause = x509.UnknownAuthorityError{Cert: leaf}
		}
	default:
		if detail == "" {
			return nil
		}
		cause = errors.New(detail)
	}
	return &tls.CertificateVerificationError{UnverifiedCertificates: chain, Err: cause}
}

// outOfDate names the certificate and its date, if it is among those that were sent.
func outOfDate(chain []*x509.Certificate, detail string) error {
	now := time.Now()
	for _, c := range chain {
		switch {
		case now.After(c.NotAfter):
			detail = fmt.Sprintf("current time %s is after %s", now.UTC().Format(time.RFC3339), c.NotAfter.UTC().Format(time.RFC3339))
		case now.Before(c.NotBefore):
			detail = fmt.Sprintf("current time %s is before %s", now.UTC().Format(time.RFC3339), c.NotBefore.UTC().Format(time.RFC3339))
		default:
			continue
		}
		return x509.CertificateInvalidError{Cert: c, Reason: x509.Expired, Detail: detail}
	}
	return x509.CertificateInvalidError{Cert: chain[0], Reason: x509.Expired, Detail: detail}
}

// X509_V_ERR_*, of AWS-LC's x509.h.
const (
	x509PathTooLong        = 25
	x509InvalidPurpose     = 26
	x509PermittedViolation = 47
	x509ExcludedViolation  = 48
)
