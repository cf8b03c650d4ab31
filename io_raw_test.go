package s2n_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
)

// rawPeer is the other end of a TLS 1.3 connection that can send any record: the
// handshake is crypto/tls's, the records after it are made here from its key log
// (RFC 8446, 5.2 and 7.3).
type rawPeer struct {
	t    testing.TB
	conn net.Conn
	aead cipher.AEAD
	iv   []byte
	seq  uint64
	next []byte  // traffic secret
	tls  tlsConn // its reading half still works
}

const (
	typeAlert     = 21
	typeHandshake = 22
	typeData      = 23
)

// newRawPeer connects a rawPeer in the role opposite to ours.
func newRawPeer(t testing.TB, role string, change func(*s2n.Config)) (*s2n.Conn, *rawPeer) {
	t.Helper()
	var log bytes.Buffer
	l := newLink(t, linkOptions{
		change: change,
		changeGo: func(c *tls.Config) {
			c.KeyLogWriter = &log
			c.SessionTicketsDisabled = true
			c.CipherSuites = nil
		},
	}, role, tls.VersionTLS13, "go")
	require.Equal(t, tls.TLS_AES_128_GCM_SHA256, l.ours.ConnectionState().CipherSuite)
	label := "SERVER_TRAFFIC_SECRET_0"
	if role == "server" {
		label = "CLIENT_TRAFFIC_SECRET_0"
	}
	p := &rawPeer{t: t, conn: l.peerRaw, tls: l.peer}
	for line := range strings.Lines(log.String()) {
		f := strings.Fields(line)
		if f[0] == label {
			secret, err := hex.DecodeString(f[2])
			require.NoError(t, err)
			p.rekey(secret)
		}
	}
	require.NotNil(t, p.aead)
	return l.ours, p
}

func expandLabel(t testing.TB, secret []byte, label string, n int) []byte {
	info := binary.BigEndian.AppendUint16(nil, uint16(n))
	info = append(info, byte(len(label)+6))
	info = append(append(info, "tls13 "+label...), 0)
	out, err := hkdf.Expand(sha256.New, secret, string(info), n)
	require.NoError(t, err)
	return out
}

func (p *rawPeer) rekey(secret []byte) {
	block, err := aes.NewCipher(expandLabel(p.t, secret, "key", 16))
	require.NoError(p.t, err)
	p.aead, err = cipher.NewGCM(block)
	require.NoError(p.t, err)
	p.iv = expandLabel(p.t, secret, "iv", 12)
	p.seq = 0
	p.next = secret
}

// record seals one record, padded by pad zero bytes.
func (p *rawPeer) record(kind byte, body []byte, pad int) []byte {
	inner := append(append(bytes.Clone(body), kind), make([]byte, pad)...)
	header := []byte{typeData, 3, 3, 0, 0}
	binary.BigEndian.PutUint16(header[3:], uint16(len(inner)+16))
	nonce := bytes.Clone(p.iv)
	var seq [8]byte
	binary.BigEndian.PutUint64(seq[:], p.seq)
	for i, b := range seq {
		nonce[4+i] ^= b
	}
	p.seq++
	return p.aead.Seal(header, nonce, inner, header)
}

func (p *rawPeer) send(records ...[]byte) {
	p.t.Helper()
	_, err := p.conn.Write(bytes.Join(records, nil))
	require.NoError(p.t, err)
}

func (p *rawPeer) data(s string) []byte { return p.record(typeData, []byte(s), 0) }

// keyUpdate is a KeyUpdate message; the records after it have the next key.
func (p *rawPeer) keyUpdate(ask byte) []byte {
	r := p.record(typeHandshake, []byte{24, 0, 0, 1, ask}, 0)
	p.rekey(expandLabel(p.t, p.next, "traffic upd", 32))
	return r
}

// ticket is a NewSessionTicket, as a server sends it.
func (p *rawPeer) ticket() []byte {
	body := make([]byte, 4+4) // lifetime, age_add
	body[3] = 100
	body = append(body, 1, 9)                               // nonce
	body = append(append(body, 0, 32), make([]byte, 32)...) // ticket
	body = append(body, 0, 0)                               // extensions
	return p.record(typeHandshake, append([]byte{4, 0, 0, byte(len(body))}, body...), 0)
}

// alert is the alert that the peer's crypto/tls reads, by its name there.
func (p *rawPeer) alert() string {
	p.t.Helper()
	require.NoError(p.t, p.conn.SetReadDeadline(time.Now().Add(5*time.Second)))
	_, err := io.Copy(io.Discard, p.tls)
	require.Error(p.t, err)
	return strings.TrimPrefix(err.Error(), "remote error: tls: ")
}
