package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/s2n-go/s2n"
)

const (
	// A client that says nothing holds its connection this long.
	handshakeTime = 10 * time.Second
	// Requests that run get this long after a signal.
	graceTime = 3 * time.Second
)

var clientAuthModes = map[string]tls.ClientAuthType{
	"none":               tls.NoClientCert,
	"request":            tls.RequestClientCert,
	"require-any":        tls.RequireAnyClientCert,
	"verify-if-given":    tls.VerifyClientCertIfGiven,
	"require-and-verify": tls.RequireAndVerifyClientCert,
}

func serve(ctx context.Context, t *tool, args []string) int {
	f := t.flags("-cert FILE -key FILE [-http | -echo] [flags]")
	asHTTP := f.Bool("http", false, "answer HTTP/1.1 requests with what was negotiated (the default)")
	asEcho := f.Bool("echo", false, "send back what comes")
	addr := f.String("addr", ":8443", "`address` to listen on; port 0 takes a free one")
	policy := f.String("policy", string(s2n.DefaultFIPS), "security policy, by `name`; \"s2n policies\" lists them")
	cert := f.String("cert", "", "certificate chain, leaf first: a PEM `file`")
	key := f.String("key", "", "the certificate's private key: a PEM `file`")
	alpn := f.String("alpn", "", "comma-separated `protocols` for ALPN (default http/1.1, none with -echo)")
	auth := f.String("client-auth", "none", "ask clients for a certificate: none, request, require-any, verify-if-given or require-and-verify")
	clientCA := f.String("client-ca", "", "roots for clients' certificates: a PEM `file` (default the system's)")
	if code, ok := t.parse(f, args, 0, 0); !ok {
		return code
	}
	mode := "http"
	switch {
	case *asHTTP && *asEcho:
		return t.misused("-http and -echo exclude each other")
	case *asEcho:
		mode = "echo"
	}
	if *cert == "" || *key == "" {
		return t.misused("-cert and -key are needed")
	}
	authMode, known := clientAuthModes[*auth]
	if !known {
		return t.misused("-client-auth: there is no %q", *auth)
	}
	if *clientCA != "" && authMode < tls.VerifyClientCertIfGiven {
		return t.misused("-client-ca has no use with -client-auth %s, which verifies nothing", *auth)
	}
	if code, ok := t.ready(*policy); !ok {
		return code
	}

	pair, err := s2n.LoadX509KeyPair(*cert, *key)
	if err != nil {
		return t.failed(err)
	}
	roots, err := loadRoots("-client-ca", *clientCA)
	if err != nil {
		return t.failed(err)
	}
	config := &s2n.Config{
		Policy: s2n.Policy(*policy), Certificates: []s2n.Certificate{pair}, NextProtos: words(*alpn),
		ClientAuth: authMode, ClientCAs: roots,
	}
	if mode == "http" && *alpn == "" {
		config.NextProtos = []string{"http/1.1"}
	}
	l, err := s2n.Listen("tcp", *addr, config)
	if err != nil {
		return t.failed(err)
	}
	t.listening(l.Addr().String(), mode, *policy)
	served := &servedListener{Listener: l, tool: t}
	if mode == "echo" {
		err = serveEcho(ctx, served)
	} else {
		err = serveHTTP(ctx, served)
	}
	if err != nil {
		return t.failed(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.json {
		writeJSON(t.events, event{Event: "closed", Addr: l.Addr().String()})
	} else {
		fmt.Fprintln(t.out, "closed")
	}
	return exitOK
}

func (t *tool) listening(addr, mode, policy string) {
	module := s2n.FIPS()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.json {
		writeJSON(t.events, event{Event: "listening", Addr: addr, Mode: mode, Policy: policy, Module: &module})
		return
	}
	fmt.Fprintf(t.out, "listening on %s (%s, policy %s, %s %s)\n", addr, mode, policy, module.Module, module.Version)
}

// handshaken prints how a handshake ended.
func (t *tool) handshaken(c *s2n.Conn, err error) {
	e := event{Event: "handshake", Remote: c.RemoteAddr().String()}
	if err != nil {
		e.Error = newErrorJSON(err)
	} else {
		e.Negotiated = newNegotiated(c)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.json:
		writeJSON(t.events, e)
	case err != nil:
		fmt.Fprintf(t.out, "%s: %s\n", e.Remote, e.Error.Message)
	default:
		fmt.Fprintf(t.out, "%s: %s\n", e.Remote, e.Negotiated)
	}
}

// servedListener gives connections that print their handshake.
type servedListener struct {
	net.Listener
	tool *tool
}

func (l *servedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &servedConn{Conn: c.(*s2n.Conn), tool: l.tool}, nil
}

// servedConn makes its handshake with the first Read, and prints how it ended.
type servedConn struct {
	*s2n.Conn
	tool *tool
	once sync.Once
	err  error
}

func (c *servedConn) Handshake() error {
	c.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), handshakeTime)
		defer cancel()
		c.err = c.Conn.HandshakeContext(ctx)
		c.tool.handshaken(c.Conn, c.err)
	})
	return c.err
}

func (c *servedConn) Read(b []byte) (int, error) {
	if err := c.Handshake(); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

type connKey struct{}

func serveHTTP(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           http.HandlerFunc(tell),
		ReadHeaderTimeout: handshakeTime + 5*time.Second,
		IdleTimeout:       2 * time.Minute,
		// What it would say of connections, the handshake's line said already.
		ErrorLog: log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c.(*servedConn).Conn)
		},
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		grace, cancel := context.WithTimeout(context.Background(), graceTime)
		defer cancel()
		if srv.Shutdown(grace) != nil {
			_ = srv.Close()
		}
	})
	err := srv.Serve(l)
	if !stop() {
		<-done
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// tell answers every request with what its connection negotiated: as JSON to who
// accepts that, else as text.
func tell(w http.ResponseWriter, r *http.Request) {
	n := newNegotiated(r.Context().Value(connKey{}).(*s2n.Conn))
	if strings.Contains(r.Header.Get("Accept"), "application/json") {
		w.Header().Set("Content-Type", "application/json")
		writeJSON(w, n)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "version    %s\nsuite      %s\ngroup      %s\nsignature  %s\npolicy     %s\nFIPS       %s\nstanding   %s\n",
		n.Version, n.Suite, n.Group, n.SignatureScheme, n.Policy, n.inFIPS(), n.Module.Standing)
}

func serveEcho(ctx context.Context, l net.Listener) error {
	var (
		mu    sync.Mutex
		conns = map[*servedConn]bool{}
		all   sync.WaitGroup
	)
	defer context.AfterFunc(ctx, func() {
		_ = l.Close()
		mu.Lock()
		defer mu.Unlock()
		for c := range conns {
			go func() { _ = c.Close() }() // each may wait for its close_notify
		}
	})()
	for {
		accepted, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				all.Wait()
				return nil
			}
			return err
		}
		c := accepted.(*servedConn)
		mu.Lock()
		conns[c] = true
		closing := ctx.Err() != nil // AfterFunc may have looked before this one was there
		mu.Unlock()
		if closing {
			_ = c.Close()
		}
		all.Go(func() {
			defer func() {
				_ = c.Close()
				mu.Lock()
				delete(conns, c)
				mu.Unlock()
			}()
			if c.Handshake() == nil {
				_, _ = io.Copy(c, c)
			}
		})
	}
}
