package s2n_test

import (
	"bytes"
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	_ "crypto/sha512"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
	"github.com/s2n-go/s2n/internal/testcert"
)

// A ClientHello in the format of SSLv2 (RFC 5246, E.2) asks for TLS 1.2 and has no
// extensions. Its transcript begins with the message as SSLv2 frames it, and s2n
// adds that to the hashes by another path than any other message.
func TestTranscriptHashSSLv2Hello(t *testing.T) {
	for _, policy := range []s2n.Policy{s2n.DefaultFIPS, "20240417"} {
		for _, c := range []struct {
			name string
			hash crypto.Hash
			auth tls.ClientAuthType
		}{
			{"no client certificate", 0, tls.NoClientCert},
			{"none when asked", 0, tls.RequestClientCert},
			{"SHA-256", crypto.SHA256, tls.RequireAndVerifyClientCert},
			{"SHA-384", crypto.SHA384, tls.RequireAndVerifyClientCert},
			{"SHA-512", crypto.SHA512, tls.RequireAndVerifyClientCert},
		} {
			t.Run(fmt.Sprintf("%s/%s", policy, c.name), func(t *testing.T) {
				a, b := tcpPair(t)
				config := serverConfig(t)
				config.Policy, config.ClientAuth = policy, c.auth
				server := s2n.Server(b, config)
				done := make(chan error, 1)
				go func() {
					done <- server.Handshake()
					echo(server)
				}()
				client := &sslv2Client{conn: a, leaf: pki().client, hash: c.hash}
				require.NoError(t, a.SetDeadline(time.Now().Add(20*time.Second)))
				err := client.handshake()
				require.NoError(t, <-done)
				require.NoError(t, err)
				got, err := client.echo([]byte("hello from 1994"))
				require.NoError(t, err)
				require.Equal(t, "hello from 1994", string(got))
				assert.Equal(t, []crypto.Hash{crypto.SHA256}, server.State().TranscriptHashes)
				assert.Equal(t, c.hash != 0, len(server.ConnectionState().PeerCertificates) > 0)
			})
		}
	}
}

// sslv2Client is a client of TLS 1.2 with one cipher suite,
// ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, that begins with a hello of SSLv2. It does not
// look at the server's certificate.
type sslv2Client struct {
	conn       net.Conn
	leaf       *testcert.Leaf
	hash       crypto.Hash // for its CertificateVerify; 0: it has no certificate
	transcript []byte
	handshakes []byte // read, not yet used
	master     []byte
	in, out    half12
}

type half12 struct {
	aead cipher.AEAD
	iv   []byte
	seq  uint64
}

func (c *sslv2Client) handshake() error {
	random := make([]byte, 32)
	_, _ = rand.Read(random)
	hello := []byte{1, 3, 3, 0, 3, 0, 0, 0, 32, 0, 0xc0, 0x2b} // type, version, three lengths, one suite
	hello = append(hello, random...)
	c.transcript = append(c.transcript, hello...)
	if _, err := c.conn.Write(append([]byte{0x80, byte(len(hello))}, hello...)); err != nil {
		return err
	}
	var serverRandom, peerShare []byte
	asked := false
	for done := false; !done; {
		kind, body, err := c.message()
		if err != nil {
			return err
		}
		switch kind {
		case 2:
			serverRandom = body[2:34]
		case 12: // named curve, P-256, length, point
			if !bytes.Equal(body[:4], []byte{3, 0, 23, 65}) {
				return fmt.Errorf("the server chose the curve % x", body[:4])
			}
			peerShare = body[4 : 4+65]
		case 13:
			asked = true
		case 14:
			done = true
		}
	}
	if asked {
		var list []byte
		if c.hash != 0 {
			for _, der := range c.leaf.TLS.Certificate {
				list = append(append(list, 0, byte(len(der)>>8), byte(len(der))), der...)
			}
		}
		if err := c.send(11, append([]byte{0, byte(len(list) >> 8), byte(len(list))}, list...)); err != nil {
			return err
		}
	}
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	peer, err := ecdh.P256().NewPublicKey(peerShare)
	if err != nil {
		return err
	}
	secret, err := key.ECDH(peer)
	if err != nil {
		return err
	}
	if err := c.send(16, append([]byte{65}, key.PublicKey().Bytes()...)); err != nil {
		return err
	}
	if asked && c.hash != 0 {
		h := c.hash.New()
		h.Write(c.transcript)
		signature, err := c.leaf.TLS.PrivateKey.(*ecdsa.PrivateKey).Sign(rand.Reader, h.Sum(nil), c.hash)
		if err != nil {
			return err
		}
		scheme := map[crypto.Hash]byte{crypto.SHA256: 4, crypto.SHA384: 5, crypto.SHA512: 6}[c.hash]
		if err := c.send(15, append([]byte{scheme, 3, 0, byte(len(signature))}, signature...)); err != nil {
			return err
		}
	}
	c.master = prf12(secret, "master secret", append(append([]byte{}, random...), serverRandom...), 48)
	block := prf12(c.master, "key expansion", append(append([]byte{}, serverRandom...), random...), 16+16+4+4)
	c.out.set(block[:16], block[32:36])
	if _, err := c.conn.Write([]byte{20, 3, 3, 0, 1, 1}); err != nil {
		return err
	}
	finished := prf12(c.master, "client finished", digest(c.transcript), 12)
	own := append([]byte{20, 0, 0, 12}, finished...)
	c.transcript = append(c.transcript, own...)
	if err := c.write(22, own); err != nil {
		return err
	}
	if kind, _, err := c.record(); err != nil || kind != 20 {
		return fmt.Errorf("instead of ChangeCipherSpec, record type %d, %w", kind, err)
	}
	c.in.set(block[16:32], block[36:40])
	want := prf12(c.master, "server finished", digest(c.transcript), 12)
	kind, body, err := c.message()
	if err != nil {
		return err
	}
	if kind != 20 || !bytes.Equal(body, want) {
		return errors.New("the server's Finished is over another transcript")
	}
	return nil
}

func (c *sslv2Client) echo(b []byte) ([]byte, error) {
	if err := c.write(23, b); err != nil {
		return nil, err
	}
	_, got, err := c.record()
	return got, err
}

func digest(b []byte) []byte {
	d := sha256.Sum256(b)
	return d[:]
}

func prf12(secret []byte, label string, seed []byte, n int) []byte {
	seed = append([]byte(label), seed...)
	mac := func(b ...[]byte) []byte {
		h := hmac.New(sha256.New, secret)
		for _, p := range b {
			h.Write(p)
		}
		return h.Sum(nil)
	}
	var out []byte
	for a := mac(seed); len(out) < n; a = mac(a) {
		out = append(out, mac(a, seed)...)
	}
	return out[:n]
}

func (h *half12) set(key, iv []byte) {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err)
	}
	h.aead, err = cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	h.iv = iv
}

// nonces returns the nonce and the additional data of the next record.
func (h *half12) nonces(kind byte, size int) (explicit, nonce, additional []byte) {
	explicit = binary.BigEndian.AppendUint64(nil, h.seq)
	nonce = append(append([]byte{}, h.iv...), explicit...)
	additional = append(append([]byte{}, explicit...), kind, 3, 3, byte(size>>8), byte(size))
	h.seq++
	return explicit, nonce, additional
}

func (c *sslv2Client) write(kind byte, body []byte) error {
	if c.out.aead != nil {
		explicit, nonce, additional := c.out.nonces(kind, len(body))
		body = c.out.aead.Seal(explicit, nonce, body, additional)
	}
	_, err := c.conn.Write(append([]byte{kind, 3, 3, byte(len(body) >> 8), byte(len(body))}, body...))
	return err
}

func (c *sslv2Client) record() (byte, []byte, error) {
	header := make([]byte, 5)
	if _, err := io.ReadFull(c.conn, header); err != nil {
		return 0, nil, err
	}
	body := make([]byte, binary.BigEndian.Uint16(header[3:]))
	if _, err := io.ReadFull(c.conn, body); err != nil {
		return 0, nil, err
	}
	if header[0] == 21 {
		return 0, nil, fmt.Errorf("alert % x", body)
	}
	if c.in.aead != nil {
		_, nonce, additional := c.in.nonces(header[0], len(body)-8-16)
		copy(nonce[4:], body[:8])
		var err error
		body, err = c.in.aead.Open(nil, nonce, body[8:], additional)
		if err != nil {
			return 0, nil, err
		}
	}
	return header[0], body, nil
}

// message reads one handshake message into the transcript.
func (c *sslv2Client) message() (byte, []byte, error) {
	for {
		b := c.handshakes
		if len(b) >= 4 {
			if size := 4 + int(b[1])<<16 + int(b[2])<<8 + int(b[3]); len(b) >= size {
				c.handshakes = b[size:]
				c.transcript = append(c.transcript, b[:size]...)
				return b[0], b[4:size], nil
			}
		}
		kind, body, err := c.record()
		if err != nil {
			return 0, nil, err
		}
		if kind != 22 {
			return 0, nil, fmt.Errorf("a record of type %d", kind)
		}
		c.handshakes = append(c.handshakes, body...)
	}
}

func (c *sslv2Client) send(kind byte, body []byte) error {
	m := append([]byte{kind, 0, byte(len(body) >> 8), byte(len(body))}, body...)
	c.transcript = append(c.transcript, m...)
	return c.write(22, m)
}
