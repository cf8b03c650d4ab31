package s2n

import (
	"bytes"
	"crypto/x509"
	"runtime"
	"sync"
	"weak"
)

// parsedCerts are certificates of peers that somebody still uses, by their DER: a
// service meets the same few again and again, and to parse one takes longer than
// anything else that this package does in Go. Entries go with their certificates;
// crypto/tls shares them in the same way.
var parsedCerts sync.Map // string(DER) to weak.Pointer[x509.Certificate]

// parseCertificate is x509.ParseCertificate. What it returns is shared, and must
// not be changed.
func parseCertificate(der []byte) (*x509.Certificate, error) {
	if entry, ok := parsedCerts.Load(string(der)); ok {
		if cert := entry.(weak.Pointer[x509.Certificate]).Value(); cert != nil {
			return cert, nil
		}
	}
	cert, err := x509.ParseCertificate(bytes.Clone(der)) // which it keeps
	if err != nil {
		return nil, err
	}
	key, entry := string(cert.Raw), weak.Make(cert)
	parsedCerts.Store(key, entry)
	runtime.AddCleanup(cert, func(key string) { parsedCerts.CompareAndDelete(key, entry) }, key)
	return cert, nil
}
