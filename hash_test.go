package s2n_test

import (
	"bytes"
	"crypto"
	"crypto/elliptic"
	"crypto/tls"
	"fmt"
	"io"
	"math/bits"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n"
	"github.com/s2n-go/s2n/cshim"
	"github.com/s2n-go/s2n/internal/testcert"
)

// Policies that differ in what a transcript hash can be needed for.
var hashPolicies = []s2n.Policy{
	"default_fips",
	"default_tls13",
	"default_pq",               // ML-DSA, which signs no hash
	"20240501",                 // TLS 1.2 only
	"AWS-CRT-SDK-TLSv1.3-2023", // TLS 1.3 only, though SHA-1 is in its list
	"20240417",                 // TLS 1.0, SHA-1 and SHA-224
}

func suiteHash(suite uint16) crypto.Hash {
	switch suite {
	case 0x1302, 0xc02c, 0xc030, 0x009d, 0x009f, 0xc024, 0xc028:
		return crypto.SHA384
	}
	return crypto.SHA256
}

var hashBits = map[crypto.Hash]cshim.HashSet{
	crypto.MD5: cshim.HashMD5, crypto.SHA1: cshim.HashSHA1, crypto.SHA224: cshim.HashSHA224, crypto.SHA256: cshim.HashSHA256,
	crypto.SHA384: cshim.HashSHA384, crypto.SHA512: cshim.HashSHA512,
}

// firstHashes is what a client's ClientHello is to be hashed with, worked out from
// what the policy says of itself.
func firstHashes(t *testing.T, p s2n.Policy, certificate bool) cshim.HashSet {
	info, err := p.Info()
	require.NoError(t, err)
	const legacy = cshim.HashMD5 | cshim.HashSHA1 | cshim.HashMD5SHA1
	var set cshim.HashSet
	for _, suite := range info.CipherSuites {
		set |= hashBits[suiteHash(suite)]
	}
	if info.MinVersion < tls.VersionTLS12 {
		set |= legacy
	}
	if certificate && info.MinVersion < tls.VersionTLS13 {
		for _, scheme := range info.SignatureSchemes {
			switch scheme {
			case tls.PKCS1WithSHA1, tls.ECDSAWithSHA1:
				set |= cshim.HashSHA1
			case 0x0301, 0x0303:
				set |= cshim.HashSHA224
			case tls.PKCS1WithSHA256, tls.PSSWithSHA256, tls.ECDSAWithP256AndSHA256, 0x0809:
				set |= cshim.HashSHA256
			case tls.PKCS1WithSHA384, tls.PSSWithSHA384, tls.ECDSAWithP384AndSHA384, 0x080a:
				set |= cshim.HashSHA384
			case tls.PKCS1WithSHA512, tls.PSSWithSHA512, tls.ECDSAWithP521AndSHA512, 0x080b:
				set |= cshim.HashSHA512
			case 0x0904, 0x0905, 0x0906: // ML-DSA is for TLS 1.3
			default:
				t.Fatalf("signature scheme %#x is new", scheme)
			}
		}
	}
	return set
}

// expectedLast is what may still run when a handshake is over.
func expectedLast(cs tls.ConnectionState) []crypto.Hash {
	if cs.Version < tls.VersionTLS12 {
		return []crypto.Hash{crypto.MD5, crypto.SHA1, crypto.MD5SHA1}
	}
	return []crypto.Hash{suiteHash(cs.CipherSuite)}
}

// pingPong has a message go each way, so that both sides have read under the new keys.
func pingPong(t *testing.T, client, server net.Conn) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		buf := make([]byte, 4)
		_, err := io.ReadFull(server, buf)
		if err == nil {
			_, err = server.Write(buf)
		}
		done <- err
	}()
	_, err := client.Write([]byte("ping"))
	require.NoError(t, err)
	buf := make([]byte, 4)
	_, err = io.ReadFull(client, buf)
	require.NoError(t, err)
	require.NoError(t, <-done)
	require.Equal(t, "ping", string(buf))
}

// Which hashes take a client's first message, and which run at the end, for each
// policy, version, use of client certificates and role.
func TestTranscriptHashes(t *testing.T) {
	auths := map[string]tls.ClientAuthType{
		"no-request": tls.NoClientCert, "request": tls.RequestClientCert, "required": tls.RequireAndVerifyClientCert,
	}
	for _, policy := range hashPolicies {
		info, err := policy.Info()
		require.NoError(t, err)
		for _, version := range []uint16{tls.VersionTLS10, tls.VersionTLS12, tls.VersionTLS13} {
			if version < info.MinVersion || version > info.MaxVersion {
				continue
			}
			for auth, mode := range auths {
				for _, certificate := range []bool{false, true} {
					if mode == tls.RequireAndVerifyClientCert && !certificate {
						continue
					}
					name := fmt.Sprintf("%s/%s/%s/certificate=%v", policy, tls.VersionName(version), auth, certificate)
					t.Run(name+"/client", func(t *testing.T) {
						a, b := tcpPair(t)
						config := clientConfig(t)
						config.Policy = policy
						if certificate {
							config.Certificates = []s2n.Certificate{pair(t, pki().client)}
						}
						peer := goServerConfig()
						peer.MinVersion, peer.MaxVersion, peer.ClientAuth = version, version, mode
						client, server := s2n.Client(a, config), tls.Server(b, peer)
						clientErr, serverErr := handshakeBoth(client, server)
						require.NoError(t, clientErr)
						require.NoError(t, serverErr)
						pingPong(t, client, server)
						assert.Equal(t, version, client.ConnectionState().Version)
						assert.Equal(t, certificate && mode != tls.NoClientCert, len(server.ConnectionState().PeerCertificates) > 0)

						first, _, upstream := client.Hashes()
						assert.Equal(t, firstHashes(t, policy, certificate), first, "the ClientHello's")
						assert.Equal(t, expectedLast(client.ConnectionState()), client.State().TranscriptHashes)
						if version == tls.VersionTLS13 || version == tls.VersionTLS12 && certificate && mode != tls.NoClientCert {
							assert.Equal(t, 1, bits.OnesCount16(uint16(upstream)), "s2n by itself: %#x", upstream)
						}
					})
					t.Run(name+"/server", func(t *testing.T) {
						a, b := tcpPair(t)
						config := serverConfig(t)
						config.Policy, config.ClientAuth = policy, mode
						peer := goClientConfig()
						peer.MinVersion, peer.MaxVersion = version, version
						if certificate {
							peer.Certificates = []tls.Certificate{pki().client.TLS}
						}
						client, server := tls.Client(a, peer), s2n.Server(b, config)
						clientErr, serverErr := handshakeBoth(client, server)
						require.NoError(t, clientErr)
						require.NoError(t, serverErr)
						pingPong(t, client, server)

						first, _, upstream := server.Hashes()
						assert.Equal(t, expectedLast(server.ConnectionState()), server.State().TranscriptHashes)
						signature := certificate && mode != tls.NoClientCert
						if version == tls.VersionTLS13 || version == tls.VersionTLS12 && (mode == tls.NoClientCert || signature) {
							assert.Equal(t, 1, bits.OnesCount16(uint16(upstream)), "s2n by itself: %#x", upstream)
						}
						if version == tls.VersionTLS13 || version == tls.VersionTLS12 && mode == tls.NoClientCert {
							assert.Equal(t, 1, bits.OnesCount16(uint16(first)), "the ClientHello's: %#x", first)
						}
					})
				}
			}
		}
	}
}

// s2n's own part: without a CertificateVerify of TLS 1.2 to come, it runs one hash,
// and all of them while one can still come. A pin that lost this fails here.
func TestTranscriptHashUpstream(t *testing.T) {
	run := func(version uint16, auth tls.ClientAuthType, certificate bool) (client, server cshim.HashSet) {
		a, b := tcpPair(t)
		cc, sc := clientConfig(t), serverConfig(t)
		cc.Policy, sc.Policy, sc.ClientAuth = "default_tls13", "default_tls13", auth
		if version == tls.VersionTLS12 {
			cc.Policy = "20240501"
		}
		if certificate {
			cc.Certificates = []s2n.Certificate{pair(t, pki().client)}
		}
		c, s := s2n.Client(a, cc), s2n.Server(b, sc)
		clientErr, serverErr := handshakeBoth(c, s)
		require.NoError(t, clientErr)
		require.NoError(t, serverErr)
		require.Equal(t, version, c.ConnectionState().Version)
		_, _, client = c.Hashes()
		_, _, server = s.Hashes()
		return client, server
	}
	one := func(set cshim.HashSet) bool { return bits.OnesCount16(uint16(set)) == 1 }
	const all = cshim.HashMD5 | cshim.HashSHA1 | cshim.HashSHA224 | cshim.HashSHA256 | cshim.HashSHA384 | cshim.HashSHA512 | cshim.HashMD5SHA1

	client, server := run(tls.VersionTLS13, tls.NoClientCert, false)
	assert.True(t, one(client) && one(server), "TLS 1.3: %#x %#x", client, server)
	client, server = run(tls.VersionTLS13, tls.RequireAndVerifyClientCert, true)
	assert.True(t, one(client) && one(server), "TLS 1.3, mutual: %#x %#x", client, server)
	client, server = run(tls.VersionTLS12, tls.RequireAndVerifyClientCert, true)
	assert.True(t, one(client) && one(server), "TLS 1.2, after CertificateVerify: %#x %#x", client, server)
	client, server = run(tls.VersionTLS12, tls.NoClientCert, false)
	assert.True(t, one(server), "a TLS 1.2 server that asks for no certificate: %#x", server)
	// What this module adds. Once s2n does that by itself, hash.c can be shorter.
	assert.Equal(t, all, client, "a TLS 1.2 client that was asked for no certificate")
	_, server = run(tls.VersionTLS12, tls.RequestClientCert, false)
	assert.Equal(t, all, server, "a TLS 1.2 server whose client has no certificate")
}

// After a HelloRetryRequest the transcript begins anew with a hash of the first ClientHello.
func TestTranscriptHashHelloRetryRequest(t *testing.T) {
	for _, certificate := range []bool{false, true} {
		for _, group := range []tls.CurveID{tls.CurveP384, tls.SecP256r1MLKEM768, tls.SecP384r1MLKEM1024} {
			t.Run(fmt.Sprintf("client/%v/certificate=%v", group, certificate), func(t *testing.T) {
				a, b := tcpPair(t)
				config := clientConfig(t)
				peer := goServerConfig()
				peer.CurvePreferences = []tls.CurveID{group}
				if certificate {
					config.Certificates = []s2n.Certificate{pair(t, pki().client)}
					peer.ClientAuth = tls.RequireAndVerifyClientCert
				}
				client, server := s2n.Client(a, config), tls.Server(b, peer)
				clientErr, serverErr := handshakeBoth(client, server)
				require.NoError(t, clientErr)
				require.NoError(t, serverErr)
				pingPong(t, client, server)
				require.True(t, client.ConnectionState().HelloRetryRequest)
				first, _, _ := client.Hashes()
				assert.Equal(t, firstHashes(t, s2n.DefaultFIPS, certificate), first)
				assert.Equal(t, expectedLast(client.ConnectionState()), client.State().TranscriptHashes)
			})
		}
		t.Run(fmt.Sprintf("server/certificate=%v", certificate), func(t *testing.T) {
			a, b := tcpPair(t)
			config := serverConfig(t)
			peer := goClientConfig()
			peer.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256} // sends X25519, which default_fips has not
			if certificate {
				config.ClientAuth = tls.RequireAndVerifyClientCert
				peer.Certificates = []tls.Certificate{pki().client.TLS}
			}
			client, server := tls.Client(a, peer), s2n.Server(b, config)
			clientErr, serverErr := handshakeBoth(client, server)
			require.NoError(t, clientErr)
			require.NoError(t, serverErr)
			pingPong(t, client, server)
			require.True(t, server.ConnectionState().HelloRetryRequest)
			assert.Equal(t, expectedLast(server.ConnectionState()), server.State().TranscriptHashes)
		})
	}
}

// The CertificateVerify of TLS 1.2 is signed over the transcript by the hash of its
// scheme. OpenSSL decides here which: it asks for that one alone, or has that alone.
func TestTranscriptHashClientAuthTLS12(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Fatal("needs openssl")
	}
	rsaClient := pki().ca.Issue(testcert.Options{Key: testcert.NewRSAKey(2048)}, "rsa client")
	p384Client := pki().ca.Issue(testcert.Options{Key: testcert.NewKey(elliptic.P384())}, "p384 client")
	for _, c := range []struct {
		name   string
		leaf   *testcert.Leaf
		scheme tls.SignatureScheme
	}{
		{"ECDSA+SHA1", pki().client, tls.ECDSAWithSHA1},
		{"ECDSA+SHA224", pki().client, 0x0303},
		{"ECDSA+SHA256", pki().client, tls.ECDSAWithP256AndSHA256},
		{"ECDSA+SHA384", pki().client, tls.ECDSAWithP384AndSHA384},
		{"ECDSA+SHA384", p384Client, tls.ECDSAWithP384AndSHA384},
		{"ECDSA+SHA512", pki().client, tls.ECDSAWithP521AndSHA512},
		{"RSA+SHA1", rsaClient, tls.PKCS1WithSHA1},
		{"RSA+SHA224", rsaClient, 0x0301},
		{"RSA+SHA256", rsaClient, tls.PKCS1WithSHA256},
		{"RSA+SHA384", rsaClient, tls.PKCS1WithSHA384},
		{"RSA+SHA512", rsaClient, tls.PKCS1WithSHA512},
		{"RSA-PSS+SHA256", rsaClient, tls.PSSWithSHA256},
		{"RSA-PSS+SHA384", rsaClient, tls.PSSWithSHA384},
		{"RSA-PSS+SHA512", rsaClient, tls.PSSWithSHA512},
	} {
		name := fmt.Sprintf("%s/%s", c.leaf.Cert.DNSNames[0], c.name)
		// 20240417 has them all. Without SHA-1, and in the policy that is used unless one says otherwise:
		policies := []s2n.Policy{"20240417"}
		if c.scheme != tls.ECDSAWithSHA1 && c.scheme != tls.PKCS1WithSHA1 && c.scheme != 0x0301 && c.scheme != 0x0303 {
			policies = append(policies, s2n.DefaultFIPS)
		}
		for _, policy := range policies {
			t.Run(fmt.Sprintf("client/%s/%s", policy, name), func(t *testing.T) {
				t.Parallel()
				server := startOpenSSL(t, "s_server", "-tls1_2", "-Verify", "2", "-verify_return_error", "-client_sigalgs", c.name)
				config := clientConfig(t)
				config.Policy = policy
				config.Certificates = []s2n.Certificate{pair(t, c.leaf)}
				client := s2n.Client(server.dial(t), config)
				require.NoError(t, client.Handshake(), "%s", server.log())
				require.EqualValues(t, tls.VersionTLS12, client.ConnectionState().Version)
				require.Equal(t, c.scheme, client.State().ClientSignatureScheme)
				first, _, _ := client.Hashes()
				assert.Equal(t, firstHashes(t, policy, true), first)
				assert.Equal(t, expectedLast(client.ConnectionState()), client.State().TranscriptHashes)
				require.NoError(t, client.Close())
			})
			t.Run(fmt.Sprintf("server/%s/%s", policy, name), func(t *testing.T) {
				t.Parallel()
				config := serverConfig(t)
				config.Policy, config.ClientAuth = policy, tls.RequireAndVerifyClientCert
				l, err := s2n.Listen("tcp", "127.0.0.1:0", config)
				require.NoError(t, err)
				defer l.Close()
				dir := t.TempDir()
				write(t, dir, "c.pem", c.leaf.CertPEM)
				write(t, dir, "k.pem", c.leaf.KeyPEM)
				cmd := exec.Command("openssl", "s_client", "-connect", l.Addr().String(), "-tls1_2", "-cipher", "ALL:@SECLEVEL=0",
					"-cert", filepath.Join(dir, "c.pem"), "-key", filepath.Join(dir, "k.pem"), "-client_sigalgs", c.name)
				out, err := cmd.StdinPipe()
				require.NoError(t, err)
				var log bytes.Buffer
				cmd.Stdout, cmd.Stderr = &log, &log
				require.NoError(t, cmd.Start())
				defer func() { out.Close(); _ = cmd.Wait() }()
				conn, err := l.Accept()
				require.NoError(t, err)
				defer conn.Close()
				server := conn.(*s2n.Conn)
				require.NoError(t, server.SetDeadline(time.Now().Add(20*time.Second)))
				require.NoError(t, server.Handshake())
				require.EqualValues(t, tls.VersionTLS12, server.ConnectionState().Version)
				require.Equal(t, c.scheme, server.State().ClientSignatureScheme)
				assert.Equal(t, expectedLast(server.ConnectionState()), server.State().TranscriptHashes)
			})
		}
	}
}

func write(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
}

// opensslServer is one "openssl s_server" on a port of its own choice.
type opensslServer struct {
	addr string
	mu   sync.Mutex
	text strings.Builder
}

func (s *opensslServer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *opensslServer) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *opensslServer) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.addr)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	return c
}

func startOpenSSL(t *testing.T, command string, args ...string) *opensslServer {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "c.pem", pki().server.CertPEM)
	write(t, dir, "k.pem", pki().server.KeyPEM)
	write(t, dir, "ca.pem", pki().ca.PEM)
	s := &opensslServer{}
	cmd := exec.Command("openssl", append([]string{command, "-accept", "127.0.0.1:0", "-cipher", "ALL:@SECLEVEL=0", "-cert", filepath.Join(dir, "c.pem"),
		"-key", filepath.Join(dir, "k.pem"), "-CAfile", filepath.Join(dir, "ca.pem")}, args...)...)
	stdin, err := cmd.StdinPipe() // at its end s_server would end
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = s, s
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); stdin.Close() })
	require.Eventually(t, func() bool {
		_, after, ok := strings.Cut(s.log(), "ACCEPT ")
		addr, _, whole := strings.Cut(after, "\n")
		s.addr = addr
		return ok && whole
	}, 20*time.Second, 10*time.Millisecond, "%s", s.log())
	return s
}
