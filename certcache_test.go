package s2n_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
	"github.com/s2n-go/s2n/internal/testcert"
)

// Connections to the same peer share its parsed certificates. Nothing keeps them
// once the connections are gone.
func TestParsedCertsAreShared(t *testing.T) {
	leaf := pki().ca.Issue(testcert.Options{}, "localhost")
	der := leaf.Cert.Raw
	server := serverConfig(t)
	server.Certificates = []s2n.Certificate{pair(t, leaf)}

	connect := func() *s2n.Conn {
		a, b := tcpPair(t)
		x, y := s2n.Client(a, clientConfig(t)), s2n.Server(b, server)
		clientErr, serverErr := handshakeBoth(x, y)
		require.NoError(t, clientErr)
		require.NoError(t, serverErr)
		require.NoError(t, x.Close())
		_ = y.Close()
		return x
	}
	func() {
		x, y := connect(), connect()
		first, second := x.ConnectionState(), y.ConnectionState()
		require.NotEmpty(t, first.PeerCertificates)
		assert.Equal(t, der, first.PeerCertificates[0].Raw)
		for i, cert := range first.PeerCertificates {
			assert.Same(t, cert, second.PeerCertificates[i])
		}
		assert.Same(t, first.PeerCertificates[0], first.VerifiedChains[0][0])
		assert.True(t, s2n.ParsedCertKept(der))
	}()
	for i := 0; s2n.ParsedCertKept(der); i++ {
		require.Less(t, i, 100, "the certificate is still kept")
		runtime.GC()
		runtime.Gosched()
	}
}
