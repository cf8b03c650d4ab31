package s2n_test

import (
	"crypto/tls"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
	"github.com/s2n-go/s2n/cshim"
)

// What FIPS says is what the linked module says, and claims a certificate for one version only.
func TestFIPSStatus(t *testing.T) {
	status := s2n.FIPS()
	require.True(t, status.Enabled)
	require.Equal(t, "AWS-LC FIPS", status.Module)
	require.Equal(t, "AWS-LC FIPS "+status.Version, cshim.GetModule().Version)
	require.Regexp(t, `^[0-9]+\.[0-9]+\.[0-9]+$`, status.Version)
	require.Equal(t, status.Version == "3.1.0", status.Certificate == "CMVP #5314")
	require.Contains(t, status.Standing, status.Version)
	require.Contains(t, status.Standing, "may not be a tested configuration")

	b, err := json.Marshal(status)
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(b, &fields))
	for _, name := range []string{"enabled", "module", "version", "certificate", "standing"} {
		require.Contains(t, fields, name)
	}
	require.NoError(t, s2n.RequireFIPS())
}

// The standing of each module that can be linked, and of one that nobody knows.
func TestFIPSStanding(t *testing.T) {
	for version, want := range map[string][]string{
		"3.1.0": {"CMVP #5314", "is the one on CMVP certificate #5314"},
		"3.6.0": {"", "has no certificate of its own"},
		"4.2.0": {"", "has no certificate yet"},
		"5.0.0": {"", "nothing is claimed"},
		"31.0":  {"", "nothing is claimed"},
		"":      {"", "nothing is claimed"},
	} {
		certificate, words := s2n.Standing(version)
		require.Equal(t, want[0], certificate, version)
		require.Contains(t, words, want[1], version)
	}
}

func TestSelfTest(t *testing.T) {
	for range 2 {
		require.NoError(t, s2n.SelfTest())
	}
}

func TestVersion(t *testing.T) {
	v := s2n.Version()
	require.Equal(t, "0.3.47", v.S2N)
	require.True(t, strings.HasSuffix(v.AWSLC, s2n.FIPS().Version))
	require.NotEmpty(t, v.Shim)
	require.NotEmpty(t, v.Linked)
}

// A connection says whether it is within FIPS 140-3: by its own policy, whatever the peer's.
func TestStateFIPS(t *testing.T) {
	for policy, want := range map[s2n.Policy]bool{
		"": true, s2n.DefaultFIPS: true, "20251015": true, s2n.DefaultPQ: false, s2n.DefaultTLS13: false, "20240501": false,
	} {
		a, b := tcpPair(t)
		config, peer := clientConfig(t), serverConfig(t)
		config.Policy = policy
		client, server := s2n.Client(a, config), s2n.Server(b, peer)
		require.False(t, client.State().FIPS) // nothing is negotiated yet
		clientErr, serverErr := handshakeBoth(client, server)
		require.NoError(t, clientErr)
		require.NoError(t, serverErr)
		require.Equal(t, want, client.State().FIPS, policy)
		require.True(t, server.State().FIPS)
		if policy == "" {
			policy = s2n.DefaultFIPS
		}
		require.Equal(t, policy, client.State().Policy)
		client.Close()
		require.Equal(t, want, client.State().FIPS) // also after Close
	}
}

// With a FIPS policy nothing but approved algorithms is negotiated, whatever else a peer prefers.
func TestFIPSRefusesOtherAlgorithms(t *testing.T) {
	for name, change := range map[string]func(*tls.Config){
		"ChaCha20 only": func(c *tls.Config) {
			c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256}
		},
		"X25519 only":     func(c *tls.Config) { c.CurvePreferences = []tls.CurveID{tls.X25519} },
		"X25519, TLS 1.2": func(c *tls.Config) { c.CurvePreferences, c.MaxVersion = []tls.CurveID{tls.X25519}, tls.VersionTLS12 },
		"TLS 1.1":         func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 },
		"CBC only": func(c *tls.Config) {
			c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := goClientConfig(), goServerConfig()
			change(client)
			change(server)
			a, b := tcpPair(t)
			peer, err := shake(tls.Client(a, client), s2n.Server(b, serverConfig(t)))
			require.Error(t, err)
			require.ErrorContains(t, peer, "remote error: ")
			t.Logf("our server: %v; the client: %v", err, peer)
			a, b = tcpPair(t)
			err, peer = shake(s2n.Client(a, clientConfig(t)), tls.Server(b, server))
			require.Error(t, err)
			require.Error(t, peer)
			t.Logf("our client: %v", err)
		})
	}
}
