package s2n_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
	"github.com/s2n-go/s2n/internal/testcert"
)

// These tests prove that a connection's secrets are overwritten when nobody needs
// them any more. One process (secrets_child_test.go) holds the connection; this one
// is its parent, is the peer (crypto/tls, whose key log and wire give every secret
// of the handshake), hands over the peer's bytes record by record, and reads the
// child's memory at each stop. The child knows nothing of what is looked for, so
// what is found there the connection has left there: in C's heap, in Go's, on any
// stack. The private keys of the child's own key shares are found in its memory by
// what is known of them: that they belong to the public keys on the wire.
//
// With S2NSHIM_OFF=wipe the library is s2n as it is, and the tests fail (make off SYSTEM=wipe).

// needles are secrets by name.
type needles map[string][]byte

func (n needles) add(name string, secret []byte) {
	if len(secret) < 16 {
		panic("too short to be told from chance: " + name)
	}
	n[name] = bytes.Clone(secret)
}

// gone asserts that none is left.
func (n needles) gone(t *testing.T, m memory, when string) {
	t.Helper()
	for name, secret := range n {
		if hits := m.find(secret); len(hits) != 0 {
			assert.Fail(t, "a secret is left", "%s: %s is still at %s", when, name, strings.Join(hits, ", "))
		}
	}
}

// there asserts that each can be found.
func (n needles) there(t *testing.T, m memory, when string) {
	t.Helper()
	for name, secret := range n {
		assert.NotEmpty(t, m.find(secret), "%s: %s should be in memory; is it looked for rightly?", when, name)
	}
}

// secretsWire is the connection between the peer here and the child.
type secretsWire struct {
	conn      net.Conn
	mu        sync.Mutex
	change    *sync.Cond
	fromChild []byte
	toChild   []byte // what the peer wrote; the first delivered bytes of it are with the child
	delivered int
	through   bool // hand over what comes at once
	taken     int  // of fromChild by the peer
	ended     bool
}

func (w *secretsWire) readChild() {
	buf := make([]byte, 1<<16)
	for {
		n, err := w.conn.Read(buf)
		w.mu.Lock()
		w.fromChild = append(w.fromChild, buf[:n]...)
		w.ended = w.ended || err != nil
		w.change.Broadcast()
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// wait blocks until ready, at most for a while. It runs under the lock.
func (w *secretsWire) wait(t testing.TB, ready func() bool) {
	t.Helper()
	late := false
	timer := time.AfterFunc(20*time.Second, func() { w.mu.Lock(); late = true; w.change.Broadcast(); w.mu.Unlock() })
	defer timer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for !ready() {
		if late {
			t.Fatalf("nothing came: %d bytes from the child, %d for it", len(w.fromChild), len(w.toChild))
		}
		w.change.Wait()
	}
}

type record struct {
	kind byte
	body []byte
	end  int // where the next one begins
}

func records(b []byte) (list []record) {
	at := 0
	for len(b)-at >= 5 {
		size := int(binary.BigEndian.Uint16(b[at+3:]))
		if len(b)-at < 5+size {
			break
		}
		list = append(list, record{b[at], b[at+5 : at+5+size], at + 5 + size})
		at += 5 + size
	}
	return list
}

// deliver hands records over up to the first that last accepts, that one included.
func (w *secretsWire) deliver(t testing.TB, last func(i int, r record) bool) {
	t.Helper()
	var until int
	w.wait(t, func() bool {
		for i, r := range records(w.toChild) {
			if last(i, r) {
				until = r.end
				return true
			}
		}
		return false
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if until > w.delivered {
		_, err := w.conn.Write(w.toChild[w.delivered:until])
		require.NoError(t, err)
		w.delivered = until
	}
}

// deliverAll hands over the rest, and what comes after it.
func (w *secretsWire) deliverAll(t testing.TB) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.conn.Write(w.toChild[w.delivered:])
	require.NoError(t, err)
	w.delivered = len(w.toChild)
	w.through = true
}

func (w *secretsWire) count() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return uint64(w.delivered)
}

// peerEnd is the peer's side of the wire. Its writes never block.
type peerEnd struct{ w *secretsWire }

func (p peerEnd) Read(b []byte) (int, error) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	for p.w.taken == len(p.w.fromChild) {
		if p.w.ended {
			return 0, io.EOF
		}
		p.w.change.Wait()
	}
	n := copy(b, p.w.fromChild[p.w.taken:])
	p.w.taken += n
	return n, nil
}

func (p peerEnd) Write(b []byte) (int, error) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.w.toChild = append(p.w.toChild, b...)
	if p.w.through {
		if _, err := p.w.conn.Write(b); err != nil {
			return 0, err
		}
		p.w.delivered = len(p.w.toChild)
	}
	p.w.change.Broadcast()
	return len(b), nil
}

func (p peerEnd) Close() error {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.w.ended = true
	p.w.change.Broadcast()
	return nil
}
func (p peerEnd) LocalAddr() net.Addr              { return p.w.conn.LocalAddr() }
func (p peerEnd) RemoteAddr() net.Addr             { return p.w.conn.RemoteAddr() }
func (p peerEnd) SetDeadline(time.Time) error      { return nil }
func (p peerEnd) SetReadDeadline(time.Time) error  { return nil }
func (p peerEnd) SetWriteDeadline(time.Time) error { return nil }

// keyLog is what crypto/tls's KeyLogWriter gets, by label.
type keyLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (k *keyLog) Write(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.text.Write(b)
}

func (k *keyLog) secret(t testing.TB, label string) []byte {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, line := range strings.Split(k.text.String(), "\n") {
		if f := strings.Fields(line); len(f) == 3 && f[0] == label {
			secret, err := hex.DecodeString(f[2])
			require.NoError(t, err)
			return secret
		}
	}
	t.Fatalf("no %s in the key log", label)
	return nil
}

// secretsRun is one handshake between the child and the peer.
type secretsRun struct {
	*testing.T
	child *secretsChild
	wire  *secretsWire
	peer  *tls.Conn
	log   *keyLog
	err   chan error // the peer's
}

// run begins a handshake. config is the peer's; cmd says what the child is.
func (c *secretsChild) run(t *testing.T, cmd secretsCommand, config *tls.Config) *secretsRun {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	cmd.Do, cmd.Addr = "start", l.Addr().String()
	if cmd.CA == "" {
		cmd.CA = string(pki().ca.PEM)
	}
	c.t = t
	c.do(secretsCommand{Do: "status"}) // it is up
	c.before = readMemory(t, c.cmd.Process.Pid)
	c.do(cmd).ok(t)
	conn, err := l.Accept()
	require.NoError(t, err)
	r := &secretsRun{T: t, child: c, wire: &secretsWire{conn: conn}, log: &keyLog{}, err: make(chan error, 1)}
	r.wire.change = sync.NewCond(&r.wire.mu)
	config.KeyLogWriter = r.log
	go r.wire.readChild()
	if cmd.Server {
		r.peer = tls.Client(peerEnd{r.wire}, config)
	} else {
		r.peer = tls.Server(peerEnd{r.wire}, config)
	}
	go func() { r.err <- r.peer.Handshake() }()
	t.Cleanup(func() {
		conn.Close()
		c.do(secretsCommand{Do: "close"})
		reply := c.do(secretsCommand{Do: "drop", N: c.blinded})
		assert.LessOrEqual(t, reply.Conns, int64(c.blinded), "the connection is still alive in C")
	})
	return r
}

// memory is the child's, when it has handled all that was delivered.
func (r *secretsRun) memory() memory { r.Helper(); return r.child.memory(r.wire.count()) }

// message waits for the child's n-th plaintext handshake message of a kind and returns its body.
func (r *secretsRun) message(kind byte, n int) (body []byte) {
	r.Helper()
	r.wire.wait(r.T, func() bool {
		body = plainMessage(r.wire.fromChild, kind, n)
		return body != nil
	})
	return body
}

func plainMessage(stream []byte, kind byte, n int) []byte {
	var all []byte
	for _, rec := range records(stream) {
		if rec.kind == 22 {
			all = append(all, rec.body...)
		}
	}
	for len(all) >= 4 {
		size := 4 + int(all[1])<<16 + int(all[2])<<8 + int(all[3])
		if len(all) < size {
			break
		}
		if all[0] == kind {
			if n == 0 {
				return all[4:size]
			}
			n--
		}
		all = all[size:]
	}
	return nil
}

// trafficKeys are what TLS 1.3 derives from a traffic secret.
type trafficKeys struct{ key, iv, finished []byte }

func (r *secretsRun) traffic(secret []byte, suite uint16) (k trafficKeys) {
	r.Helper()
	h, size := sha256.New, 16
	switch suite {
	case tls.TLS_AES_128_GCM_SHA256:
	case tls.TLS_AES_256_GCM_SHA384:
		h, size = sha512.New384, 32
	default:
		r.Fatalf("suite %#x", suite)
	}
	expand := func(label string, n int) []byte {
		label = "tls13 " + label
		info := append([]byte{byte(n >> 8), byte(n), byte(len(label))}, label...)
		b, err := hkdf.Expand(func() hash.Hash { return h() }, secret, string(append(info, 0)), n)
		require.NoError(r, err)
		return b
	}
	return trafficKeys{expand("key", size), expand("iv", 12), expand("finished", h().Size())}
}

// open decrypts the peer's records under a handshake traffic key and returns their messages by kind.
func (k trafficKeys) open(t testing.TB, stream []byte) map[byte][]byte {
	t.Helper()
	block, err := aes.NewCipher(k.key)
	require.NoError(t, err)
	aead, err := cipher.NewGCM(block)
	require.NoError(t, err)
	var all []byte
	seq := uint64(0)
	for _, rec := range records(stream) {
		if rec.kind != 23 {
			continue
		}
		nonce := binary.BigEndian.AppendUint64(make([]byte, 4), seq)
		for i := range nonce {
			nonce[i] ^= k.iv[i]
		}
		seq++
		plain, err := aead.Open(nil, nonce, rec.body, []byte{23, 3, 3, byte(len(rec.body) >> 8), byte(len(rec.body))})
		if err != nil {
			break // under the next key
		}
		plain = bytes.TrimRight(plain, "\x00")
		if plain[len(plain)-1] == 22 {
			all = append(all, plain[:len(plain)-1]...)
		}
	}
	messages := map[byte][]byte{}
	for len(all) >= 4 {
		size := 4 + int(all[1])<<16 + int(all[2])<<8 + int(all[3])
		if len(all) < size {
			break
		}
		messages[all[0]] = all[4:size]
		all = all[size:]
	}
	return messages
}

// handshakeSecrets are TLS 1.3's, which end with the handshake, and those of its
// messages that the peer sent encrypted. clientSide: the child is the client. all:
// also those which are not in use in the middle, the key for what the child sends.
func (r *secretsRun) handshakeSecrets(clientSide, all bool) (secrets, messages needles) {
	r.Helper()
	suite := binary.BigEndian.Uint16(func() []byte {
		r.wire.mu.Lock()
		defer r.wire.mu.Unlock()
		stream := r.wire.fromChild
		if clientSide {
			stream = r.wire.toChild
		}
		n := 0
		for plainMessage(stream, 2, n+1) != nil {
			n++ // after a HelloRetryRequest
		}
		hello := plainMessage(stream, 2, n)
		return hello[35+int(hello[34]):]
	}())
	secrets, messages = needles{}, needles{}
	for _, side := range []string{"CLIENT", "SERVER"} {
		secret := r.log.secret(r, side+"_HANDSHAKE_TRAFFIC_SECRET")
		keys := r.traffic(secret, suite)
		secrets.add(side+"_HANDSHAKE_TRAFFIC_SECRET", secret)
		secrets.add(side+"'s Finished key", keys.finished)
		if all || (side == "SERVER") == clientSide {
			secrets.add(side+"'s handshake key", keys.key)
		}
		if (side == "SERVER") == clientSide {
			r.wire.mu.Lock()
			sent := keys.open(r, r.wire.toChild)
			r.wire.mu.Unlock()
			if sent[20] != nil {
				messages.add("the peer's Finished", sent[20][:32])
			}
			if sent[15] != nil {
				messages.add("the peer's CertificateVerify", sent[15][20:60])
			}
			if sent[13] != nil {
				for at := 64; at+64 < len(sent[13]); at += 997 {
					messages.add(fmt.Sprintf("the peer's CertificateRequest, from byte %d", at), sent[13][at:at+64])
				}
			}
		}
	}
	return secrets, messages
}

// sessionSecrets are what the connection needs until Close.
func (r *secretsRun) sessionSecrets() needles {
	r.Helper()
	n := needles{}
	if r.peer.ConnectionState().Version == tls.VersionTLS12 {
		n.add("the master secret", r.log.secret(r, "CLIENT_RANDOM"))
		return n
	}
	n.add("CLIENT_TRAFFIC_SECRET_0", r.log.secret(r, "CLIENT_TRAFFIC_SECRET_0"))
	n.add("SERVER_TRAFFIC_SECRET_0", r.log.secret(r, "SERVER_TRAFFIC_SECRET_0"))
	return n
}

// finish lets the handshake end well and has a message go to the child.
func (r *secretsRun) finish() {
	r.Helper()
	r.wire.deliverAll(r)
	r.child.do(secretsCommand{Do: "wait"}).ok(r)
	require.NoError(r, <-r.err)
	_, err := r.peer.Write([]byte("message"))
	require.NoError(r, err)
	require.Equal(r, "message", r.child.do(secretsCommand{Do: "read", N: 7}).ok(r).Data)
}

// afterClose checks that the session's secrets are there until the connection is ended, and not after.
func (r *secretsRun) end(m memory, how string) {
	r.Helper()
	session := r.sessionSecrets()
	session.there(r.T, m, "while the connection is open")
	r.child.do(secretsCommand{Do: how}).ok(r)
	session.gone(r.T, readMemory(r, r.child.cmd.Process.Pid), "after "+how)
}

// requestingServer has a server name so many authorities that its CertificateRequest takes two records.
func requestingServer(config *tls.Config) *tls.Config {
	config.ClientAuth = tls.RequestClientCert
	config.ClientCAs = pki().ca.Pool()
	for i := range 120 {
		config.ClientCAs.AddCert(testcert.New(fmt.Sprintf("authority %03d %x %x", i, random(32), random(28))).Cert)
	}
	return config
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

func leafPEM(l *testcert.Leaf) (cert, key string) { return string(l.CertPEM), string(l.KeyPEM) }

// largeRecord is the first part of a message that does not fit one record.
func largeRecord(_ int, r record) bool { return len(r.body) > 16384 }

// secretsCases are the ways to agree on a TLS 1.3 secret, and both ways to be done with a connection.
var secretsCases = []struct {
	policy s2n.Policy
	group  tls.CurveID
	how    string // close, or drop: the garbage collector's
}{
	{s2n.DefaultFIPS, tls.X25519MLKEM768, "close"},
	{s2n.DefaultFIPS, tls.SecP256r1MLKEM768, "drop"},
	{s2n.DefaultFIPS, tls.SecP384r1MLKEM1024, "close"},
	{s2n.DefaultFIPS, tls.CurveP256, "drop"},
	{s2n.DefaultFIPS, tls.CurveP384, "close"},
	{s2n.DefaultPQ, tls.X25519MLKEM768, "drop"},
	{s2n.DefaultPQ, tls.X25519, "close"},
	{s2n.DefaultTLS13, tls.CurveP256, "close"},
	{s2n.FIPSPQ2026, tls.X25519MLKEM768, "close"},
	{s2n.FIPSNIST2026, tls.SecP256r1MLKEM768, "close"},
	{s2n.FIPSNIST2026, tls.CurveP256, "drop"}, // the hybrid's key, used alone
}

func TestSecretsClientTLS13(t *testing.T) {
	child := startSecretsChild(t)
	for _, c := range secretsCases {
		policy, group, how := c.policy, c.group, c.how
		t.Run(fmt.Sprintf("%s/%v/%s", policy, group, how), func(t *testing.T) {
			config := requestingServer(goServerConfig())
			config.CurvePreferences = []tls.CurveID{group}
			r := child.run(t, secretsCommand{Policy: policy, Buffers: how == "drop"}, config)

			// The ClientHello is sent: the private keys wait for the server's.
			shares := helloShares(t, r.message(1, 0))
			private := needles{}
			m := r.memory()
			for _, s := range shares {
				s.privateKeys(r, m, private)
			}
			if !slices.ContainsFunc(shares, func(s share) bool { return s.group == group }) {
				r.wire.deliver(t, func(i int, rec record) bool { return rec.kind == 22 }) // HelloRetryRequest
				again := helloShares(t, r.message(1, 1))
				m = r.memory()
				for _, s := range again {
					s.privateKeys(r, m, private)
				}
				shares = append(shares, again...)
			}

			// ServerHello and half of CertificateRequest: TLS 1.3's handshake secrets are in use.
			r.wire.deliver(t, largeRecord)
			secrets, messages := r.handshakeSecrets(true, false)
			m = r.memory()
			secrets.there(t, m, "in the middle")
			part := needles{"the part of CertificateRequest that came": messages["the peer's CertificateRequest, from byte 1061"]}
			part.there(t, m, "in the middle")
			private.gone(t, m, "once the shared secret is made")

			r.finish()
			m = r.memory()
			for _, s := range shares {
				s.noPrivateKey(r, m, "after the handshake")
			}
			secrets, messages = r.handshakeSecrets(true, true)
			for _, n := range []needles{private, secrets, messages} {
				n.gone(t, m, "after the handshake")
			}
			r.end(m, how)
		})
	}
}

func TestSecretsServerTLS13(t *testing.T) {
	child := startSecretsChild(t)
	cert, key := leafPEM(pki().server)
	for _, c := range secretsCases {
		policy, group, how := c.policy, c.group, c.how
		t.Run(fmt.Sprintf("%s/%v/%s", policy, group, how), func(t *testing.T) {
			config := goClientConfig()
			config.CurvePreferences = []tls.CurveID{group}
			config.Certificates = []tls.Certificate{pki().client.TLS}
			r := child.run(t, secretsCommand{Server: true, Policy: policy, Buffers: how == "drop", Cert: cert, Key: key,
				ClientAuth: tls.RequireAndVerifyClientCert}, config)

			// The server's flight is sent: it waits for the client's, whose messages are to be decrypted.
			r.wire.deliver(t, func(i int, rec record) bool { return rec.kind == 22 })
			hello := r.message(2, 0)
			r.wire.wait(t, func() bool { return len(records(r.wire.toChild)) >= 4 }) // the peer has its keys
			secrets, _ := r.handshakeSecrets(false, false)
			m := r.memory()
			secrets.there(t, m, "in the middle")

			r.finish()
			m = r.memory()
			serverShare(t, hello).noPrivateKey(r, m, "after the handshake")
			secrets, messages := r.handshakeSecrets(false, true)
			require.Len(t, messages, 2)
			secrets.gone(t, m, "after the handshake")
			messages.gone(t, m, "after the handshake")
			r.end(m, how)
		})
	}
}

// serverShare is the ECDHE half of the share in a ServerHello; its ML-KEM part is a
// ciphertext, and belongs to no key of the server's.
func serverShare(t testing.TB, body []byte) share {
	t.Helper()
	at := 2 + 32
	at += 1 + int(body[at])
	for at += 2 + 1 + 2; at < len(body); {
		id, size := binary.BigEndian.Uint16(body[at:]), int(binary.BigEndian.Uint16(body[at+2:]))
		ext := body[at+4 : at+4+size]
		at += 4 + size
		if id != 51 {
			continue
		}
		key := ext[4:]
		switch tls.CurveID(binary.BigEndian.Uint16(ext)) {
		case tls.X25519MLKEM768:
			return share{tls.X25519, key[1088:]}
		case tls.SecP256r1MLKEM768:
			return share{tls.CurveP256, key[:65]}
		case tls.SecP384r1MLKEM1024:
			return share{tls.CurveP384, key[:97]}
		}
		return share{tls.CurveID(binary.BigEndian.Uint16(ext)), key}
	}
	t.Fatal("the ServerHello has no key share")
	return share{}
}
