package main

import (
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	"github.com/s2n-go/s2n/bench/internal/proto"
)

// A Case is one thing to compare. Its name is a path, of what to do, with what, over what.
type Case struct {
	Name  string
	Spec  proto.Spec
	Procs int           // GOMAXPROCS of the sides in Go; 0: as many as there are CPUs
	N     int           // operations of a turn; 0: as many as fill it
	Turn  time.Duration // how long N takes, for the budget; or 0
	Short bool          // a tenth of the usual turn is enough
	Only  []string      // sides; nil: all
}

var groups = map[string]uint16{
	"X25519MLKEM768":    uint16(tls.X25519MLKEM768),
	"SecP256r1MLKEM768": uint16(tls.SecP256r1MLKEM768),
	"P-256":             uint16(tls.CurveP256),
	"X25519":            uint16(tls.X25519),
}

func groupName(id uint16) string {
	for name, g := range groups {
		if g == id {
			return name
		}
	}
	return fmt.Sprintf("0x%04x", id)
}

// usual is what cases have that are not about the handshake.
var usual = proto.Spec{Version: tls.VersionTLS13, Group: groups["X25519MLKEM768"], Cert: "ecdsa-p256", Transport: "tcp"}

func with(kind string, change func(*proto.Spec)) proto.Spec {
	s := usual
	s.Kind = kind
	if change != nil {
		change(&s)
	}
	return s
}

// allCases are the cases in the order in which they run.
func allCases() []Case {
	var all []Case
	add := func(c Case) { all = append(all, c) }
	handshake := func(version, group, cert string, mutual bool, transport string) {
		c := Case{Procs: 1}
		c.Spec = with("handshake", func(s *proto.Spec) {
			if version == "tls12" {
				s.Version = tls.VersionTLS12
			}
			s.Group, s.Cert, s.Mutual, s.Transport = groups[group], cert, mutual, transport
		})
		parts := []string{"Handshake", version, group, cert}
		if mutual {
			parts = append(parts, "mtls")
		}
		c.Name = strings.Join(append(parts, transport), "/")
		if group == "X25519" {
			c.Only = []string{"s2n3", "s2n4", "go"} // no FIPS mode has it
		}
		add(c)
	}
	for _, transport := range []string{"tcp", "mem"} {
		for _, group := range []string{"X25519MLKEM768", "SecP256r1MLKEM768", "P-256"} {
			for _, cert := range []string{"ecdsa-p256", "rsa-2048"} {
				for _, mutual := range []bool{false, true} {
					handshake("tls13", group, cert, mutual, transport)
				}
			}
		}
		for _, cert := range []string{"ecdsa-p256", "rsa-2048"} {
			handshake("tls13", "X25519", cert, false, transport)
		}
		for _, cert := range []string{"ecdsa-p256", "rsa-2048"} {
			for _, mutual := range []bool{false, true} {
				handshake("tls12", "P-256", cert, mutual, transport)
			}
		}
	}
	add(Case{Name: "Storm/5000/tls13/X25519MLKEM768/ecdsa-p256/tcp", Spec: with("storm", nil), N: 5000, Turn: 3 * time.Second})
	add(Case{Name: "NewConn/tls13/X25519MLKEM768/ecdsa-p256/tcp", Spec: with("newconn", nil)})
	for _, procs := range []int{0, 1} {
		suffix := ""
		if procs == 1 {
			suffix = "/procs-1"
		}
		size := func(kind string, n int, change func(*proto.Spec)) proto.Spec {
			return with(kind, func(s *proto.Spec) {
				s.Size = n
				if change != nil {
					change(s)
				}
			})
		}
		add(Case{Name: "Bulk/oneway/tcp" + suffix, Spec: size("bulk", 1<<20, nil), Procs: procs})
		if procs == 0 {
			add(Case{Name: "Bulk/bothways/tcp", Spec: size("bulk", 1<<20, func(s *proto.Spec) { s.Both = true })})
		}
		add(Case{Name: "PingPong/128/tcp" + suffix, Spec: size("pingpong", 128, nil), Procs: procs})
		add(Case{Name: "Write/64/tcp" + suffix, Spec: size("write", 64, nil), Procs: procs})
		add(Case{Name: "Parallel/64x1024/tcp" + suffix, Spec: size("parallel", 1024, func(s *proto.Spec) { s.Conns = 64 }), Procs: procs})
	}
	for _, key := range []int{16, 32} {
		for _, op := range []string{"seal", "open"} {
			for _, size := range []struct {
				name  string
				bytes int
			}{{"16", 16}, {"64", 64}, {"1024", 1024}, {"16KiB", 16 << 10}, {"1MiB", 1 << 20}, {"10MiB", 10 << 20}} {
				add(Case{
					Name: fmt.Sprintf("AEAD/AES-%d-GCM/%s/%s", key*8, op, size.name), Procs: 1, Short: true,
					Spec: proto.Spec{Kind: "aead", Key: key, Op: op, Size: size.bytes},
				})
			}
		}
	}
	return all
}
