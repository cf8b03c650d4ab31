// Package s2n gives Go services TLS 1.2 and 1.3 by s2n-tls, with all
// cryptography in AWS-LC's FIPS module, behind the names of crypto/tls.
//
// # A server and a client
//
// [Listen], [Dial], [Server] and [Client] are used like those of crypto/tls, and
// a [Conn] is a net.Conn:
//
//	cert, err := s2n.LoadX509KeyPair("cert.pem", "key.pem")
//	…
//	l, err := s2n.Listen("tcp", ":8443", &s2n.Config{Certificates: []s2n.Certificate{cert}})
//	…
//	http.Serve(l, handler)
//
// # FIPS
//
// The module is linked into the program, statically and alone. Its power-on self
// tests run before main; if one fails the process ends there. [RequireFIPS] in the
// first line of main makes a service refuse to run without it, [FIPS] tells which
// version is linked and what its standing is, and [State] tells of one connection
// whether the module, the policy and all that was negotiated are within FIPS 140-3.
// There is no other implementation to fall back to.
//
// # Policies
//
// What may be negotiated is a named s2n [Policy]; "" is [DefaultFIPS]. [Policies]
// lists them, [Policy.Info] says what one holds.
//
// # Goroutines
//
// A [Config] and a [Certificate] may be shared by any number of goroutines once
// used. A [Conn] takes one Read and one Write at a time (more wait for each
// other) and any other call beside them. No goroutine and no OS thread waits in C:
// a blocked call is parked in Go's network poller.
//
// # Errors
//
// Failures of TLS are an [*Error]: its Kind says what a caller can do about it,
// and errors.As finds in it what crypto/tls would have returned, such as
// *tls.CertificateVerificationError, x509.HostnameError or tls.RecordHeaderError.
// io.EOF is a stream that the peer ended with close_notify, io.ErrUnexpectedEOF
// one that was cut.
package s2n
