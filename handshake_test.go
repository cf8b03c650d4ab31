package s2n_test

import (
	"crypto/tls"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
)

// Both roles against crypto/tls and against each other, both versions, over TCP and net.Pipe.
func TestHandshakeAndEcho(t *testing.T) {
	type side func(t *testing.T, c net.Conn, version uint16) tlsConn
	ourClient := func(t *testing.T, c net.Conn, _ uint16) tlsConn { return s2n.Client(c, clientConfig(t)) }
	ourServer := func(t *testing.T, c net.Conn, _ uint16) tlsConn { return s2n.Server(c, serverConfig(t)) }
	goClient := func(_ *testing.T, c net.Conn, v uint16) tlsConn {
		config := goClientConfig()
		config.MinVersion, config.MaxVersion = v, v
		return tls.Client(c, config)
	}
	goServer := func(_ *testing.T, c net.Conn, v uint16) tlsConn {
		config := goServerConfig()
		config.MinVersion, config.MaxVersion = v, v
		return tls.Server(c, config)
	}
	transports := map[string]func(testing.TB) (net.Conn, net.Conn){
		"tcp":  tcpPair,
		"unix": func(t testing.TB) (net.Conn, net.Conn) { return sockPair(t, "unix", t.TempDir()+"/s") },
		"pipe": func(t testing.TB) (net.Conn, net.Conn) { a, b := net.Pipe(); return a, b },
	}
	for transport, connect := range transports {
		for _, c := range []struct {
			name           string
			client, server side
			version        uint16
		}{
			{"ours-ours", ourClient, ourServer, tls.VersionTLS13},
			{"ours-go13", ourClient, goServer, tls.VersionTLS13},
			{"ours-go12", ourClient, goServer, tls.VersionTLS12},
			{"go13-ours", goClient, ourServer, tls.VersionTLS13},
			{"go12-ours", goClient, ourServer, tls.VersionTLS12},
		} {
			t.Run(transport+"/"+c.name, func(t *testing.T) {
				a, b := connect(t)
				client, server := c.client(t, a, c.version), c.server(t, b, c.version)
				clientErr, serverErr := handshakeBoth(client, server)
				require.NoError(t, clientErr)
				require.NoError(t, serverErr)
				require.Equal(t, c.version, client.ConnectionState().Version)
				require.Equal(t, c.version, server.ConnectionState().Version)

				go echo(server)
				message := make([]byte, 300_000)
				for i := range message {
					message[i] = byte(i * 7)
				}
				go func() {
					_, _ = client.Write(message)
					_ = client.CloseWrite()
				}()
				got, err := io.ReadAll(client)
				require.NoError(t, err)
				require.Equal(t, message, got)
				require.NoError(t, client.Close())
			})
		}
	}
}
