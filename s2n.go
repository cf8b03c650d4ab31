package s2n

import (
	"context"
	"errors"
	"net"
	"os"
	"time"
)

// Client returns a client side of TLS over conn. The handshake runs with the first
// Handshake, Read or Write. config must have ServerName set, or
// InsecureSkipVerify; nil is a Config with neither, whose handshake fails.
func Client(conn net.Conn, config *Config) *Conn {
	return newConn(conn, config, roleClient, "")
}

// Server returns a server side of TLS over conn. config must hold a certificate.
func Server(conn net.Conn, config *Config) *Conn {
	return newConn(conn, config, roleServer, "")
}

// Dial connects to addr over network ("tcp", "tcp4", "tcp6", "unix") and completes
// the handshake. Where config has no ServerName, the host of addr is the name
// that the certificate must have.
func Dial(network, addr string, config *Config) (*Conn, error) {
	return dial(context.Background(), new(net.Dialer), network, addr, config)
}

// DialWithDialer is Dial with a dialer, whose Timeout and Deadline hold for the
// connection and the handshake together.
func DialWithDialer(dialer *net.Dialer, network, addr string, config *Config) (*Conn, error) {
	return dial(context.Background(), dialer, network, addr, config)
}

// Dialer dials TLS connections with one Config and one net.Dialer, like tls.Dialer.
// The connections that it returns are *Conn.
type Dialer struct {
	NetDialer *net.Dialer // nil: the zero net.Dialer
	Config    *Config     // nil: the zero Config
}

// Dial is DialContext without a context.
func (d *Dialer) Dial(network, addr string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, addr)
}

// DialContext connects and completes the handshake; ctx bounds both, and not the
// connection that it returned.
func (d *Dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	dialer := d.NetDialer
	if dialer == nil {
		dialer = new(net.Dialer)
	}
	c, err := dial(ctx, dialer, network, addr, d.Config)
	if err != nil {
		return nil, err // not a nil *Conn in a net.Conn
	}
	return c, nil
}

func dial(ctx context.Context, dialer *net.Dialer, network, addr string, config *Config) (*Conn, error) {
	// One bound for both: the sooner of Timeout and Deadline.
	deadline := dialer.Deadline
	if dialer.Timeout != 0 {
		if t := time.Now().Add(dialer.Timeout); deadline.IsZero() || t.Before(deadline) {
			deadline = t
		}
	}
	var cancel context.CancelFunc
	if !deadline.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, deadline)
		defer cancel()
	}
	if config == nil {
		config = &defaultConfig
	}
	// A Config that cannot work should not cost a connection.
	if _, err := config.compile(roleClient); err != nil {
		return nil, err
	}
	raw, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	name := ""
	if config.ServerName == "" {
		name, _, err = net.SplitHostPort(addr)
		if err != nil {
			name = addr // a Unix socket's path: no certificate has it, and the error says so
		}
	}
	conn := newConn(raw, config, roleClient, name)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		if cancel != nil && errors.Is(err, context.DeadlineExceeded) {
			err = &Error{Op: "dial", Kind: KindIO, Message: "the dialer's time ran out in the handshake with " + addr, Err: os.ErrDeadlineExceeded}
		}
		return nil, err
	}
	return conn, nil
}

// Listen listens like net.Listen and returns TLS connections. The Config is
// checked now, and must hold a certificate.
func Listen(network, laddr string, config *Config) (net.Listener, error) {
	if config == nil {
		config = &defaultConfig
	}
	if _, err := config.compile(roleServer); err != nil {
		return nil, err
	}
	l, err := net.Listen(network, laddr)
	if err != nil {
		return nil, err
	}
	return NewListener(l, config), nil
}

// NewListener wraps inner. Accept returns a *Conn and never handshakes, so that a
// silent client stalls only its own connection.
func NewListener(inner net.Listener, config *Config) net.Listener {
	return &listener{Listener: inner, config: config}
}

type listener struct {
	net.Listener
	config *Config
}

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return Server(c, l.config), nil
}
