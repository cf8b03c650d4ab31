package s2n_test

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
)

// alpnSides makes a client and a server of either package with their protocols.
func alpnSides(t *testing.T, clientProtos, serverProtos []string) (clients, servers map[string]func(net.Conn) tlsConn) {
	ours, theirs := clientConfig(t), goClientConfig()
	ours.NextProtos, theirs.NextProtos = clientProtos, clientProtos
	ourServer, theirServer := serverConfig(t), goServerConfig()
	ourServer.NextProtos, theirServer.NextProtos = serverProtos, serverProtos
	older, olderServer := theirs.Clone(), theirServer.Clone()
	older.MaxVersion, olderServer.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	return map[string]func(net.Conn) tlsConn{
			"ours":   func(c net.Conn) tlsConn { return s2n.Client(c, ours) },
			"go":     func(c net.Conn) tlsConn { return tls.Client(c, theirs) },
			"go 1.2": func(c net.Conn) tlsConn { return tls.Client(c, older) },
		}, map[string]func(net.Conn) tlsConn{
			"ours":   func(c net.Conn) tlsConn { return s2n.Server(c, ourServer) },
			"go":     func(c net.Conn) tlsConn { return tls.Server(c, theirServer) },
			"go 1.2": func(c net.Conn) tlsConn { return tls.Server(c, olderServer) },
		}
}

// Each pair of lists has crypto/tls's outcome, whoever is on either side.
func TestALPN(t *testing.T) {
	long := strings.Repeat("p", 255)
	for _, row := range []struct {
		name           string
		client, server []string
		want           string
		refused        bool
	}{
		{"neither", nil, nil, "", false},
		{"client only", []string{"h2", "http/1.1"}, nil, "", false},
		{"server only", nil, []string{"h2"}, "", false},
		{"one in common", []string{"h2", "http/1.1"}, []string{"http/1.1"}, "http/1.1", false},
		{"the server's order", []string{"pa", "pb", "pc"}, []string{"pc", "pb"}, "pc", false},
		{"the server's order, reversed", []string{"pc", "pb", "pa"}, []string{"pb", "pc"}, "pb", false},
		{"longest name", []string{long}, []string{"px", long}, long, false},
		{"any bytes but NUL", []string{"\x01\xff\x80"}, []string{"\x01\xff\x80"}, "\x01\xff\x80", false},
		{"one a prefix of the other", []string{"h2c"}, []string{"h2"}, "", true},
		{"case matters", []string{"H2"}, []string{"h2"}, "", true},
		{"none in common", []string{"grpc"}, []string{"h2", "http/1.1"}, "", true},
		{"http/1.1 at an h2 server", []string{"http/1.1"}, []string{"h2"}, "", false},
		{"http/1.1 among others at an h2 server", []string{"px", "http/1.1"}, []string{"py", "h2"}, "", false},
		{"h2 at an http/1.1 server", []string{"h2"}, []string{"http/1.1"}, "", true},
		{"http/1.0 at an h2 server", []string{"http/1.0"}, []string{"h2"}, "", true},
		{"many", strings.Split(strings.Repeat("aa,bb,cc,", 80)+"pz", ","), []string{"pz"}, "pz", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			clients, servers := alpnSides(t, row.client, row.server)
			for c, client := range clients {
				for s, server := range servers {
					a, b := tcpPair(t)
					one, other := client(a), server(b)
					clientErr, serverErr := shake(one, other)
					if row.refused {
						require.ErrorContains(t, clientErr, "no application protocol", "%s-%s", c, s)
						require.Error(t, serverErr, "%s-%s", c, s)
						if c == "ours" {
							var alert s2n.Alert
							require.ErrorAs(t, clientErr, &alert)
							require.Equal(t, alertNoApplicationProtocol, alert)
						}
						if s == "ours" {
							e := new(s2n.Error)
							require.ErrorAs(t, serverErr, &e)
							require.Equal(t, alertNoApplicationProtocol, e.Alert)
							require.Equal(t, "S2N_ERR_NO_APPLICATION_PROTOCOL", e.Name)
							require.Contains(t, e.Message, "NextProtos")
						}
						continue
					}
					require.NoError(t, clientErr, "%s-%s", c, s)
					require.NoError(t, serverErr, "%s-%s", c, s)
					require.Equal(t, row.want, one.ConnectionState().NegotiatedProtocol, "%s-%s", c, s)
					require.Equal(t, row.want, other.ConnectionState().NegotiatedProtocol, "%s-%s", c, s)
				}
			}
		})
	}
}
