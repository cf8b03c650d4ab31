package s2n_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/s2n-go/s2n"
)

// A service: refuse to run without the FIPS module, listen, serve.
func ExampleListen() {
	if err := s2n.RequireFIPS(); err != nil {
		log.Fatal(err)
	}
	cert, err := s2n.LoadX509KeyPair("cert.pem", "key.pem")
	if err != nil {
		log.Fatal(err)
	}
	l, err := s2n.Listen("tcp", ":8443", &s2n.Config{
		Certificates: []s2n.Certificate{cert},
		NextProtos:   []string{"http/1.1"},
	})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "hello")
	})))
}

// A client tells apart what it can do something about.
func ExampleDial() {
	conn, err := s2n.Dial("tcp", "example.com:443", &s2n.Config{})
	var refused *tls.CertificateVerificationError
	switch {
	case errors.As(err, &refused):
		log.Fatalf("do not talk to this server: %v", refused)
	case err != nil:
		log.Fatal(err)
	}
	defer conn.Close()
	log.Print(conn.State().Group, " within FIPS 140-3: ", conn.State().FIPS)
	fmt.Fprint(conn, "GET / HTTP/1.0\r\nHost: example.com\r\n\r\n")
	if _, err := io.Copy(log.Writer(), conn); err != nil {
		log.Fatal(err) // io.ErrUnexpectedEOF: the stream was cut
	}
}

// A handler of net/http finds what its connection negotiated.
func ExampleConn_ConnectionState() {
	type key struct{}
	server := &http.Server{
		ReadHeaderTimeout: 10 * time.Second, // which bounds the handshake, too
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, key{}, c)
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			state := r.Context().Value(key{}).(*s2n.Conn).ConnectionState()
			fmt.Fprint(w, "hello over ", tls.VersionName(state.Version))
		}),
	}
	l, err := s2n.Listen("tcp", "localhost:0", exampleServerConfig())
	if err != nil {
		log.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	defer server.Close()

	dialer := &s2n.Dialer{Config: exampleClientConfig()}
	client := &http.Client{Transport: &http.Transport{DialTLSContext: dialer.DialContext}}
	answer, err := client.Get("https://" + l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	fmt.Println(string(body), err)
	// Output: hello over TLS 1.3 <nil>
}

func exampleServerConfig() *s2n.Config {
	cert, err := s2n.X509KeyPair(pki().server.CertPEM, pki().server.KeyPEM)
	if err != nil {
		log.Fatal(err)
	}
	return &s2n.Config{Certificates: []s2n.Certificate{cert}}
}

func exampleClientConfig() *s2n.Config {
	roots := s2n.NewCertPool()
	roots.AppendCertsFromPEM(pki().ca.PEM)
	return &s2n.Config{RootCAs: roots, ServerName: "localhost"}
}

func ExampleRequireFIPS() {
	if err := s2n.RequireFIPS(); err != nil {
		log.Fatal(err) // never serve without the module
	}
	fmt.Println(s2n.FIPS().Module)
	// Output: AWS-LC FIPS
}

func ExamplePolicy_Info() {
	info, err := s2n.Policy("20251015").Info() // a dated name never changes
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("FIPS:", info.FIPS)
	fmt.Println(tls.VersionName(info.MinVersion), "to", tls.VersionName(info.MaxVersion))
	for _, group := range info.Groups {
		fmt.Println(group)
	}
	// Output:
	// FIPS: true
	// TLS 1.2 to TLS 1.3
	// X25519MLKEM768
	// SecP256r1MLKEM768
	// SecP384r1MLKEM1024
	// P-256
	// P-384
	// P-521
}
