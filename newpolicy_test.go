package s2n_test

import (
	"crypto/tls"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
)

func info(t testing.TB, p s2n.Policy) s2n.PolicyInfo {
	t.Helper()
	i, err := p.Info()
	require.NoError(t, err)
	return i
}

const ssl30 = 0x0300

var policyCount atomic.Int64

// newName is a policy's name that no test has used: they live as long as the process.
func newName(kind string) s2n.Policy {
	return s2n.Policy(fmt.Sprintf("test-%s-%d", kind, policyCount.Add(1)))
}

func TestOurPolicies(t *testing.T) {
	dated := info(t, "20251015")
	require.Equal(t, []s2n.Group{s2n.X25519MLKEM768, s2n.SecP256r1MLKEM768, s2n.SecP384r1MLKEM1024, s2n.P256, s2n.P384, s2n.P521}, dated.Groups)

	pq := info(t, s2n.FIPSPQ2026)
	want := dated
	want.Name = s2n.FIPSPQ2026
	assert.Equal(t, want, pq, "all of 20251015; only what is sent first differs")
	assert.True(t, pq.FIPS)

	nist := info(t, s2n.FIPSNIST2026)
	want.Name = s2n.FIPSNIST2026
	want.Groups = []s2n.Group{s2n.SecP256r1MLKEM768, s2n.SecP384r1MLKEM1024, s2n.P256, s2n.P384, s2n.P521}
	assert.Equal(t, want, nist)

	var names []s2n.Policy
	for _, p := range s2n.Policies() {
		names = append(names, p.Name)
	}
	assert.Contains(t, names, s2n.FIPSPQ2026)
	assert.Contains(t, names, s2n.FIPSNIST2026)
	assert.Contains(t, names, s2n.DefaultFIPS)
	for i, name := range names {
		assert.NotContains(t, names[:i], name)
	}

	// s2n refuses some names of its past, and says so.
	_, err := s2n.Policy("PQ-TLS-1-0-2021-05-24").Info()
	assert.ErrorContains(t, err, "no longer allows")
	_, err = s2n.Policy("s2ngo-fips-pq-2027").Info()
	assert.ErrorContains(t, err, "there is no policy")
}

// Both ends under a policy of ours, in both versions of TLS: what was agreed is
// within FIPS, and State says so and names the policy.
func TestOurPoliciesNegotiate(t *testing.T) {
	for _, policy := range []s2n.Policy{s2n.FIPSPQ2026, s2n.FIPSNIST2026} {
		for _, peer := range []string{"ours", "go12"} {
			t.Run(string(policy)+"/"+peer, func(t *testing.T) {
				a, b := memPair()
				clientConfig, serverConfig := clientConfig(t), serverConfig(t)
				clientConfig.Policy, serverConfig.Policy = policy, policy
				require.NoError(t, clientConfig.Validate())
				require.NoError(t, serverConfig.Validate())
				client := s2n.Client(a, clientConfig)
				var server tlsConn = s2n.Server(b, serverConfig)
				if peer == "go12" {
					config := goServerConfig()
					config.MaxVersion = tls.VersionTLS12
					server = tls.Server(b, config)
				}
				clientErr, serverErr := handshakeBoth(client, server)
				require.NoError(t, clientErr)
				require.NoError(t, serverErr)
				state := client.State()
				assert.Equal(t, policy, state.Policy)
				assert.True(t, state.FIPS)
				assert.Nil(t, client.KeyShares())
				if peer == "ours" {
					assert.Equal(t, info(t, policy).Groups[0], state.Group)
					assert.Equal(t, policy, server.(*s2n.Conn).State().Policy)
					assert.True(t, server.(*s2n.Conn).State().FIPS)
				}
				client.Close()
				server.Close()
			})
		}
	}
}

// Each policy that s2n has can be had again under another name, but for those with
// SSL 3.0.
func TestNewPolicyTakesWhatS2NHas(t *testing.T) {
	for _, p := range s2n.Policies() {
		if strings.HasPrefix(string(p.Name), "test-") {
			continue // of other tests
		}
		again := p
		again.Name = newName("again-" + string(p.Name))
		got, err := s2n.NewPolicy(again)
		if p.MinVersion == ssl30 {
			require.ErrorContains(t, err, "MinVersion: SSLv3 is none of", p.Name)
			continue
		}
		require.NoError(t, err, p.Name)
		require.Equal(t, again.Name, got)
		require.Equal(t, again, info(t, got))
	}
}

func TestNewPolicyNamesEachPoint(t *testing.T) {
	const x448, unknown = s2n.Group(30), 0x4a4a
	fips, pq := info(t, s2n.DefaultFIPS), info(t, s2n.DefaultPQ)
	for _, c := range []struct {
		name   string
		from   s2n.PolicyInfo
		change func(*s2n.PolicyInfo)
		want   []string
	}{
		{"name taken", pq, func(p *s2n.PolicyInfo) { p.Name = "default_pq" }, []string{"Name: there is a policy of that name"}},
		{"name taken in another case", pq, func(p *s2n.PolicyInfo) { p.Name = "Default_PQ" }, []string{"Name: there is a policy of that name"}},
		{"ours", pq, func(p *s2n.PolicyInfo) { p.Name = s2n.FIPSPQ2026 }, []string{"Name: there is a policy of that name"}},
		{"of s2n's past", pq, func(p *s2n.PolicyInfo) { p.Name = "PQ-TLS-1-0-2021-05-24" }, []string{"Name: there is a policy of that name"}},
		{"no name", pq, func(p *s2n.PolicyInfo) { p.Name = "" }, []string{"Name: there is none"}},
		{"NUL in the name", pq, func(p *s2n.PolicyInfo) { p.Name = "new\x00" }, []string{"Name: byte 0x00, which is not visible ASCII"}},
		{"long name", pq, func(p *s2n.PolicyInfo) { p.Name = s2n.Policy(strings.Repeat("x", 256)) }, []string{"Name: 256 bytes, where 255 are the most"}},
		{"min above max", pq, func(p *s2n.PolicyInfo) { p.MinVersion, p.MaxVersion = tls.VersionTLS13, tls.VersionTLS12 }, []string{
			"MinVersion is above MaxVersion",
			"CipherSuites: TLS_AES_128_GCM_SHA256 needs TLS 1.3, which is above MaxVersion",
			"CipherSuites: TLS_AES_256_GCM_SHA384 needs TLS 1.3, which is above MaxVersion",
			"CipherSuites: TLS_CHACHA20_POLY1305_SHA256 needs TLS 1.3, which is above MaxVersion",
			"Groups: X25519MLKEM768 needs TLS 1.3, which is above MaxVersion",
			"Groups: SecP256r1MLKEM768 needs TLS 1.3, which is above MaxVersion",
			"Groups: SecP384r1MLKEM1024 needs TLS 1.3, which is above MaxVersion",
		}},
		{"versions", pq, func(p *s2n.PolicyInfo) { p.MinVersion, p.MaxVersion = ssl30, 0x0305 }, []string{
			"MinVersion: SSLv3 is none of TLS 1.0 to TLS 1.3", "MaxVersion: 0x0305 is not TLS 1.2 or TLS 1.3, where s2n's policies end"}},
		{"max below 1.2", info(t, tls12Only), func(p *s2n.PolicyInfo) {
			p.FIPS, p.MinVersion, p.MaxVersion = false, tls.VersionTLS10, tls.VersionTLS11
		}, []string{
			"MaxVersion: TLS 1.1 is not TLS 1.2 or TLS 1.3, where s2n's policies end"}},
		{"all empty", pq, func(p *s2n.PolicyInfo) { p.CipherSuites, p.Groups, p.SignatureSchemes = nil, nil, nil }, []string{
			"CipherSuites is empty", "Groups is empty", "SignatureSchemes is empty"}},
		{"nothing for TLS 1.3", pq, func(p *s2n.PolicyInfo) {
			p.CipherSuites = []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}
			p.SignatureSchemes = []tls.SignatureScheme{tls.PKCS1WithSHA256, tls.ECDSAWithSHA1}
		}, []string{
			"CipherSuites: MaxVersion is TLS 1.3, and none of them works with that",
			"SignatureSchemes: MaxVersion is TLS 1.3, and none of them works with that"}},
		{"unknown", pq, func(p *s2n.PolicyInfo) {
			p.CipherSuites = append(p.CipherSuites, unknown)
			p.Groups = append(p.Groups, x448)
			p.SignatureSchemes = append(p.SignatureSchemes, tls.Ed25519, 0xffff)
		}, []string{
			"CipherSuites: s2n does not know 0x4A4A", "Groups: s2n does not know Group(0x001e)",
			"SignatureSchemes: s2n does not know Ed25519", "SignatureSchemes: s2n does not know SignatureScheme(65535)"}},
		{"duplicates", pq, func(p *s2n.PolicyInfo) {
			p.CipherSuites = append(p.CipherSuites, p.CipherSuites[0])
			p.Groups = append(p.Groups, s2n.P256, s2n.P256, s2n.P384)
			p.SignatureSchemes = append(p.SignatureSchemes, p.SignatureSchemes[1])
		}, []string{
			"CipherSuites: TLS_AES_128_GCM_SHA256 is there more than once", "Groups: P-256 is there more than once",
			"Groups: P-384 is there more than once", "SignatureSchemes: " + pq.SignatureSchemes[1].String() + " is there more than once"}},
		{"more curves than s2n's arrays hold", pq, func(p *s2n.PolicyInfo) {
			p.Groups = nil
			for range 200 {
				p.Groups = append(p.Groups, s2n.P256, s2n.P384, s2n.P521, s2n.X25519, x448)
			}
		}, []string{
			"Groups: 1000 of them, of which the first 64 were looked at", "Groups: P-256 is there more than once",
			"Groups: P-384 is there more than once", "Groups: P-521 is there more than once", "Groups: X25519 is there more than once",
			"Groups: s2n does not know Group(0x001e)", "Groups: Group(0x001e) is there more than once"}},
		{"order", pq, func(p *s2n.PolicyInfo) {
			p.Groups = []s2n.Group{s2n.P256, s2n.X25519MLKEM768, s2n.P384, s2n.SecP256r1MLKEM768}
		}, []string{
			"Groups: X25519MLKEM768 has ML-KEM and s2n prefers it to any group without, so it must stand before those",
			"Groups: SecP256r1MLKEM768 has ML-KEM and s2n prefers it to any group without, so it must stand before those"}},
		{"hybrids alone with TLS 1.2", pq, func(p *s2n.PolicyInfo) { p.Groups = []s2n.Group{s2n.X25519MLKEM768} }, []string{
			"Groups: MinVersion is below TLS 1.3, which needs a group without ML-KEM"}},
		{"FIPS", fips, func(p *s2n.PolicyInfo) {
			p.MinVersion = tls.VersionTLS10
			p.CipherSuites = append(p.CipherSuites, tls.TLS_CHACHA20_POLY1305_SHA256)
			p.Groups = append(p.Groups, s2n.X25519)
			p.SignatureSchemes = append(p.SignatureSchemes, tls.PKCS1WithSHA1)
		}, []string{
			"MinVersion: FIPS is claimed, and s2n's FIPS 140-3 rule does not allow TLS 1.0",
			"CipherSuites: FIPS is claimed, and s2n's FIPS 140-3 rule does not allow TLS_CHACHA20_POLY1305_SHA256",
			"Groups: FIPS is claimed, and s2n's FIPS 140-3 rule does not allow X25519",
			"SignatureSchemes: FIPS is claimed, and s2n's FIPS 140-3 rule does not allow PKCS1WithSHA1"}},
		{"FIPS and a bad name", fips, func(p *s2n.PolicyInfo) { p.Name, p.Groups = "a b", []s2n.Group{s2n.X25519} }, []string{
			"Name: byte 0x20, which is not visible ASCII", "Groups: FIPS is claimed, and s2n's FIPS 140-3 rule does not allow X25519"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := c.from
			p.Name = "test-refused"
			p.CipherSuites = append([]uint16(nil), p.CipherSuites...)
			p.Groups = append([]s2n.Group(nil), p.Groups...)
			p.SignatureSchemes = append([]tls.SignatureScheme(nil), p.SignatureSchemes...)
			c.change(&p)
			got, err := s2n.NewPolicy(p)
			require.Empty(t, got)
			var e *s2n.Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, s2n.KindConfig, e.Kind)
			_, points, ok := strings.Cut(e.Message, " is refused: ")
			require.True(t, ok, e.Message)
			assert.ElementsMatch(t, c.want, strings.Split(points, "; "))
			assert.NotContains(t, err.Error(), "\n")
		})
	}
	_, err := s2n.Policy("test-refused").Info()
	require.Error(t, err, "a policy that was refused does not exist")
}

// A policy's lists are its own: the caller may reuse what it gave.
func TestNewPolicyCopies(t *testing.T) {
	p := info(t, s2n.DefaultPQ)
	p.Name = newName("copies")
	p.Groups = []s2n.Group{s2n.SecP384r1MLKEM1024, s2n.P384}
	want := fmt.Sprint(p)
	_, err := s2n.NewPolicy(p)
	require.NoError(t, err)
	clear(p.Groups)
	clear(p.CipherSuites)
	clear(p.SignatureSchemes)
	require.Equal(t, want, fmt.Sprint(info(t, p.Name)))
}

// Many goroutines register, list and use policies at once; of one name one wins.
func TestNewPolicyAtOnce(t *testing.T) {
	base := info(t, s2n.DefaultPQ)
	var wg sync.WaitGroup
	var won atomic.Int64
	shared := newName("at-once")
	for range 8 {
		wg.Go(func() {
			for k := range 10 {
				p := base
				p.Name = newName("at-once")
				if _, err := s2n.NewPolicy(p); err != nil {
					t.Error(err)
				}
				if got, err := p.Name.Info(); err != nil || len(got.Groups) != len(p.Groups) {
					t.Error(got, err)
				}
				p.Name = s2n.Policy(fmt.Sprintf("%s-%d", shared, k))
				if _, err := s2n.NewPolicy(p); err == nil {
					won.Add(1)
				}
				config := clientConfig(t)
				config.Policy = p.Name
				if err := config.Validate(); err != nil {
					t.Error(err)
				}
			}
			s2n.Policies()
		})
	}
	wg.Wait()
	require.EqualValues(t, 10, won.Load())
}

// What a policy of one's own allows is negotiated, and what it does not is not.
func TestNewPolicyNegotiates(t *testing.T) {
	p := info(t, s2n.DefaultFIPS)
	p.Name = newName("strict")
	p.MinVersion = tls.VersionTLS13
	p.CipherSuites = []uint16{tls.TLS_AES_256_GCM_SHA384}
	p.Groups = []s2n.Group{s2n.SecP384r1MLKEM1024, s2n.P384}
	p.SignatureSchemes = []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256}
	strict, err := s2n.NewPolicy(p)
	require.NoError(t, err)

	connect := func(clientPolicy, serverPolicy s2n.Policy) (*s2n.Conn, error, error) {
		a, b := memPair()
		cc, sc := clientConfig(t), serverConfig(t)
		cc.Policy, sc.Policy = clientPolicy, serverPolicy
		client, server := s2n.Client(a, cc), s2n.Server(b, sc)
		t.Cleanup(func() { client.Close(); server.Close() })
		clientErr, serverErr := handshakeBoth(client, server)
		return client, clientErr, serverErr
	}
	for _, other := range []s2n.Policy{strict, s2n.DefaultPQ, s2n.DefaultFIPS} {
		client, clientErr, serverErr := connect(strict, other)
		require.NoError(t, clientErr)
		require.NoError(t, serverErr)
		state := client.State()
		require.Equal(t, strict, state.Policy)
		require.Equal(t, s2n.SecP384r1MLKEM1024, state.Group)
		require.Equal(t, tls.ECDSAWithP256AndSHA256, state.SignatureScheme)
		require.True(t, state.FIPS)
		require.Equal(t, tls.TLS_AES_256_GCM_SHA384, client.ConnectionState().CipherSuite)
		_, clientErr, serverErr = connect(other, strict)
		require.NoError(t, clientErr)
		require.NoError(t, serverErr)
	}
	_, clientErr, serverErr := connect(strict, tls12Only)
	require.Error(t, clientErr)
	require.Error(t, serverErr)
}

func ExampleNewPolicy() {
	info, err := s2n.DefaultFIPS.Info()
	if err != nil {
		fmt.Println(err)
		return
	}
	info.Name = "ours-2026"
	info.Groups = append(info.Groups, s2n.X25519)
	_, err = s2n.NewPolicy(info)
	fmt.Println(err)
	// Output:
	// s2n: policy: "ours-2026" is refused: Groups: FIPS is claimed, and s2n's FIPS 140-3 rule does not allow X25519
}
