package s2n_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
)

// groupsPolicy is DefaultPQ with these groups.
func groupsPolicy(t testing.TB, groups ...s2n.Group) s2n.Policy {
	t.Helper()
	policyMu.Lock()
	defer policyMu.Unlock()
	name := s2n.Policy("test-groups")
	for _, g := range groups {
		name += s2n.Policy(fmt.Sprintf("-%04x", uint16(g)))
	}
	if _, err := name.Info(); err == nil {
		return name
	}
	info, err := s2n.DefaultPQ.Info()
	require.NoError(t, err)
	info.Name, info.Groups = name, groups
	if !slices.ContainsFunc(groups, func(g s2n.Group) bool { return g < 0x100 }) {
		info.MinVersion = tls.VersionTLS13
	}
	_, err = s2n.NewPolicy(info)
	require.NoError(t, err)
	return name
}

var policyMu sync.Mutex

// hello starts a handshake to read its ClientHello, and gives up.
func hello(t testing.TB, config *s2n.Config) (wireHello, *s2n.Conn) {
	t.Helper()
	a, b := memPair()
	tap := &tapConn{Conn: a}
	client := s2n.Client(tap, config)
	tap.beforeRead = func() { b.Close() }
	require.Error(t, client.Handshake())
	sent := tap.clientHellos(t)
	require.Len(t, sent, 1)
	return sent[0], client
}

// What each mode sends under each kind of policy, read from the ClientHello's bytes.
func TestKeyShareReuse(t *testing.T) {
	const (
		again = true // the hybrid's key
		fresh = false
	)
	type shares = []s2n.OfferedShare
	type modes map[s2n.KeyShareMode]shares
	for _, c := range []struct {
		name   string
		policy s2n.Policy
		want   modes
	}{
		{"default_pq", s2n.DefaultPQ, modes{
			s2n.PolicyShares:   {{s2n.X25519MLKEM768, fresh}, {s2n.X25519, again}},
			s2n.ReuseShare:     {{s2n.X25519MLKEM768, fresh}, {s2n.X25519, again}},
			s2n.SeparateShares: {{s2n.X25519MLKEM768, fresh}, {s2n.P256, fresh}},
			s2n.HybridOnly:     {{s2n.X25519MLKEM768, fresh}},
		}},
		{"default_fips", s2n.DefaultFIPS, modes{ // no X25519 by itself
			s2n.PolicyShares:   {{s2n.X25519MLKEM768, fresh}, {s2n.P256, fresh}},
			s2n.ReuseShare:     {{s2n.X25519MLKEM768, fresh}, {s2n.P256, fresh}},
			s2n.SeparateShares: {{s2n.X25519MLKEM768, fresh}, {s2n.P256, fresh}},
			s2n.HybridOnly:     {{s2n.X25519MLKEM768, fresh}},
		}},
		{"FIPSPQ2026", s2n.FIPSPQ2026, modes{
			s2n.PolicyShares:   {{s2n.X25519MLKEM768, fresh}},
			s2n.ReuseShare:     {{s2n.X25519MLKEM768, fresh}, {s2n.P256, fresh}},
			s2n.SeparateShares: {{s2n.X25519MLKEM768, fresh}, {s2n.P256, fresh}},
			s2n.HybridOnly:     {{s2n.X25519MLKEM768, fresh}},
		}},
		{"FIPSNIST2026", s2n.FIPSNIST2026, modes{
			s2n.PolicyShares:   {{s2n.SecP256r1MLKEM768, fresh}, {s2n.P256, again}},
			s2n.ReuseShare:     {{s2n.SecP256r1MLKEM768, fresh}, {s2n.P256, again}},
			s2n.SeparateShares: {{s2n.SecP256r1MLKEM768, fresh}, {s2n.P256, fresh}},
			s2n.HybridOnly:     {{s2n.SecP256r1MLKEM768, fresh}},
		}},
		{"SecP384r1MLKEM1024", groupsPolicy(t, s2n.SecP384r1MLKEM1024, s2n.P256, s2n.P521, s2n.P384), modes{
			s2n.PolicyShares:   {{s2n.SecP384r1MLKEM1024, fresh}, {s2n.P384, again}},
			s2n.SeparateShares: {{s2n.SecP384r1MLKEM1024, fresh}, {s2n.P256, fresh}},
			s2n.HybridOnly:     {{s2n.SecP384r1MLKEM1024, fresh}},
		}},
		{"curve of the second hybrid only", groupsPolicy(t, s2n.SecP384r1MLKEM1024, s2n.X25519MLKEM768, s2n.P521, s2n.X25519), modes{
			s2n.PolicyShares: {{s2n.SecP384r1MLKEM1024, fresh}, {s2n.P521, fresh}},
			s2n.HybridOnly:   {{s2n.SecP384r1MLKEM1024, fresh}},
		}},
		{"no hybrid", s2n.DefaultTLS13, modes{
			s2n.PolicyShares:   {{s2n.P256, fresh}},
			s2n.ReuseShare:     {{s2n.P256, fresh}},
			s2n.SeparateShares: {{s2n.P256, fresh}},
		}},
		{"ML-KEM and a curve", groupsPolicy(t, s2n.MLKEM1024, s2n.P384), modes{
			s2n.PolicyShares:   {{s2n.MLKEM1024, fresh}, {s2n.P384, fresh}},
			s2n.ReuseShare:     {{s2n.MLKEM1024, fresh}, {s2n.P384, fresh}},
			s2n.SeparateShares: {{s2n.MLKEM1024, fresh}, {s2n.P384, fresh}},
		}},
		{"ML-KEM alone", groupsPolicy(t, s2n.MLKEM1024), modes{
			s2n.PolicyShares:   {{s2n.MLKEM1024, fresh}},
			s2n.ReuseShare:     {{s2n.MLKEM1024, fresh}},
			s2n.SeparateShares: {{s2n.MLKEM1024, fresh}},
		}},
		{"hybrid alone", groupsPolicy(t, s2n.X25519MLKEM768), modes{
			s2n.PolicyShares:   {{s2n.X25519MLKEM768, fresh}},
			s2n.SeparateShares: {{s2n.X25519MLKEM768, fresh}},
			s2n.HybridOnly:     {{s2n.X25519MLKEM768, fresh}},
		}},
	} {
		info, err := c.policy.Info()
		require.NoError(t, err)
		for mode, want := range c.want {
			t.Run(fmt.Sprintf("%s/%d", c.name, mode), func(t *testing.T) {
				config := clientConfig(t)
				config.Policy, config.KeyShareMode = c.policy, mode
				sent, conn := hello(t, config)
				assert.Equal(t, want, conn.State().OfferedShares)
				assert.Equal(t, info.Groups, sent.groups, "supported_groups do not depend on the mode")
				require.Len(t, sent.shares, len(want))
				for i, s := range sent.shares {
					assert.Equal(t, want[i].Group, s.group)
					assert.Len(t, s.key, shareSize[s.group])
				}
				if len(want) == 2 {
					first, second := sent.shares[0], sent.shares[1]
					if _, hybrid := hybridLayout[first.group]; hybrid && want[1].Reused {
						assert.Equal(t, first.curveKey(), second.key, "the hybrid's classical key, again")
					} else {
						assert.NotContains(t, string(first.key), string(second.key))
						assert.Equal(t, info.Groups[slices.IndexFunc(info.Groups, func(g s2n.Group) bool { return g < 0x100 })], second.group,
							"the policy's first curve")
					}
				}
				// Nothing is kept from one connection to the next.
				later, _ := hello(t, config)
				for i := range later.shares {
					assert.NotEqual(t, sent.shares[i].key, later.shares[i].key)
				}
			})
		}
	}
}

func TestHybridOnlyNeedsAHybrid(t *testing.T) {
	for _, policy := range []s2n.Policy{s2n.DefaultTLS13, tls12Only, groupsPolicy(t, s2n.MLKEM1024, s2n.P384), groupsPolicy(t, s2n.MLKEM1024)} {
		config := clientConfig(t)
		config.Policy, config.KeyShareMode = policy, s2n.HybridOnly
		err := config.Validate()
		var e *s2n.Error
		require.ErrorAs(t, err, &e, policy)
		require.Equal(t, s2n.KindConfig, e.Kind)
		require.ErrorContains(t, err, "KeyShareMode")
		require.Error(t, s2n.Client(nil, config).Handshake())
	}
	config := clientConfig(t)
	config.KeyShareMode = 200
	require.ErrorContains(t, config.Validate(), "KeyShareMode")
	config.KeyShareMode = s2n.HybridOnly
	require.NoError(t, config.Validate())
	require.Equal(t, s2n.HybridOnly, config.Clone().KeyShareMode)
}

// pick is a server that has one group only.
type pick struct {
	peer  string // "go" or "ours"
	group s2n.Group
}

func (p pick) server(t testing.TB, conn net.Conn) tlsConn {
	t.Helper()
	if p.peer == "go" {
		config := goServerConfig()
		config.CurvePreferences = []tls.CurveID{tls.CurveID(p.group)}
		return tls.Server(conn, config)
	}
	config := serverConfig(t)
	config.Policy = groupsPolicy(t, p.group)
	config.Blinding = s2n.BlindingOff
	return s2n.Server(conn, config)
}

var sharePolicies = []struct {
	name   string
	policy s2n.Policy
	mode   s2n.KeyShareMode
}{
	{"X25519MLKEM768 reused", s2n.DefaultPQ, s2n.ReuseShare},
	{"X25519MLKEM768 separate", s2n.DefaultPQ, s2n.SeparateShares},
	{"X25519MLKEM768 only", s2n.DefaultPQ, s2n.HybridOnly},
	{"FIPSPQ2026", s2n.FIPSPQ2026, s2n.PolicyShares},
	{"SecP256r1MLKEM768 reused", s2n.FIPSNIST2026, s2n.ReuseShare},
	{"SecP256r1MLKEM768 separate", s2n.FIPSNIST2026, s2n.SeparateShares},
	{"SecP256r1MLKEM768 only", s2n.FIPSNIST2026, s2n.HybridOnly},
	{"SecP384r1MLKEM1024 reused", "test-groups-11ed-11ec-11eb-0017-001d-0018", s2n.ReuseShare},
	{"SecP384r1MLKEM1024 only", "test-groups-11ed-11ec-11eb-0017-001d-0018", s2n.HybridOnly},
	{"MLKEM1024", "test-groups-0202-11ec-0018-001d", s2n.ReuseShare},
}

// Each mode of each hybrid against a server that takes one group, whichever: it is
// agreed on, at once where a share of it was sent, else after one HelloRetryRequest
// that is answered with a new key of that group alone.
func TestServerPicksAnyGroup(t *testing.T) {
	groupsPolicy(t, s2n.SecP384r1MLKEM1024, s2n.X25519MLKEM768, s2n.SecP256r1MLKEM768, s2n.P256, s2n.X25519, s2n.P384)
	groupsPolicy(t, s2n.MLKEM1024, s2n.X25519MLKEM768, s2n.P384, s2n.X25519)
	for _, c := range sharePolicies {
		info, err := c.policy.Info()
		require.NoError(t, err)
		for _, group := range info.Groups {
			for _, peer := range []string{"go", "ours"} {
				if peer == "go" && group == s2n.MLKEM1024 {
					continue // crypto/tls has no ML-KEM without a curve
				}
				t.Run(fmt.Sprintf("%s/%s/%s", c.name, group, peer), func(t *testing.T) {
					config := clientConfig(t)
					config.Policy, config.KeyShareMode = c.policy, c.mode
					config.Blinding = s2n.BlindingOff
					handshakeWith(t, config, pick{peer, group})
				})
			}
		}
	}
}

func handshakeWith(t *testing.T, config *s2n.Config, p pick) {
	a, b := memPair()
	tap := &tapConn{Conn: a}
	client, server := s2n.Client(tap, config), p.server(t, b)
	require.Nil(t, client.KeyShares(), "before the ClientHello")
	var during []s2n.KeyShare
	tap.beforeRead = func() {
		if client.ConnectionState().HandshakeComplete {
			return
		}
		sent := tap.clientHellos(t)
		during = client.KeyShares()
		requireShares(t, sent[len(sent)-1], during)
	}
	clientErr, serverErr := handshakeBoth(client, server)
	require.NoError(t, clientErr)
	require.NoError(t, serverErr)
	t.Cleanup(func() { client.Close(); server.Close() })

	sent := tap.clientHellos(t)
	offered := slices.ContainsFunc(sent[0].shares, func(s wireShare) bool { return s.group == p.group })
	state := client.State()
	require.Equal(t, p.group, state.Group)
	require.Equal(t, tls.CurveID(p.group), client.ConnectionState().CurveID)
	require.Equal(t, tls.CurveID(p.group), server.ConnectionState().CurveID)
	require.Equal(t, !offered, client.ConnectionState().HelloRetryRequest)
	var groups []s2n.Group
	for _, h := range sent {
		for _, s := range h.shares {
			groups = append(groups, s.group)
		}
	}
	var told []s2n.Group
	for _, s := range state.OfferedShares {
		told = append(told, s.Group)
	}
	require.Equal(t, groups, told)
	if offered {
		require.Len(t, sent, 1)
	} else {
		require.Len(t, sent, 2)
		retry := sent[1].shares
		require.Len(t, retry, 1)
		require.Equal(t, p.group, retry[0].group)
		require.Len(t, retry[0].key, shareSize[p.group])
		for _, old := range sent[0].shares {
			requireNothingTwice(t, old, retry[0])
		}
		require.False(t, state.OfferedShares[len(state.OfferedShares)-1].Reused)
	}

	require.NotEmpty(t, during)
	require.Nil(t, client.KeyShares(), "after the handshake")
	if ours, ok := server.(*s2n.Conn); ok {
		require.Nil(t, ours.KeyShares())
		require.Empty(t, ours.State().OfferedShares)
	}
	go echo(server)
	_, err := client.Write([]byte("through"))
	require.NoError(t, err)
	require.Equal(t, "through", readString(t, client, 7))
	require.NoError(t, client.Close())
	require.Equal(t, state.OfferedShares, client.State().OfferedShares, "stays readable after Close")
	require.Nil(t, client.KeyShares())
}

func requireShares(t *testing.T, sent wireHello, got []s2n.KeyShare) {
	require.Len(t, got, len(sent.shares))
	for i, s := range sent.shares {
		require.Equal(t, s.group, got[i].Group)
		require.Equal(t, s.key, got[i].Public)
		reused := i == 1 && bytes.Contains(sent.shares[0].key, s.key)
		require.Equal(t, reused, got[i].Reused)
	}
}

// requireNothingTwice: neither half of a share that was sent is part of a later one.
func requireNothingTwice(t *testing.T, old, later wireShare) {
	t.Helper()
	halves := func(s wireShare) [][]byte {
		if _, hybrid := hybridLayout[s.group]; hybrid {
			return [][]byte{s.kemKey(), s.curveKey()}
		}
		return [][]byte{s.key}
	}
	for _, o := range halves(old) {
		for _, l := range halves(later) {
			require.NotContains(t, string(l), string(o))
			require.NotContains(t, string(o), string(l))
		}
	}
}

// KeyShares may be called at any time, from any goroutine.
func TestKeySharesBesideTheHandshake(t *testing.T) {
	for _, group := range []s2n.Group{s2n.X25519MLKEM768, s2n.P384} {
		config := clientConfig(t)
		config.Policy = s2n.DefaultPQ
		for range 20 {
			a, b := memPair()
			client, server := s2n.Client(a, config), pick{"ours", group}.server(t, b)
			stop := make(chan struct{})
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						for _, s := range client.KeyShares() {
							if len(s.Public) != shareSize[s.Group] {
								t.Errorf("%v with %d bytes", s.Group, len(s.Public))
							}
						}
						client.State()
					}
				})
			}
			clientErr, serverErr := handshakeBoth(client, server)
			client.Close()
			server.Close()
			close(stop)
			wg.Wait()
			require.NoError(t, clientErr)
			require.NoError(t, serverErr)
		}
	}
}
