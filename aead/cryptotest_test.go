//go:build s2n_cryptotest

package aead_test

import (
	"crypto/cipher"
	"crypto/s2naead" // an overlay puts it there: conformance_test.go
	"testing"
)

func TestCryptotest(t *testing.T) {
	eachKind(t, func(t *testing.T, k kind, ours, _ cipher.AEAD) {
		key := bytesOf(60, 32)
		s2naead.TestAEAD(t, func() (cipher.AEAD, error) { return k.ours(key) })
		s2naead.NoExtraMethods(t, &ours)
	})
}
