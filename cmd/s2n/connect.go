package main

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/s2n-go/s2n"
)

// connectTime bounds TCP's connection and the handshake together.
const connectTime = 15 * time.Second

func connect(ctx context.Context, t *tool, args []string) int {
	f := t.flags("[flags] HOST:PORT\n\n" +
		"Prints what was negotiated on standard error and pipes standard input and output\n" +
		"through the connection. With -get it prints the answer's body instead, and with\n" +
		"-get -json all goes to standard output, a line for the handshake and one for the answer.")
	policy := f.String("policy", string(s2n.DefaultFIPS), "security policy, by `name`; \"s2n policies\" lists them")
	ca := f.String("ca", "", "trusted roots: a PEM `file` (default the system's)")
	serverName := f.String("servername", "", "the `name` that the server's certificate must have (default HOST)")
	cert := f.String("cert", "", "client certificate chain, leaf first: a PEM `file`")
	key := f.String("key", "", "the client certificate's private key: a PEM `file`")
	alpn := f.String("alpn", "", "comma-separated `protocols` for ALPN")
	get := f.String("get", "", "send an HTTP/1.1 GET for this `path` and print the answer's body")
	if code, ok := t.parse(f, args, 1, 1); !ok {
		return code
	}
	if *get == "" {
		t.events = t.errs // standard output is the peer's
	}
	addr := f.Arg(0)
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host == "" || port == "" {
		return t.misused("%q is not of the form HOST:PORT, such as example.com:443 or [::1]:8443", addr)
	}
	if (*cert == "") != (*key == "") {
		return t.misused("-cert and -key go together")
	}
	if *get != "" && (*get)[0] != '/' {
		return t.misused("-get: the path begins with /")
	}
	if code, ok := t.ready(*policy); !ok {
		return code
	}

	config := &s2n.Config{Policy: s2n.Policy(*policy), ServerName: *serverName, NextProtos: words(*alpn)}
	if config.RootCAs, err = loadRoots("-ca", *ca); err != nil {
		return t.failed(err)
	}
	if *cert != "" {
		pair, err := s2n.LoadX509KeyPair(*cert, *key)
		if err != nil {
			return t.failed(err)
		}
		config.Certificates = []s2n.Certificate{pair}
	}

	dialer := s2n.Dialer{NetDialer: &net.Dialer{Timeout: connectTime}, Config: config}
	raw, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		if ctx.Err() != nil {
			return exitInterrupted
		}
		if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown && *ca == "" {
			err = fmt.Errorf("%w; name its root with -ca, if you trust it", err)
		}
		return t.failed(err)
	}
	c := raw.(*s2n.Conn)
	// A signal closes the connection, with close_notify, and so ends what waits for it.
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	defer c.Close()

	n := newNegotiated(c)
	if t.json {
		writeJSON(t.events, event{Event: "handshake", Remote: c.RemoteAddr().String(), Negotiated: n})
	} else {
		fmt.Fprintf(t.errs, "%s: %s\n", c.RemoteAddr(), n)
	}
	if *get != "" {
		err = t.get(c, net.JoinHostPort(hostOr(*serverName, host), port), *get)
	} else {
		err = pipe(c, t.in, t.out)
	}
	if ctx.Err() != nil {
		return exitInterrupted
	}
	if err != nil {
		return t.failed(err)
	}
	return exitOK
}

func hostOr(name, host string) string {
	if name != "" {
		return name
	}
	return host
}

// get makes one request. An answer that is no 2xx is a failure.
func (t *tool) get(c *s2n.Conn, host, path string) error {
	req, err := http.NewRequest(http.MethodGet, "https://"+host+path, nil)
	if err != nil {
		return fmt.Errorf("-get: %w", err)
	}
	req.Close = true
	if t.json {
		req.Header.Set("Accept", "application/json")
	}
	if err := req.Write(c); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), req)
	if err != nil {
		return fmt.Errorf("the answer is no HTTP: %w", err)
	}
	defer resp.Body.Close()
	if t.json {
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		writeJSON(t.events, event{Event: "response", Status: resp.StatusCode, Body: string(body)})
	} else if _, err := io.Copy(t.out, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("the server answered %s", resp.Status)
	}
	return nil
}

// pipe sends all of in and writes all that comes to out. It ends when the peer
// does; the end of in is told to the peer by close_notify.
func pipe(c *s2n.Conn, in io.Reader, out io.Writer) error {
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(c, in)
		// Also after an error: if it was in's, the peer must learn of the end, and if
		// it was the connection's, what the peer sent before is still to be read.
		sent <- errors.Join(err, c.CloseWrite())
	}()
	_, err := io.Copy(out, c)
	select {
	case sendErr := <-sent:
		if sendErr != nil && !errors.Is(sendErr, net.ErrClosed) {
			return sendErr
		}
	default: // the peer ended first; in may block for ever
	}
	return err
}
