// Command side-s2n is package s2n as a side of the comparison.
package main

import (
	"crypto/tls"
	"flag"
	"net"
	"runtime"
	"strings"

	"github.com/s2n-go/s2n"
	"github.com/s2n-go/s2n/bench/internal/proto"
	"github.com/s2n-go/s2n/bench/internal/side"
)

// A profile is a choice of policies: what to set so that a group is negotiated.
type profile map[what]s2n.Policy

type what struct {
	version uint16
	group   uint16
}

var profiles = map[string]profile{
	// The default policy, and for what it would not negotiate by itself s2n's FIPS
	// policies that would. X25519 alone is in none of those.
	"default": {
		{tls.VersionTLS13, uint16(s2n.X25519MLKEM768)}: s2n.DefaultFIPS,
		{tls.VersionTLS13, uint16(s2n.P256)}:           "20230317",
		{tls.VersionTLS13, uint16(s2n.X25519)}:         "20241106",
		{tls.VersionTLS12, uint16(s2n.P256)}:           "20240502",
	},
	// The module's own policies for hybrids.
	"2026": {
		{tls.VersionTLS13, uint16(s2n.X25519MLKEM768)}:    "s2ngo-fips-pq-2026",
		{tls.VersionTLS13, uint16(s2n.SecP256r1MLKEM768)}: "s2ngo-fips-nist-2026",
	},
}

func main() {
	certs := flag.String("certs", "", "folder with the PEM files")
	name := flag.String("profile", "default", "which policies: default or 2026")
	flag.Parse()
	p, ok := profiles[*name]
	if !ok {
		panic("no profile " + *name)
	}
	if err := s2n.RequireFIPS(); err != nil {
		panic(err)
	}
	v := s2n.Version()
	side.Main(side.Side{
		Facts: map[string]string{
			"library": strings.ReplaceAll("s2n-tls "+v.S2N+"+"+v.AWSLC, " ", "_"),
			"build":   v.Linked[:12],
			"go":      runtime.Version(),
		},
		Ends: p.ends,
		AEAD: newAEAD,
	}, *certs)
}

func (p profile) ends(spec proto.Spec, files side.Files) (side.Ends, error) {
	var none side.Ends
	policy, ok := p[what{spec.Version, spec.Group}]
	if !ok {
		return none, proto.Unsupported("no policy of this side prefers %v", s2n.Group(spec.Group))
	}
	if _, err := policy.Info(); err != nil {
		return none, proto.Unsupported("%v", err)
	}
	client, server, err := configs(spec, files)
	if err != nil {
		return none, err
	}
	client.Policy, server.Policy = policy, policy
	return side.Ends{
		Client: func(c net.Conn) side.Conn { return s2n.Client(c, client) },
		Server: func(c net.Conn) side.Conn { return s2n.Server(c, server) },
	}, nil
}

func configs(spec proto.Spec, files side.Files) (client, server *s2n.Config, err error) {
	client = &s2n.Config{ServerName: side.ServerName, SessionTicketsDisabled: true}
	server = &s2n.Config{SessionTicketsDisabled: true}
	ca, err := files.CA(spec.Cert)
	if err != nil {
		return nil, nil, err
	}
	client.RootCAs = s2n.NewCertPool()
	client.RootCAs.AppendCertsFromPEM(ca)
	if server.Certificates, err = pair(files, "server", spec.Cert); err != nil {
		return nil, nil, err
	}
	if spec.Mutual {
		server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, client.RootCAs
		if client.Certificates, err = pair(files, "client", spec.Cert); err != nil {
			return nil, nil, err
		}
	}
	return client, server, nil
}

func pair(files side.Files, who, kind string) ([]s2n.Certificate, error) {
	chain, key, err := files.Chain(who, kind)
	if err != nil {
		return nil, err
	}
	c, err := s2n.X509KeyPair(chain, key)
	return []s2n.Certificate{c}, err
}
