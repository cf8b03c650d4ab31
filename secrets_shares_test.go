package s2n_test

import (
	"bytes"
	"crypto/ecdh"
	"crypto/sha3"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type share struct {
	group tls.CurveID
	key   []byte
}

// helloShares reads the key_share extension of a ClientHello.
func helloShares(t testing.TB, body []byte) (list []share) {
	t.Helper()
	at := 2 + 32
	at += 1 + int(body[at])
	at += 2 + int(binary.BigEndian.Uint16(body[at:]))
	at += 1 + int(body[at])
	for at += 2; at < len(body); {
		id, size := binary.BigEndian.Uint16(body[at:]), int(binary.BigEndian.Uint16(body[at+2:]))
		ext := body[at+4 : at+4+size]
		at += 4 + size
		if id != 51 {
			continue
		}
		for ext = ext[2:]; len(ext) > 0; {
			n := int(binary.BigEndian.Uint16(ext[2:]))
			list = append(list, share{tls.CurveID(binary.BigEndian.Uint16(ext)), bytes.Clone(ext[4 : 4+n])})
			ext = ext[4+n:]
		}
	}
	require.NotEmpty(t, list, "the ClientHello has no key share")
	return list
}

// parts are the halves of a key share: an ECDH curve with its public key, and the
// encapsulation key of ML-KEM with its rank.
func (s share) parts(t testing.TB) (curve ecdh.Curve, point []byte, kem []byte, rank int) {
	switch s.group {
	case tls.X25519:
		return ecdh.X25519(), s.key, nil, 0
	case tls.CurveP256:
		return ecdh.P256(), s.key, nil, 0
	case tls.CurveP384:
		return ecdh.P384(), s.key, nil, 0
	case tls.X25519MLKEM768:
		return ecdh.X25519(), s.key[1184:], s.key[:1184], 3
	case tls.SecP256r1MLKEM768:
		return ecdh.P256(), s.key[:65], s.key[65:], 3
	case tls.SecP384r1MLKEM1024:
		return ecdh.P384(), s.key[:97], s.key[97:], 4
	}
	t.Fatalf("a share of group %v", s.group)
	return nil, nil, nil, 0
}

// privateKeys finds the private halves of a share in memory and adds them to found.
func (s share) privateKeys(r *secretsRun, m memory, found needles) {
	t := r.T
	t.Helper()
	curve, point, kem, rank := s.parts(t)
	private := m.findPrivate(r.child.before, curve, point)
	require.NotNil(t, private, "the private key of %v's share is not in memory while the handshake runs; is it looked for rightly?", s.group)
	found.add(fmt.Sprintf("%v's ECDHE private key", s.group), private)
	slices.Reverse(private)
	found.add(fmt.Sprintf("%v's ECDHE private key, reversed", s.group), private)
	if kem == nil {
		return
	}
	// FIPS 203: dk = s (384 bytes a rank) || ek || H(ek) || z.
	h := sha3.Sum256(kem)
	for _, area := range m {
		for from := 0; ; {
			i := bytes.Index(area.data[from:], h[:])
			if i < 0 {
				break
			}
			i += from
			from = i + 1
			start := i - len(kem) - 384*rank
			if start < 0 || !bytes.Equal(area.data[i-len(kem):i], kem) {
				continue
			}
			for k := start; k < start+384*rank; k += 96 {
				found.add(fmt.Sprintf("%v's ML-KEM private key, from byte %d", s.group, k-start), area.data[k:k+32])
			}
			found.add(fmt.Sprintf("%v's ML-KEM private key, unpacked", s.group), unpack12(area.data[start:start+48]))
			found.add(fmt.Sprintf("%v's ML-KEM seed z", s.group), area.data[i+32:i+64])
			return
		}
	}
	require.Fail(t, "not found", "%v's ML-KEM private key is not in memory while the handshake runs; is it looked for rightly?", s.group)
}

// unpack12 turns packed coefficients into 16-bit ones, as the arithmetic has them.
func unpack12(b []byte) (out []byte) {
	for ; len(b) >= 3; b = b[3:] {
		v := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
		out = binary.LittleEndian.AppendUint16(out, uint16(v&0xfff))
		out = binary.LittleEndian.AppendUint16(out, uint16(v>>12))
	}
	return out
}

// noPrivateKey asserts that no private key for the share is anywhere, whether or not it was seen before.
func (s share) noPrivateKey(r *secretsRun, m memory, when string) {
	t := r.T
	t.Helper()
	curve, point, kem, _ := s.parts(t)
	assert.Nil(t, m.findPrivate(r.child.before, curve, point), "%s: the private key of %v's share is left", when, s.group)
	if kem != nil {
		h := sha3.Sum256(kem)
		assert.Empty(t, m.find(h[:]), "%s: a part of %v's ML-KEM private key is left", when, s.group)
	}
}
