package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os/exec"
	"strings"
)

// Our names of versions, and how curl and OpenSSL spell them.
var opensslNames = map[string]string{"TLS 1.3": "TLSv1.3", "TLS 1.2": "TLSv1.2"}

// lines are all handshakes of the demo. OpenSSL has hybrids from 3.5 on only, so it
// and curl are held to P-256; crypto/tls shows the hybrids.
func (d *demo) lines(ctx context.Context) ([]line, error) {
	curl, err := firstWords(ctx, 2, "curl", "--version")
	if err != nil {
		return nil, err
	}
	openssl, err := firstWords(ctx, 2, "openssl", "version")
	if err != nil {
		return nil, err
	}
	var all []line
	for _, version := range []string{"TLS 1.3", "TLS 1.2"} {
		goGroup := "X25519MLKEM768"
		if version == "TLS 1.2" {
			goGroup = "P-256"
		}
		all = append(all,
			line{curl + " -> serve", version, "P-256", d.curl},
			line{openssl + " s_client -> serve", version, "P-256", d.sClient},
			line{"crypto/tls client -> serve", version, goGroup, d.goClient},
		)
	}
	for _, version := range []string{"TLS 1.3", "TLS 1.2"} {
		all = append(all, line{"connect -> " + openssl + " s_server", version, "P-256", d.sServer})
	}
	for _, curve := range []tls.CurveID{tls.X25519MLKEM768, tls.SecP256r1MLKEM768, tls.SecP384r1MLKEM1024, tls.CurveP256} {
		group := curve.String()
		if curve == tls.CurveP256 {
			group = "P-256"
		}
		all = append(all, line{"connect -> crypto/tls server", "TLS 1.3", group, func(ctx context.Context, _ *line) (*negotiated, error) {
			return d.goServer(ctx, curve)
		}})
	}
	return all, nil
}

func firstWords(ctx context.Context, n int, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	words := strings.Fields(string(out))
	return strings.Join(words[:min(n, len(words))], " "), nil
}

// output runs a program and puts what it said into its error.
func output(cmd *exec.Cmd) ([]byte, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cmd.Args[0], err, strings.TrimSpace(out.String()+errs.String()))
	}
	return out.Bytes(), nil
}

// parse reads the answer of "s2n serve".
func parse(answer []byte) (*negotiated, error) {
	n := new(negotiated)
	if err := json.Unmarshal(answer, n); err != nil {
		return nil, fmt.Errorf("the answer %q: %w", answer, err)
	}
	return n, nil
}

func (d *demo) curl(ctx context.Context, l *line) (*negotiated, error) {
	_, port, _ := net.SplitHostPort(d.serve)
	version := strings.TrimPrefix(l.version, "TLS ")
	out, err := output(exec.CommandContext(ctx, "curl", "--silent", "--show-error", "--fail", "--noproxy", "*",
		"--tlsv"+version, "--tls-max", version, "--curves", "P-256", "--cacert", d.file("ca.pem"), "--resolve", "localhost:"+port+":127.0.0.1",
		"--header", "Accept: application/json", "https://localhost:"+port+"/"))
	if err != nil {
		return nil, err
	}
	return parse(out)
}

func (d *demo) sClient(ctx context.Context, l *line) (*negotiated, error) {
	cmd := exec.CommandContext(ctx, "openssl", "s_client", "-connect", d.serve, "-servername", "localhost",
		"-CAfile", d.file("ca.pem"), "-verify_return_error", "-verify_hostname", "localhost", "-ign_eof", "-groups", "P-256",
		"-"+strings.NewReplacer("TLSv1", "tls1", ".", "_").Replace(opensslNames[l.version]))
	cmd.Stdin = strings.NewReader("GET / HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\nConnection: close\r\n\r\n")
	out, err := output(cmd)
	if err != nil {
		return nil, err
	}
	n, err := parse([]byte(lineWith(string(out), `{"version"`)))
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return n, agree(string(out), l)
}

// agree checks what OpenSSL says it negotiated.
func agree(output string, l *line) error {
	if said := lineWith(output, "Cipher is"); !strings.Contains(said, opensslNames[l.version]) {
		return fmt.Errorf("OpenSSL says %q", said)
	}
	return nil
}

func (d *demo) goClient(ctx context.Context, l *line) (*negotiated, error) {
	config := &tls.Config{RootCAs: d.ca.Pool(), ServerName: "localhost", MinVersion: tls.VersionTLS13}
	if l.version == "TLS 1.2" {
		config.MinVersion, config.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+d.serve+"/", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	n, err := parse(body)
	if err != nil {
		return nil, err
	}
	return n, sameAs(n, *resp.TLS)
}

// sameAs holds our account of a connection against crypto/tls's.
func sameAs(n *negotiated, theirs tls.ConnectionState) error {
	group := theirs.CurveID.String()
	if theirs.CurveID == tls.CurveP256 {
		group = "P-256"
	}
	if n.Version != tls.VersionName(theirs.Version) || n.Suite != tls.CipherSuiteName(theirs.CipherSuite) || n.Group != group {
		return fmt.Errorf("crypto/tls says %s, %s, %s; s2n says %s, %s, %s", tls.VersionName(theirs.Version),
			tls.CipherSuiteName(theirs.CipherSuite), group, n.Version, n.Suite, n.Group)
	}
	return nil
}

// connect runs "s2n connect -json -get" and returns its account and the answer's body.
func (d *demo) connect(ctx context.Context, addr string) (n *negotiated, body string, err error) {
	out, err := output(exec.CommandContext(ctx, d.tool, "connect", "-json", "-ca", d.file("ca.pem"), "-servername", "localhost", "-get", "/", addr))
	if err != nil {
		return nil, "", err
	}
	for l := range bytes.Lines(out) {
		var e struct {
			Negotiated *negotiated
			Body       string
		}
		if err := json.Unmarshal(l, &e); err != nil {
			return nil, "", fmt.Errorf("s2n connect printed %q: %w", l, err)
		}
		if e.Negotiated != nil {
			n = e.Negotiated
		}
		body += e.Body
	}
	if n == nil {
		return nil, "", fmt.Errorf("s2n connect printed %q", out)
	}
	return n, body, nil
}

func (d *demo) sServer(ctx context.Context, l *line) (*negotiated, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// -www answers any GET with a page on the connection.
	cmd := exec.CommandContext(ctx, "openssl", "s_server", "-accept", "127.0.0.1:0", "-www", "-groups", "P-256",
		"-cert", d.file("cert.pem"), "-key", d.file("key.pem"), "-cert_chain", d.file("cert.pem"),
		"-"+strings.NewReplacer("TLSv1", "tls1", ".", "_").Replace(opensslNames[l.version]))
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer func() {
		cancel()
		_, _ = io.Copy(io.Discard, stdout)
		_ = cmd.Wait()
	}()
	in := bufio.NewScanner(stdout)
	addr := ""
	for addr == "" && in.Scan() {
		if fields := strings.Fields(in.Text()); len(fields) == 2 && fields[0] == "ACCEPT" {
			addr = fields[1]
		}
	}
	if addr == "" {
		return nil, fmt.Errorf("openssl s_server did not say where it listens: %s", &errs)
	}
	n, page, err := d.connect(ctx, addr)
	if err != nil {
		return nil, err
	}
	return n, agree(page, l)
}

func (d *demo) goServer(ctx context.Context, curve tls.CurveID) (*negotiated, error) {
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{d.leaf.TLS}, CurvePreferences: []tls.CurveID{curve},
	})
	if err != nil {
		return nil, err
	}
	seen := make(chan tls.ConnectionState, 1)
	srv := &http.Server{
		Handler:  http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- *r.TLS }),
		ErrorLog: log.New(io.Discard, "", 0),
	}
	defer srv.Close()
	go func() { _ = srv.Serve(l) }()
	n, _, err := d.connect(ctx, l.Addr().String())
	if err != nil {
		return nil, err
	}
	select {
	case theirs := <-seen:
		return n, sameAs(n, theirs)
	default:
		return nil, errors.New("the server saw no request")
	}
}
