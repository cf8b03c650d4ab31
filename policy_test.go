package s2n_test

import (
	"crypto/tls"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
)

func TestPolicies(t *testing.T) {
	all := s2n.Policies()
	require.Greater(t, len(all), 150)
	seen := map[s2n.Policy]bool{}
	for _, p := range all {
		require.False(t, seen[p.Name], p.Name)
		seen[p.Name] = true
		require.NotEmpty(t, p.CipherSuites, p.Name)
		require.NotEmpty(t, p.Groups, p.Name)
		require.NotEmpty(t, p.SignatureSchemes, p.Name)
		require.LessOrEqual(t, p.MinVersion, p.MaxVersion, p.Name)
		require.Contains(t, []uint16{tls.VersionTLS12, tls.VersionTLS13}, p.MaxVersion, p.Name)
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(p.CipherSuites))), len(p.CipherSuites), p.Name)
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(p.Groups))), len(p.Groups), p.Name)
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(p.SignatureSchemes))), len(p.SignatureSchemes), p.Name)
		for _, g := range p.Groups {
			require.NotContains(t, g.String(), "Group(", p.Name)
		}
		again, err := p.Name.Info()
		require.NoError(t, err)
		require.Equal(t, p, again)
		hybridsFirst(t, p)
	}
	for _, name := range []s2n.Policy{s2n.DefaultFIPS, s2n.DefaultTLS13, s2n.DefaultPQ, "20251015", "20240503", "20250721", "rfc9151"} {
		require.True(t, seen[name], name)
	}
	require.False(t, seen["null"])
}

func isHybrid(g s2n.Group) bool {
	return slices.Contains([]s2n.Group{s2n.X25519MLKEM768, s2n.SecP256r1MLKEM768, s2n.SecP384r1MLKEM1024, s2n.MLKEM1024}, g)
}

func hybridsFirst(t *testing.T, p s2n.PolicyInfo) {
	t.Helper()
	classical := false
	for _, g := range p.Groups {
		classical = classical || !isHybrid(g)
		require.False(t, classical && isHybrid(g), "%s: %v", p.Name, p.Groups)
	}
}

// A policy with the FIPS rule holds nothing that FIPS 140-3 does not approve.
func TestFIPSPolicies(t *testing.T) {
	count := 0
	for _, p := range s2n.Policies() {
		if !p.FIPS {
			continue
		}
		count++
		require.GreaterOrEqual(t, p.MinVersion, uint16(tls.VersionTLS12), p.Name)
		for _, suite := range p.CipherSuites {
			require.NotContains(t, tls.CipherSuiteName(suite), "CHACHA20", p.Name)
			require.NotContains(t, tls.CipherSuiteName(suite), "3DES", p.Name)
			require.NotContains(t, tls.CipherSuiteName(suite), "RC4", p.Name)
		}
		require.NotContains(t, p.Groups, s2n.X25519, p.Name)
		require.NotContains(t, p.SignatureSchemes, tls.Ed25519, p.Name)
		for _, s := range p.SignatureSchemes {
			require.NotContains(t, []tls.SignatureScheme{tls.PKCS1WithSHA1, tls.ECDSAWithSHA1}, s, p.Name)
		}
	}
	require.Greater(t, count, 15)
}

// The moving aliases, in the pinned s2n.
func TestPolicyAliases(t *testing.T) {
	for alias, dated := range map[s2n.Policy]s2n.Policy{
		"": "20251015", s2n.DefaultFIPS: "20251015", s2n.DefaultTLS13: "20240503", s2n.DefaultPQ: "20250721",
	} {
		a, err := alias.Info()
		require.NoError(t, err)
		d, err := dated.Info()
		require.NoError(t, err)
		d.Name = a.Name
		require.Equal(t, d, a)
	}
	zero, err := s2n.Policy("").Info()
	require.NoError(t, err)
	require.Equal(t, s2n.PolicyInfo{
		Name: s2n.DefaultFIPS, FIPS: true, MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS13,
		CipherSuites: []uint16{
			tls.TLS_AES_128_GCM_SHA256, tls.TLS_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
			tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		},
		Groups: []s2n.Group{s2n.X25519MLKEM768, s2n.SecP256r1MLKEM768, s2n.SecP384r1MLKEM1024, s2n.P256, s2n.P384, s2n.P521},
		SignatureSchemes: []tls.SignatureScheme{
			tls.ECDSAWithP256AndSHA256, tls.ECDSAWithP384AndSHA384, tls.ECDSAWithP521AndSHA512,
			0x0809, 0x080a, 0x080b, // rsa_pss_pss
			tls.PSSWithSHA256, tls.PSSWithSHA384, tls.PSSWithSHA512, tls.PKCS1WithSHA256, tls.PKCS1WithSHA384, tls.PKCS1WithSHA512,
		},
	}, zero)
}

func TestPolicyInfoErrors(t *testing.T) {
	for name, text := range map[s2n.Policy]string{
		"nonesuch": "there is no policy", "Default_FIPS": "there is no policy", "default_fips\x00": "there is no policy",
		"PQ-TLS-1-0-2020-12": "no longer allows", "KMS-PQ-TLS-1-0-2019-06": "no longer allows", "null": "encrypts nothing",
	} {
		info, err := name.Info()
		require.ErrorContains(t, err, text)
		require.ErrorContains(t, err, "s2n.Policies lists")
		require.Zero(t, info)
		e := new(s2n.Error)
		require.ErrorAs(t, err, &e)
		require.Equal(t, s2n.KindConfig, e.Kind)
	}
}

func TestGroupString(t *testing.T) {
	for g, want := range map[s2n.Group]string{
		s2n.P256: "P-256", s2n.P384: "P-384", s2n.P521: "P-521", s2n.X25519: "X25519", s2n.MLKEM1024: "MLKEM1024",
		s2n.SecP256r1MLKEM768: "SecP256r1MLKEM768", s2n.X25519MLKEM768: "X25519MLKEM768", s2n.SecP384r1MLKEM1024: "SecP384r1MLKEM1024",
		0: "Group(0x0000)", 0x1234: "Group(0x1234)",
	} {
		require.Equal(t, want, g.String())
	}
}

// Each group of the default policy, alone on the peer's side: what was negotiated is told.
func TestGroupsOneByOne(t *testing.T) {
	for _, g := range []s2n.Group{s2n.X25519MLKEM768, s2n.SecP256r1MLKEM768, s2n.SecP384r1MLKEM1024, s2n.P256, s2n.P384, s2n.P521} {
		t.Run(g.String(), func(t *testing.T) {
			theirs := goServerConfig()
			theirs.CurvePreferences = []tls.CurveID{tls.CurveID(g)}
			a, b := tcpPair(t)
			client := s2n.Client(a, clientConfig(t))
			clientErr, serverErr := shake(client, tls.Server(b, theirs))
			require.NoError(t, clientErr)
			require.NoError(t, serverErr)
			require.Equal(t, g, client.State().Group)
			require.Equal(t, tls.CurveID(g), client.ConnectionState().CurveID)

			theirs = goClientConfig()
			theirs.CurvePreferences = []tls.CurveID{tls.CurveID(g)}
			a, b = tcpPair(t)
			server := s2n.Server(b, serverConfig(t))
			clientErr, serverErr = shake(tls.Client(a, theirs), server)
			require.NoError(t, clientErr)
			require.NoError(t, serverErr)
			require.Equal(t, g, server.State().Group)
		})
	}
}
