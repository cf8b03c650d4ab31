package side

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n/bench/internal/proto"
	"github.com/s2n-go/s2n/internal/testcert"
)

// goSide is crypto/tls with one group, whatever the case asks for.
func goSide(t *testing.T, group tls.CurveID, mutual bool) Side {
	t.Helper()
	ca := testcert.New("root")
	leaf := ca.Issue(testcert.Options{}, ServerName)
	client := &tls.Config{RootCAs: ca.Pool(), ServerName: ServerName, CurvePreferences: []tls.CurveID{group}}
	server := &tls.Config{Certificates: []tls.Certificate{leaf.TLS}, CurvePreferences: client.CurvePreferences}
	if mutual {
		client.Certificates = server.Certificates
		server.ClientCAs, server.ClientAuth = ca.Pool(), tls.RequireAndVerifyClientCert
	}
	return Side{Ends: func(proto.Spec, Files) (Ends, error) {
		return Ends{
			Client: func(c net.Conn) Conn { return tls.Client(c, client) },
			Server: func(c net.Conn) Conn { return tls.Server(c, server) },
		}, nil
	}}
}

func request(kind string, change func(*proto.Spec)) string {
	r := proto.Request{Verb: "run", N: 3, Spec: proto.Spec{
		Kind: kind, Version: tls.VersionTLS13, Group: uint16(tls.CurveP256), Cert: "ecdsa-p256", Transport: "tcp", Size: 1000, Conns: 2,
	}}
	if change != nil {
		change(&r.Spec)
	}
	return r.String()
}

func TestKinds(t *testing.T) {
	s := goSide(t, tls.CurveP256, false)
	for kind := range kinds {
		for _, transport := range []string{"tcp", "mem"} {
			t.Run(kind+"/"+transport, func(t *testing.T) {
				a, err := s.answer(request(kind, func(s *proto.Spec) { s.Transport = transport }), Files{})
				require.NoError(t, err)
				want := int64(3)
				if kind == "parallel" {
					want = 2 // one for each connection
				}
				require.Equal(t, want, a.Result.Ops)
				require.Positive(t, a.Result.WallNS)
				require.EqualValues(t, tls.VersionTLS13, a.Result.Version)
				require.EqualValues(t, tls.CurveP256, a.Result.Group)
				require.EqualValues(t, tls.TLS_AES_128_GCM_SHA256, a.Result.Suite)
				require.EqualValues(t, 0, a.Result.Mutual)
				if kind == "storm" {
					require.GreaterOrEqual(t, a.Result.P99NS, a.Result.P50NS)
				}
			})
		}
	}
	a, err := s.answer(request("bulk", func(s *proto.Spec) { s.Both = true }), Files{})
	require.NoError(t, err)
	require.EqualValues(t, 6000, a.Result.Bytes)
}

// A number for something else than the case's name says would be worse than none.
func TestAnythingElseIsAnError(t *testing.T) {
	for want, change := range map[string]func(*proto.Spec){
		"group CurveP256":         func(s *proto.Spec) { s.Group = uint16(tls.X25519) },
		"TLS 1.3 was negotiated":  func(s *proto.Spec) { s.Version = tls.VersionTLS12 },
		"the peer's key is ecdsa": func(s *proto.Spec) { s.Cert = "rsa-2048" },
		`transport "udp"`:         func(s *proto.Spec) { s.Transport = "udp" },
		"chain was not verified":  func(s *proto.Spec) { s.Mutual = true },
	} {
		_, err := goSide(t, tls.CurveP256, false).answer(request("handshake", change), Files{})
		require.ErrorContains(t, err, want)
	}
	_, err := goSide(t, tls.CurveP256, true).answer(request("handshake", nil), Files{})
	require.ErrorContains(t, err, "the client sent a certificate")
	_, err = goSide(t, tls.CurveP256, true).answer(request("handshake", func(s *proto.Spec) { s.Mutual = true }), Files{})
	require.NoError(t, err)
	_, err = goSide(t, tls.CurveP256, false).answer(request("tea", nil), Files{})
	require.ErrorContains(t, err, "no case")
}

func TestHello(t *testing.T) {
	r := proto.Request{Verb: "hello", N: 1, Spec: proto.Spec{Kind: "handshake", Transport: "mem"}}
	a, err := goSide(t, tls.CurveP256, false).answer(r.String(), Files{})
	require.NoError(t, err)
	require.EqualValues(t, 22, a.Hello[0])
	_, err = Side{Ends: func(proto.Spec, Files) (Ends, error) { return Ends{Plain: true}, nil }}.answer(r.String(), Files{})
	require.Error(t, err)
}

func TestMemPair(t *testing.T) {
	a, b := memPair()
	n, err := a.Write(make([]byte, 100_000)) // nobody reads yet
	require.NoError(t, err)
	require.Equal(t, 100_000, n)
	require.NoError(t, a.Close())
	_, err = a.Write([]byte{1})
	require.ErrorIs(t, err, net.ErrClosed)
	total := 0
	for {
		n, err := b.Read(make([]byte, 999))
		total += n
		if err != nil {
			require.EqualError(t, err, "EOF")
			break
		}
	}
	require.Equal(t, 100_000, total)
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"server-x.pem", "server-x.key", "ca-x.pem"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
	}
	f := NewFiles(dir)
	chain, key, err := f.Chain("server", "x")
	require.NoError(t, err)
	ca, err := f.CA("x")
	require.NoError(t, err)
	require.Equal(t, "server-x.pem server-x.key ca-x.pem", fmt.Sprintf("%s %s %s", chain, key, ca))
	_, _, err = f.Chain("client", "x")
	require.Error(t, err)
}
