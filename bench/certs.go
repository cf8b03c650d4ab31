package main

import (
	"crypto"
	"os"
	"path/filepath"

	"github.com/s2n-go/s2n/internal/testcert"
)

// certKinds are the keys of the leaves; the authority over each has the same kind.
var certKinds = map[string]func() crypto.Signer{
	"ecdsa-p256": nil, // testcert's own choice
	"rsa-2048":   func() crypto.Signer { return testcert.NewRSAKey(2048) },
}

// writeCerts makes, for each kind, an authority, a server's and a client's chain of
// leaf and authority, as PEM files that all sides read.
func writeCerts(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for kind, newKey := range certKinds {
		var ca *testcert.Authority
		var server, client testcert.Options
		if newKey == nil {
			ca = testcert.New("bench " + kind)
		} else {
			ca = testcert.New("bench "+kind, newKey())
			server.Key, client.Key = newKey(), newKey()
		}
		s, c := ca.Issue(server, "localhost"), ca.Issue(client, "client")
		for name, content := range map[string][]byte{
			"ca-" + kind + ".pem":     ca.PEM,
			"server-" + kind + ".pem": s.CertPEM,
			"server-" + kind + ".key": s.KeyPEM,
			"client-" + kind + ".pem": c.CertPEM,
			"client-" + kind + ".key": c.KeyPEM,
		} {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}
