package s2n_test

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
)

// serverHello is a ServerHello in a record, or with key nil a HelloRetryRequest.
func serverHello(session []byte, group s2n.Group, key []byte) []byte {
	random := sha256.Sum256([]byte("HelloRetryRequest")) // RFC 8446, 4.1.3
	share := binary.BigEndian.AppendUint16(nil, uint16(group))
	if key != nil {
		random[0]++
		share = append(binary.BigEndian.AppendUint16(share, uint16(len(key))), key...)
	}
	extensions := []byte{0, 43, 0, 2, 3, 4, 0, extKeyShare}
	extensions = append(binary.BigEndian.AppendUint16(extensions, uint16(len(share))), share...)
	body := append([]byte{3, 3}, random[:]...)
	body = append(append(body, byte(len(session))), session...)
	body = append(body, 0x13, 0x01, 0)
	body = append(binary.BigEndian.AppendUint16(body, uint16(len(extensions))), extensions...)
	message := append([]byte{helloServer, 0}, binary.BigEndian.AppendUint16(nil, uint16(len(body)))...)
	message = append(message, body...)
	return append([]byte{typeHandshake, 3, 3, byte(len(message) >> 8), byte(len(message))}, message...)
}

// serverKey is what an honest server would send for a group.
func serverKey(t testing.TB, group s2n.Group) []byte {
	curves := map[s2n.Group]ecdh.Curve{s2n.X25519: ecdh.X25519(), s2n.P256: ecdh.P256(), s2n.P384: ecdh.P384()}
	ciphertext := make([]byte, 1088)
	_, _ = rand.Read(ciphertext)
	public := func(c ecdh.Curve) []byte {
		k, err := c.GenerateKey(rand.Reader)
		require.NoError(t, err)
		return k.PublicKey().Bytes()
	}
	switch group {
	case s2n.X25519MLKEM768:
		return append(ciphertext, public(ecdh.X25519())...)
	case s2n.SecP256r1MLKEM768:
		return append(public(ecdh.P256()), ciphertext...)
	}
	return public(curves[group])
}

// What a server may not ask for or choose, above all a group whose key was sent
// already: the handshake ends with the alert that RFC 8446, 4.1.4 and 4.2.8 name.
func TestIllegalChoices(t *testing.T) {
	const (
		retry  = false
		choose = true
	)
	type step struct {
		chooses bool
		group   s2n.Group
	}
	const x448 s2n.Group = 30
	for _, c := range []struct {
		name   string
		policy s2n.Policy
		mode   s2n.KeyShareMode
		steps  []step
		alert  s2n.Alert
	}{
		{"retry for the reused key's group", s2n.DefaultPQ, s2n.ReuseShare, []step{{retry, s2n.X25519}}, 47},
		{"retry for the hybrid that was sent", s2n.DefaultPQ, s2n.ReuseShare, []step{{retry, s2n.X25519MLKEM768}}, 47},
		{"retry for the separate key's group", s2n.DefaultPQ, s2n.SeparateShares, []step{{retry, s2n.P256}}, 47},
		{"retry for the only hybrid", s2n.FIPSPQ2026, s2n.PolicyShares, []step{{retry, s2n.X25519MLKEM768}}, 47},
		{"retry for the reused P-256", s2n.FIPSNIST2026, s2n.ReuseShare, []step{{retry, s2n.P256}}, 47},
		{"retry for a group not offered", s2n.DefaultPQ, s2n.ReuseShare, []step{{retry, x448}}, 47},
		{"retry for a curve that the policy lacks", s2n.FIPSPQ2026, s2n.PolicyShares, []step{{retry, s2n.X25519}}, 47},
		{"second retry", s2n.DefaultPQ, s2n.ReuseShare, []step{{retry, s2n.P384}, {retry, s2n.P256}}, 47}, // s2n has one error for all
		{"old reused key after a retry", s2n.DefaultPQ, s2n.ReuseShare, []step{{retry, s2n.P384}, {choose, s2n.X25519}}, 47},
		{"old hybrid after a retry", s2n.DefaultPQ, s2n.ReuseShare, []step{{retry, s2n.P384}, {choose, s2n.X25519MLKEM768}}, 47},
		{"old reused key after a retry for a hybrid", s2n.DefaultPQ, s2n.ReuseShare, []step{{retry, s2n.SecP256r1MLKEM768}, {choose, s2n.X25519}}, 47},
		{"old hybrid after a retry for a hybrid", s2n.DefaultPQ, s2n.ReuseShare, []step{{retry, s2n.SecP256r1MLKEM768}, {choose, s2n.X25519MLKEM768}}, 47},
		{"the retry's curve without its hybrid", s2n.DefaultPQ, s2n.ReuseShare, []step{{retry, s2n.SecP256r1MLKEM768}, {choose, s2n.P256}}, 47},
		{"choice of a group without a share", s2n.DefaultPQ, s2n.ReuseShare, []step{{choose, s2n.P384}}, 47},
		{"choice of the hybrid's curve by itself", s2n.DefaultPQ, s2n.HybridOnly, []step{{choose, s2n.X25519}}, 47},
		{"choice of P-256 where it was not sent", s2n.FIPSPQ2026, s2n.PolicyShares, []step{{choose, s2n.P256}}, 47},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := memPair()
			config := clientConfig(t)
			config.Policy, config.KeyShareMode = c.policy, c.mode
			client := s2n.Client(a, config)
			done := make(chan error, 1)
			go func() { done <- client.Handshake() }()
			var got []byte
			read := func() {
				buf := make([]byte, 4096)
				n, err := b.Read(buf)
				require.NoError(t, err)
				got = append(got, buf[:n]...)
			}
			for i, s := range c.steps {
				var key []byte
				if s.chooses {
					key = serverKey(t, s.group)
				}
				for len(hellos(t, got, helloClient)) == i {
					read()
				}
				_, err := b.Write(serverHello(hellos(t, got, helloClient)[i].session, s.group, key))
				require.NoError(t, err)
			}
			sent := len(hellos(t, got, helloClient))
			err := <-done
			for !bytes.Contains(got, []byte{typeAlert, 3, 3, 0, 2}) {
				read()
			}
			alert := got[bytes.LastIndex(got, []byte{typeAlert, 3, 3, 0, 2})+5:]
			assert.Equal(t, []byte{2, byte(c.alert)}, alert)
			var e *s2n.Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, s2n.KindProtocol, e.Kind, "%v", err)
			assert.Equal(t, c.alert, e.Alert)
			assert.Len(t, hellos(t, got, helloClient), sent, "no key for what is illegal")
			assert.Nil(t, client.KeyShares())
			client.Close()
		})
	}
}

// flipConn changes a share in the first hello that is written through it.
type flipConn struct {
	net.Conn
	t      testing.TB
	kind   int
	group  s2n.Group
	change func(share []byte)
	done   bool
}

func (c *flipConn) Write(b []byte) (int, error) {
	if !c.done {
		for _, h := range hellos(c.t, b, c.kind) {
			for _, s := range h.shares {
				if s.group == c.group && s.key != nil {
					b = bytes.Clone(b)
					c.change(b[s.at : s.at+len(s.key)])
					c.done = true
				}
			}
		}
	}
	return c.Conn.Write(b)
}

// One bit flipped in either half of a share, a client's or a server's, or an ML-KEM
// key that is none, ends the handshake for both sides, soon, and never as an internal error.
func TestFlippedShares(t *testing.T) {
	groupsPolicy(t, s2n.SecP384r1MLKEM1024, s2n.X25519MLKEM768, s2n.SecP256r1MLKEM768, s2n.P256, s2n.X25519, s2n.P384)
	type flip struct {
		name   string
		kind   int
		group  s2n.Group
		change func([]byte)
	}
	for _, c := range []struct {
		hybrid, curve s2n.Group
		policy        s2n.Policy
	}{
		{s2n.X25519MLKEM768, s2n.X25519, s2n.DefaultPQ},
		{s2n.SecP256r1MLKEM768, s2n.P256, s2n.FIPSNIST2026},
		{s2n.SecP384r1MLKEM1024, s2n.P384, "test-groups-11ed-11ec-11eb-0017-001d-0018"},
	} {
		l := hybridLayout[c.hybrid]
		bit := func(at int) func([]byte) { return func(key []byte) { key[at] ^= 4 } }
		mid := func(key []byte) { key[len(key)/2] ^= 4 }
		none := func(key []byte) { copy(key[700:], []byte{0xff, 0xff, 0xff}) } // two coefficients above the modulus
		flips := map[s2n.Group][]flip{                                         // by what the server picks
			c.hybrid: {
				{"client/kem", helloClient, c.hybrid, bit(700)},
				{"client/no kem", helloClient, c.hybrid, none},
				{"client/curve", helloClient, c.hybrid, bit((l.from + l.to) / 2)},
				{"client/alone", helloClient, c.curve, mid},
				{"server/kem", helloServer, c.hybrid, bit(700)},
				{"server/curve", helloServer, c.hybrid, bit((l.serverFrom + l.serverTo) / 2)},
			},
			c.curve: {
				{"client/alone", helloClient, c.curve, mid},
				{"client/kem", helloClient, c.hybrid, bit(700)},
				{"server/alone", helloServer, c.curve, mid},
			},
			s2n.P521: {{"server/alone", helloServer, s2n.P521, mid}}, // after a HelloRetryRequest
		}
		for picked, list := range flips {
			for _, f := range list {
				for _, peer := range []string{"go", "ours"} {
					if picked == s2n.P521 && c.policy[0] == 't' {
						continue // the policy has no P-521
					}
					t.Run(fmt.Sprintf("%s/picks %s/%s/%s", c.hybrid, picked, f.name, peer), func(t *testing.T) {
						a, b := memPair()
						flipper := &flipConn{t: t, kind: f.kind, group: f.group, change: f.change}
						if f.kind == helloClient {
							flipper.Conn, a = a, flipper
						} else {
							flipper.Conn, b = b, flipper
						}
						config := clientConfig(t)
						config.Policy, config.Blinding = c.policy, s2n.BlindingOff
						client, server := s2n.Client(a, config), pick{peer, picked}.server(t, b)
						var clientErr, serverErr error
						within(t, 10*time.Second, "the handshake", func() { clientErr, serverErr = handshakeBoth(client, server) })
						require.True(t, flipper.done)
						requireRefusal(t, clientErr)
						if peer == "go" {
							require.Error(t, serverErr)
						} else {
							requireRefusal(t, serverErr)
						}
						t.Log(clientErr, "|", serverErr)
						client.Close()
						server.Close()
					})
				}
			}
		}
	}
}

// requireRefusal: the peer's fault, or the peer's alert.
func requireRefusal(t *testing.T, err error) {
	t.Helper()
	var e *s2n.Error
	require.ErrorAs(t, err, &e)
	require.Contains(t, []s2n.Kind{s2n.KindProtocol, s2n.KindAlert}, e.Kind, "%v", err)
	require.Contains(t, []s2n.Alert{20, 47}, e.Alert, "%v", err) // bad_record_mac, illegal_parameter
}
