package s2n

import (
	"encoding/binary"
	"fmt"

	"github.com/s2n-go/s2n/cshim"
)

// Group is a key exchange group, IANA's TLS Supported Groups.
type Group uint16

const (
	P256               Group = 23
	P384               Group = 24
	P521               Group = 25
	X25519             Group = 29
	MLKEM1024          Group = 0x0202
	SecP256r1MLKEM768  Group = 0x11eb
	X25519MLKEM768     Group = 0x11ec
	SecP384r1MLKEM1024 Group = 0x11ed
)

var groupNames = map[Group]string{
	P256: "P-256", P384: "P-384", P521: "P-521", X25519: "X25519", MLKEM1024: "MLKEM1024",
	SecP256r1MLKEM768: "SecP256r1MLKEM768", X25519MLKEM768: "X25519MLKEM768", SecP384r1MLKEM1024: "SecP384r1MLKEM1024",
}

// String is the group's name, "X25519MLKEM768".
func (g Group) String() string {
	if name, ok := groupNames[g]; ok {
		return name
	}
	return fmt.Sprintf("Group(0x%04x)", uint16(g))
}

// hybrid tells whether g is ML-KEM and a curve together.
func (g Group) hybrid() bool {
	return g == X25519MLKEM768 || g == SecP256r1MLKEM768 || g == SecP384r1MLKEM1024
}

// KeyShareMode is which keys a client sends in its ClientHello, and so guesses that
// the server will take. Where it takes none of their groups, it asks for another
// with a HelloRetryRequest: a round trip more, and a key more. Each key costs its
// generation, which the FIPS module tests pairwise; without that test the modes
// differ less.
//
// Whatever the mode, a policy without hybrids sends a key for its first curve, and
// a HelloRetryRequest is answered with a new key. Servers have no use for it.
type KeyShareMode uint8

const (
	// PolicyShares is the policy's own: HybridOnly for FIPSPQ2026, ReuseShare for
	// every other.
	PolicyShares KeyShareMode = iota
	// ReuseShare sends the first hybrid, and the classical key in it once more by
	// itself, where the policy has that curve: under DefaultPQ X25519MLKEM768 and
	// X25519, of which the second costs 36 bytes and nothing to compute. A server
	// that has P-256 only then costs a round trip, where SeparateShares would not.
	// Where the policy does not have the curve, it is SeparateShares.
	ReuseShare
	// SeparateShares sends the first hybrid and a key of its own for the policy's
	// first curve, as s2n does by itself: under DefaultPQ X25519MLKEM768 and P-256.
	// That costs a seventh of a handshake's CPU time with module 3.
	SeparateShares
	// HybridOnly sends the first hybrid and no classical key: the smallest ClientHello
	// that is safe against quantum computers. Any server without that hybrid costs a
	// round trip. Validate refuses it where the policy has no hybrid.
	HybridOnly
)

var keyShareModes = [...]uint8{
	PolicyShares: cshim.SharesPolicy, ReuseShare: cshim.SharesReuse,
	SeparateShares: cshim.SharesSeparate, HybridOnly: cshim.SharesHybridOnly,
}

// keyShares is the mode for C, if the policy can have it.
func (c *Config) keyShares(policy PolicyInfo) (uint8, error) {
	if int(c.KeyShareMode) >= len(keyShareModes) {
		return 0, configError("config", "KeyShareMode: there is no %d", c.KeyShareMode)
	}
	if c.KeyShareMode == HybridOnly {
		hybrid := false
		for _, g := range policy.Groups {
			hybrid = hybrid || g.hybrid()
		}
		if !hybrid {
			return 0, configError("config", "KeyShareMode: policy %q has no hybrid group that HybridOnly could send", string(policy.Name))
		}
	}
	return keyShareModes[c.KeyShareMode], nil
}

// OfferedShare is a key that a client sent in a ClientHello.
type OfferedShare struct {
	Group  Group
	Reused bool // the key is that of the hybrid beside it
}

// KeyShare is a key that a client has just sent in its ClientHello.
type KeyShare struct {
	Group  Group
	Public []byte // as sent: a hybrid's two keys in the order that its standard has
	Reused bool   // the key is that of the hybrid beside it
}

// KeyShares is set on a client between its ClientHello and the end of the
// handshake, and nil after it. After a HelloRetryRequest it is what the second
// ClientHello sent. From any goroutine; State.OfferedShares is what stays.
func (c *Conn) KeyShares() []KeyShare {
	shim := c.shimPtr.Load()
	if shim == nil || !shim.Acquire() {
		return nil
	}
	defer shim.Release()
	sent := shim.KeyShares()
	var shares []KeyShare
	for len(sent) >= 4 {
		group, n := Group(binary.BigEndian.Uint16(sent)), 4+int(binary.BigEndian.Uint16(sent[2:]))
		if n > len(sent) {
			break
		}
		shares = append(shares, KeyShare{Group: group, Public: sent[4:n:n]})
		sent = sent[n:]
	}
	for _, o := range offeredShares(shim.GetCounts()) {
		for i := range shares {
			// A group is offered once at most: a retry never asks for one that was.
			if shares[i].Group == o.Group {
				shares[i].Reused = o.Reused
			}
		}
	}
	return shares
}

func offeredShares(counts cshim.Counts) []OfferedShare {
	var shares []OfferedShare
	for _, o := range counts.Offered {
		if o.Group != 0 {
			shares = append(shares, OfferedShare{Group(o.Group), o.Reused})
		}
	}
	return shares
}
