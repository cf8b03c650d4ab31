// Command side-gotls is crypto/tls as a side of the comparison: plain, in FIPS mode
// or over BoringCrypto, as it was built and is run. With -raw it is TCP without TLS.
package main

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/fips140"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"net"
	"os"
	"runtime"

	"github.com/s2n-go/s2n/bench/internal/proto"
	"github.com/s2n-go/s2n/bench/internal/side"
)

func main() {
	certs := flag.String("certs", "", "folder with the PEM files")
	raw := flag.Bool("raw", false, "no TLS")
	want := flag.String("want", "plain", "which crypto/tls this must be: plain, fips or boring")
	flag.Parse()
	if *raw {
		side.Main(side.Side{Facts: map[string]string{"library": "none", "go": runtime.Version()}, Ends: rawEnds}, *certs)
		return
	}
	library := "crypto/tls"
	is := "plain"
	if fips140.Enabled() {
		is = "fips"
		library += ",fips140=" + fips140.Version()
	}
	if boring() {
		is = "boring"
		library += ",BoringCrypto"
	}
	if is != *want {
		fmt.Fprintf(os.Stderr, "side-gotls: this is %s and should be %s\n", is, *want)
		os.Exit(1)
	}
	side.Main(side.Side{Facts: map[string]string{"library": library, "go": runtime.Version()}, Ends: ends, AEAD: newAEAD}, *certs)
}

func ends(spec proto.Spec, files side.Files) (side.Ends, error) {
	var none side.Ends
	group := tls.CurveID(spec.Group)
	if group == tls.X25519 && fips140.Enabled() {
		return none, proto.Unsupported("X25519 alone is not approved")
	}
	client, server, err := configs(spec, files)
	if err != nil {
		return none, err
	}
	// X25519MLKEM768 is what the default prefers; to have another group it must be the only one
	// that both ends share.
	if group != tls.X25519MLKEM768 {
		client.CurvePreferences = []tls.CurveID{group}
		if group == tls.SecP256r1MLKEM768 {
			// As crypto/tls does by default with its hybrid: the curve beside it.
			client.CurvePreferences = append(client.CurvePreferences, tls.CurveP256)
		}
		server.CurvePreferences = client.CurvePreferences
	}
	return side.Ends{
		Client: func(c net.Conn) side.Conn { return tls.Client(c, client) },
		Server: func(c net.Conn) side.Conn { return tls.Server(c, server) },
	}, nil
}

func configs(spec proto.Spec, files side.Files) (client, server *tls.Config, err error) {
	client = &tls.Config{ServerName: side.ServerName, SessionTicketsDisabled: true, MaxVersion: spec.Version}
	server = &tls.Config{SessionTicketsDisabled: true, MaxVersion: spec.Version}
	ca, err := files.CA(spec.Cert)
	if err != nil {
		return nil, nil, err
	}
	client.RootCAs = x509.NewCertPool()
	client.RootCAs.AppendCertsFromPEM(ca)
	if server.Certificates, err = pair(files, "server", spec.Cert); err != nil {
		return nil, nil, err
	}
	if spec.Mutual {
		server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, client.RootCAs
		if client.Certificates, err = pair(files, "client", spec.Cert); err != nil {
			return nil, nil, err
		}
	}
	return client, server, nil
}

func pair(files side.Files, who, kind string) ([]tls.Certificate, error) {
	chain, key, err := files.Chain(who, kind)
	if err != nil {
		return nil, err
	}
	c, err := tls.X509KeyPair(chain, key)
	return []tls.Certificate{c}, err
}

func newAEAD(spec proto.Spec) (side.AEAD, error) {
	block, err := aes.NewCipher(make([]byte, spec.Key))
	if err != nil {
		return nil, err
	}
	a, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return side.CipherAEAD(spec, a)
}

// rawConn is TCP as it is. Its handshake is one byte there and one back: what a
// connection costs before TLS has done anything.
type rawConn struct {
	net.Conn
	client, done bool
}

func rawEnds(spec proto.Spec, _ side.Files) (side.Ends, error) {
	if spec.Transport != "tcp" {
		return side.Ends{}, proto.Unsupported("without TLS there is nothing to measure in memory")
	}
	request := spec.Kind == "newconn" // waits for nothing before it
	return side.Ends{
		Plain:  true,
		Client: func(c net.Conn) side.Conn { return &rawConn{Conn: c, client: true, done: request} },
		Server: func(c net.Conn) side.Conn { return &rawConn{Conn: c, done: request} },
	}, nil
}

func (c *rawConn) Handshake() error {
	if c.done {
		return nil
	}
	c.done = true
	var b [1]byte
	if c.client {
		if _, err := c.Conn.Write(b[:]); err != nil {
			return err
		}
		_, err := c.Conn.Read(b[:])
		return err
	}
	if _, err := c.Conn.Read(b[:]); err != nil {
		return err
	}
	_, err := c.Conn.Write(b[:])
	return err
}

func (c *rawConn) Read(p []byte) (int, error) {
	if err := c.Handshake(); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *rawConn) Write(p []byte) (int, error) {
	if err := c.Handshake(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

func (c *rawConn) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

func (c *rawConn) ConnectionState() tls.ConnectionState { return tls.ConnectionState{} }
