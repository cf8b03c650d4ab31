package s2n_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
	"github.com/s2n-go/s2n/internal/testcert"
)

// What x509.CertPool finds in a bundle is found here.
func TestAppendCertsFromPEM(t *testing.T) {
	ca, other := pki().ca.PEM, testcert.New("other root").PEM
	for _, row := range []struct {
		name   string
		bundle []byte
		ok     bool
	}{
		{"one", ca, true},
		{"two", concat(other, ca), true},
		{"the same twice", concat(ca, ca), true},
		{"CRLF", replace(ca, "\n", "\r\n"), true},
		{"text around", concat("# roots\n", ca, "\n# end\n"), true},
		{"no final newline", cut(ca, 1), true},
		{"a key beside it", concat(pki().server.KeyPEM, ca), true},
		{"junk certificate before it", concat(encodePEM("CERTIFICATE", []byte("junk")), ca), true},
		{"cut short after it", concat(ca, cut(other, 30)), true},
		{"a leaf", encodePEM("CERTIFICATE", pki().server.Cert.Raw), true},
		{"empty", nil, false},
		{"blank", []byte("\n\n"), false},
		{"junk", []byte("junk"), false},
		{"only a key", pki().server.KeyPEM, false},
		{"only a junk certificate", encodePEM("CERTIFICATE", []byte("junk")), false},
		{"DER", pki().ca.Cert.Raw, false},
		{"headers", replace(ca, "CERTIFICATE-----\n", "CERTIFICATE-----\nComment: x\n\n"), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			reference := x509.NewCertPool()
			require.Equal(t, row.ok, reference.AppendCertsFromPEM(row.bundle))
			pool := s2n.NewCertPool()
			require.Equal(t, row.ok, pool.AppendCertsFromPEM(row.bundle))
			err := (&s2n.Config{RootCAs: pool, ServerName: "x"}).Validate()
			if row.ok {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "RootCAs: the set of trusted roots is empty")
			}
		})
	}
	// A byte order mark hides the first certificate from x509.CertPool; here it does not.
	pool := s2n.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(concat("\xef\xbb\xbf", ca)))
}

// A pool that grows after use: seen by Configs that are new, and by no other.
func TestPoolAddedToLater(t *testing.T) {
	pool := roots(t, testcert.New("other root"))
	before := &s2n.Config{RootCAs: pool, ServerName: "localhost"}
	dial := func(config *s2n.Config) error {
		a, b := tcpPair(t)
		err, _ := shake(s2n.Client(a, config), tls.Server(b, goServerConfig()))
		return err
	}
	require.ErrorAs(t, dial(before), new(x509.UnknownAuthorityError))
	pool.AddCert(pki().ca.Cert)
	pool.AddCert(nil)
	require.ErrorAs(t, dial(before), new(x509.UnknownAuthorityError))
	require.NoError(t, dial(before.Clone()))
}

func TestSystemCertPoolIsACopy(t *testing.T) {
	one, err := s2n.SystemCertPool()
	if err != nil {
		t.Skip("this machine has no system roots: ", err)
	}
	one.AddCert(pki().ca.Cert)
	a, b := tcpPair(t)
	clientErr, _ := shake(s2n.Client(a, &s2n.Config{RootCAs: one, ServerName: "localhost"}), tls.Server(b, goServerConfig()))
	require.NoError(t, clientErr)
	two, err := s2n.SystemCertPool()
	require.NoError(t, err)
	a, b = tcpPair(t)
	clientErr, _ = shake(s2n.Client(a, &s2n.Config{RootCAs: two, ServerName: "localhost"}), tls.Server(b, goServerConfig()))
	require.ErrorAs(t, clientErr, new(x509.UnknownAuthorityError))
}

// dialFromEnvironment dials by both packages with the system's roots, and prints how that went.
func dialFromEnvironment(addr string) {
	say := func(who string, err error) {
		verdict := "trusted"
		if err != nil {
			verdict = err.Error()
		}
		os.Stdout.WriteString(who + ": " + verdict + "\n")
	}
	reference, err := tls.Dial("tcp", addr, &tls.Config{ServerName: "localhost"})
	say("go", err)
	if err == nil {
		reference.Close()
	}
	c, err := s2n.Dial("tcp", addr, &s2n.Config{ServerName: "localhost"})
	say("s2n", err)
	if err == nil {
		c.Close()
	}
}

// SSL_CERT_FILE and SSL_CERT_DIR have the effect that they have on crypto/tls.
func TestSystemRootsFromEnvironment(t *testing.T) {
	dir, empty, junk := t.TempDir(), t.TempDir(), t.TempDir()
	write := func(dir, name string, b []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, b, 0o600))
		return path
	}
	file := write(t.TempDir(), "roots.pem", pki().ca.PEM)
	other := write(t.TempDir(), "other.pem", testcert.New("other root").PEM)
	write(dir, "ca.pem", pki().ca.PEM)
	write(junk, "junk.pem", []byte("junk"))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	require.NoError(t, os.Symlink(filepath.Join(dir, "gone"), filepath.Join(dir, "dangling")))

	addr := oneShot(t, func(c net.Conn) { _ = tls.Server(c, goServerConfig()).Handshake(); c.Close() })
	for _, row := range []struct {
		name, file, dir string
		trusted         bool
		text            string // of our refusal
	}{
		{"file", file, empty, true, ""},
		{"folder", other, dir, true, ""},
		{"folder alone", "", dir, true, ""},
		{"folders", other, empty + ":" + dir, true, ""},
		{"file missing, folder good", file + ".gone", dir, true, ""},
		{"file missing, folder missing", file + ".gone", empty + "/gone", false, "no trusted roots found"},
		{"file of others", other, empty, false, "RootCAs"},
		{"junk", filepath.Join(junk, "junk.pem"), junk, false, "SSL_CERT_FILE"},
		{"file is a folder", dir, empty, false, "no trusted roots found"},
	} {
		t.Run(row.name, func(t *testing.T) {
			out := runChild(t, childDial+"="+addr, "SSL_CERT_FILE="+row.file, "SSL_CERT_DIR="+row.dir)
			require.Equal(t, row.trusted, strings.Contains(out, "go: trusted\n"), out)
			require.Equal(t, row.trusted, strings.Contains(out, "s2n: trusted\n"), out)
			_, ours, _ := strings.Cut(out, "s2n: ")
			require.Contains(t, ours, row.text)
		})
	}
}
