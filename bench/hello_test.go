package main

import (
	"crypto/tls"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func captureHello(t *testing.T, config *tls.Config) []byte {
	t.Helper()
	a, b := net.Pipe()
	go func() {
		_ = tls.Client(a, config).Handshake()
		a.Close()
	}()
	defer b.Close()
	buf := make([]byte, 1<<14)
	n, err := b.Read(buf)
	require.NoError(t, err)
	return buf[:n]
}

func TestParseHello(t *testing.T) {
	record := captureHello(t, &tls.Config{
		ServerName: "localhost", CurvePreferences: []tls.CurveID{tls.X25519MLKEM768, tls.X25519, tls.CurveP256},
	})
	h, err := parseHello(record)
	require.NoError(t, err)
	require.Equal(t, Hello{
		Bytes: len(record), Groups: []string{"X25519MLKEM768", "X25519", "P-256"}, Shares: []string{"X25519MLKEM768", "X25519"},
	}, h)

	h, err = parseHello(captureHello(t, &tls.Config{ServerName: "localhost", MaxVersion: tls.VersionTLS12}))
	require.NoError(t, err)
	require.Empty(t, h.Shares)

	for i := range record {
		_, err := parseHello(record[:i])
		require.Error(t, err, i)
	}
	record[0] = 21
	_, err = parseHello(record)
	require.Error(t, err)
}
