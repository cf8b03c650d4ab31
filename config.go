package s2n

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/s2n-go/s2n/cshim"
)

// Config says how connections are made. It is compiled into an s2n_config once for
// each role, on first use, and then shared by any number of connections; it must
// not be changed after that.
type Config struct {
	// Policy is what may be negotiated; "" is DefaultFIPS.
	Policy Policy

	// KeyShareMode is which keys a client sends in its ClientHello.
	KeyShareMode KeyShareMode

	// Certificates are the server's, of which it picks by name and by what the
	// client can verify, or the client's, which can have one.
	Certificates []Certificate

	// RootCAs are whom a client trusts, ClientCAs whom a server trusts with the
	// certificates of its clients. nil: the system's roots.
	RootCAs, ClientCAs *CertPool

	// ClientAuth is what a server asks of its clients; all five modes of
	// tls.ClientAuthType. Other than NoClientCert, it also turns off resumption:
	// s2n neither issues nor accepts tickets then.
	ClientAuth tls.ClientAuthType

	// ServerName is the name that the server's certificate must have, by the rules
	// of x509.Certificate.VerifyHostname, and what SNI says unless it is an IP
	// address. Dial takes it from its address where it is empty.
	ServerName string

	// InsecureSkipVerify takes any certificate for any name: only for tests.
	InsecureSkipVerify bool

	// NextProtos are the protocols for ALPN, in order of preference. A server that
	// has none in common with the client ends the handshake (RFC 7301, 3.2). With
	// http.Server leave "h2" out: it speaks HTTP/2 on a *tls.Conn only.
	NextProtos []string

	// SessionTicketsDisabled is heeded by what resumes sessions. This version never
	// resumes: each handshake is a full one, whatever this says.
	SessionTicketsDisabled bool

	// RecordSizing is how large the records are that Write makes.
	RecordSizing RecordSizing

	// Blinding is what happens after a record that did not decrypt.
	Blinding Blinding

	mu       sync.Mutex
	compiled [2]atomic.Pointer[cshim.Config] // by role
}

// RecordSizing is how large the records are that Write makes.
type RecordSizing uint8

const (
	// DynamicRecords begins a burst with records that fit a TCP segment, so that
	// the peer can use the first bytes as they arrive, and goes on with full ones
	// after 16 KiB; a second of silence ends the burst.
	DynamicRecords RecordSizing = iota
	// LowLatency makes all records fit a segment (s2n_connection_prefer_low_latency).
	LowLatency
	// Throughput makes all records full (s2n_connection_prefer_throughput).
	Throughput
)

// Blinding is what happens between a record that did not decrypt and the close of
// the socket. The caller has its error at once in either case.
type Blinding uint8

const (
	// BlindingDelay holds the alert and the close of the socket back for a random
	// 10 to 30 seconds, as s2n does against attacks on timing; Close returns at
	// once, and a timer without goroutine or thread closes the socket.
	BlindingDelay Blinding = iota
	// BlindingOff sends the alert and closes at once.
	BlindingOff
)

const (
	roleServer = cshim.Server
	roleClient = cshim.Client
)

// maxProtosBytes is what an extension of 65,535 bytes holds beside the list's own length.
const maxProtosBytes = 65533

var defaultConfig Config

// Clone returns a copy that may be changed, also of a Config in use.
func (c *Config) Clone() *Config {
	if c == nil {
		return nil
	}
	return &Config{
		Policy:                 c.Policy,
		KeyShareMode:           c.KeyShareMode,
		Certificates:           c.Certificates,
		RootCAs:                c.RootCAs,
		ClientCAs:              c.ClientCAs,
		ClientAuth:             c.ClientAuth,
		ServerName:             c.ServerName,
		InsecureSkipVerify:     c.InsecureSkipVerify,
		NextProtos:             c.NextProtos,
		SessionTicketsDisabled: c.SessionTicketsDisabled,
		RecordSizing:           c.RecordSizing,
		Blinding:               c.Blinding,
	}
}

// Validate compiles now, and so meets every error in the Config that a handshake
// would meet: for a server where there are Certificates, for a client where
// anything is set that only clients use, or nothing at all.
func (c *Config) Validate() error {
	server := len(c.Certificates) > 0
	client := !server || c.RootCAs != nil || c.ServerName != "" || c.InsecureSkipVerify
	var errs []error
	if server {
		_, err := c.compile(roleServer)
		errs = append(errs, err)
	}
	if client {
		_, err := c.compile(roleClient)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// compile returns the s2n_config for a role. A failure is not kept: the next call tries again.
func (c *Config) compile(role uint8) (*cshim.Config, error) {
	if done := c.compiled[role].Load(); done != nil {
		return done, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if done := c.compiled[role].Load(); done != nil {
		return done, nil
	}
	params, err := c.params(role)
	if err != nil {
		return nil, err
	}
	made, r := cshim.NewConfig(params)
	if r.Status != cshim.OK {
		err := s2nError("config", r)
		if err.Name == "S2N_ERR_SECURITY_POLICY_INCOMPATIBLE_CERT" {
			err.Message = fmt.Sprintf("Certificates[%d] under policy %q: %s", r.N, params.Policy, err.Message)
		}
		return nil, err
	}
	c.compiled[role].Store(made)
	return made, nil
}

func (c *Config) params(role uint8) (*cshim.ConfigParams, error) {
	if r := cshim.Init(); r.Status != cshim.OK {
		return nil, s2nError("init", r)
	}
	policy, err := c.Policy.Info()
	if err != nil {
		return nil, err
	}
	shares, err := c.keyShares(policy)
	if err != nil {
		return nil, err
	}
	p := &cshim.ConfigParams{
		Policy: string(policy.Name), Protocols: c.NextProtos, Role: role, Shares: shares, Blinding: c.Blinding == BlindingDelay,
	}
	listed := 0
	for _, name := range c.NextProtos {
		// ALPN allows one byte too, but s2n's client would then not see what was chosen.
		if len(name) < 2 || len(name) > 255 {
			return nil, configError("config", "NextProtos: %q has %d bytes; 2 to 255 are taken", name, len(name))
		}
		if strings.IndexByte(name, 0) >= 0 { // s2n keeps the chosen one as a C string
			return nil, configError("config", "NextProtos: %q has a NUL byte", name)
		}
		listed += 1 + len(name)
	}
	if listed > maxProtosBytes {
		return nil, configError("config", "NextProtos: %d bytes in all; ALPN takes %d", listed, maxProtosBytes)
	}
	if c.Blinding > BlindingOff {
		return nil, configError("config", "Blinding: there is no %d", c.Blinding)
	}
	switch c.RecordSizing {
	case DynamicRecords:
		p.Records = cshim.RecordsDynamic
	case LowLatency:
		p.Records = cshim.RecordsLowLatency
	case Throughput:
		p.Records = cshim.RecordsThroughput
	default:
		return nil, configError("config", "RecordSizing: there is no %d", c.RecordSizing)
	}
	for i, cert := range c.Certificates {
		if cert.c == nil {
			return nil, configError("config", "Certificates[%d] is the zero Certificate; use X509KeyPair or LoadX509KeyPair", i)
		}
		p.Certs = append(p.Certs, cert.c.shim)
	}
	if role == roleClient {
		return p, c.clientParams(p)
	}
	return p, c.serverParams(p)
}

func (c *Config) clientParams(p *cshim.ConfigParams) error {
	if len(p.Certs) > 1 {
		return configError("config", "Certificates: a client can have one certificate, not %d", len(p.Certs))
	}
	if _, err := serverNameToSend(c.ServerName); err != nil {
		return err
	}
	if p.SkipVerify = c.InsecureSkipVerify; p.SkipVerify {
		return nil
	}
	return setRoots(p, c.RootCAs, "RootCAs")
}

func (c *Config) serverParams(p *cshim.ConfigParams) error {
	if len(p.Certs) == 0 {
		return configError("config", "Certificates: a server needs at least one")
	}
	switch c.ClientAuth {
	case tls.NoClientCert:
		p.ClientAuth = cshim.AuthNone
	case tls.RequestClientCert, tls.VerifyClientCertIfGiven:
		p.ClientAuth = cshim.AuthOptional
	case tls.RequireAnyClientCert, tls.RequireAndVerifyClientCert:
		p.ClientAuth = cshim.AuthRequired
	default:
		return configError("config", "ClientAuth: there is no %d", c.ClientAuth)
	}
	if c.ClientAuth >= tls.VerifyClientCertIfGiven {
		return setRoots(p, c.ClientCAs, "ClientCAs")
	}
	p.SkipVerify = true
	return nil
}

func setRoots(p *cshim.ConfigParams, roots *CertPool, field string) error {
	if roots == nil {
		system, err := systemPool()
		if err != nil {
			return err
		}
		roots = system
	}
	if roots.p == nil {
		return configError("config", "%s is the zero CertPool; use NewCertPool", field)
	}
	store, err := roots.shimStore()
	if err != nil {
		if e, ok := errors.AsType[*Error](err); ok {
			e.Message = field + ": " + e.Message
		}
		return err
	}
	p.Store = store
	return nil
}
