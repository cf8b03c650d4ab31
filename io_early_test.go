package s2n_test

import (
	"crypto/tls"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
)

// A peer may send as soon as its handshake is over, and the last step of ours then
// reads the first records, of full size, together with its Finished.
func TestDataRightBehindTheHandshake(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // so that the client is ahead
	const size = 200_000
	for _, name := range []string{"s2n", "crypto/tls"} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			for range 20 {
				a, b := tcpPair(t)
				gc, cc, sc := goClientConfig(), clientConfig(t), serverConfig(t)
				if version == tls.VersionTLS12 {
					gc.MaxVersion, cc.Policy, sc.Policy = version, "20240502", "20240502"
				}
				var client tlsConn = s2n.Client(a, cc)
				if name == "crypto/tls" {
					client = tls.Client(a, gc)
				}
				server := s2n.Server(b, sc)
				wrote := make(chan error, 1)
				go func() {
					err := client.Handshake()
					if err == nil {
						_, err = client.Write(make([]byte, size))
					}
					wrote <- errors.Join(err, client.CloseWrite())
				}()
				n, err := io.Copy(io.Discard, server)
				require.NoError(t, err, "%s, %x", name, version)
				require.EqualValues(t, size, n)
				require.NoError(t, <-wrote)
				require.Equal(t, version, server.ConnectionState().Version)
				_ = client.Close()
				_ = server.Close()
			}
		}
	}
}
