package s2n_test

import (
	"crypto/tls"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
)

// tls12Only is an s2n policy that ends at TLS 1.2, for connections with both ends ours.
const tls12Only s2n.Policy = "20240502"

// link is one established connection of the I/O tests.
type link struct {
	ours    *s2n.Conn
	peer    tlsConn
	oursRaw net.Conn
	peerRaw net.Conn
	version uint16
	role    string // ours
}

// linkOptions change how an established link is made.
type linkOptions struct {
	change    func(*s2n.Config)
	changeGo  func(*tls.Config)
	transport func(testing.TB) (net.Conn, net.Conn)
	wrapOurs  func(net.Conn) net.Conn
	wrapPeer  func(net.Conn) net.Conn
}

// eachLink runs f over both roles, both versions, and crypto/tls or us at the other end.
func eachLink(t *testing.T, o linkOptions, f func(t *testing.T, l *link)) {
	for _, role := range []string{"client", "server"} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			for _, peer := range []string{"go", "ours"} {
				name := role + "/tls12/" + peer
				if version == tls.VersionTLS13 {
					name = role + "/tls13/" + peer
				}
				t.Run(name, func(t *testing.T) { f(t, newLink(t, o, role, version, peer)) })
			}
		}
	}
}

func newLink(t testing.TB, o linkOptions, role string, version uint16, peer string) *link {
	t.Helper()
	if o.transport == nil {
		o.transport = tcpPair
	}
	a, b := o.transport(t)
	l := &link{oursRaw: a, peerRaw: b, version: version, role: role}
	oursConn, peerConn := a, b
	if o.wrapOurs != nil {
		oursConn = o.wrapOurs(a)
	}
	if o.wrapPeer != nil {
		peerConn = o.wrapPeer(b)
	}
	config := func(role string) *s2n.Config {
		var c *s2n.Config
		if role == "client" {
			c = clientConfig(t)
		} else {
			c = serverConfig(t)
		}
		if version == tls.VersionTLS12 {
			c.Policy = tls12Only
		}
		c.Blinding = s2n.BlindingOff
		if o.change != nil {
			o.change(c)
		}
		return c
	}
	goConfig := func(c *tls.Config) *tls.Config {
		c.MinVersion, c.MaxVersion = version, version
		if o.changeGo != nil {
			o.changeGo(c)
		}
		return c
	}
	switch {
	case role == "client" && peer == "go":
		l.ours, l.peer = s2n.Client(oursConn, config("client")), tls.Server(peerConn, goConfig(goServerConfig()))
	case role == "client":
		l.ours, l.peer = s2n.Client(oursConn, config("client")), s2n.Server(peerConn, config("server"))
	case peer == "go":
		l.ours, l.peer = s2n.Server(oursConn, config("server")), tls.Client(peerConn, goConfig(goClientConfig()))
	default:
		l.ours, l.peer = s2n.Server(oursConn, config("server")), s2n.Client(peerConn, config("client"))
	}
	done := make(chan error, 1)
	go func() { done <- l.peer.Handshake() }()
	require.NoError(t, l.ours.Handshake())
	require.NoError(t, <-done)
	require.Equal(t, version, l.ours.ConnectionState().Version)
	t.Cleanup(func() { l.ours.Close(); l.peer.Close() })
	return l
}
