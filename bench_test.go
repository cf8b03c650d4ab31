package s2n_test

import (
	"crypto/tls"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
)

// Quick looks while working; bench/ compares with others. Each asserts that what
// it names is what happened.

func BenchmarkHandshake(b *testing.B) {
	for _, policy := range []s2n.Policy{s2n.DefaultFIPS, s2n.DefaultPQ, s2n.DefaultTLS13} {
		b.Run("tls13/"+string(policy)+"/ecdsa-p256/tcp", func(b *testing.B) {
			cc, sc := clientConfig(b), serverConfig(b)
			cc.Policy, sc.Policy = policy, policy
			l, err := s2n.Listen("tcp", "127.0.0.1:0", sc)
			require.NoError(b, err)
			defer l.Close()
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					_ = c.(*s2n.Conn).Handshake()
					_ = c.Close()
				}
			}()
			b.ReportAllocs()
			for b.Loop() {
				c, err := s2n.Dial("tcp", l.Addr().String(), cc)
				if err != nil {
					b.Fatal(err)
				}
				if c.ConnectionState().Version != tls.VersionTLS13 {
					b.Fatal("not TLS 1.3")
				}
				_ = c.Close()
			}
		})
	}
}

func BenchmarkPingPong(b *testing.B) {
	l := newLink(b, linkOptions{}, "client", tls.VersionTLS13, "ours")
	go echo(l.peer)
	buf := make([]byte, 128)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.ours.Write(buf); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(l.ours, buf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBulk(b *testing.B) {
	l := newLink(b, linkOptions{}, "client", tls.VersionTLS13, "ours")
	done := make(chan int64, 1)
	go func() {
		n, _ := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{l.peer}, make([]byte, 64<<10))
		done <- n
	}()
	buf := make([]byte, 1<<20)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	sent := int64(0)
	for b.Loop() {
		if _, err := l.ours.Write(buf); err != nil {
			b.Fatal(err)
		}
		sent += int64(len(buf))
	}
	_ = l.ours.Close()
	if got := <-done; got != sent {
		b.Fatalf("%d of %d bytes arrived", got, sent)
	}
}
