package aead_test

import (
	"bufio"
	"bytes"
	"crypto/cipher"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/s2n-go/s2n/aead"
)

// vectorFile opens a file of those that "make vectors" downloads. Without them the
// test fails, but for -short.
func vectorFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../third_party/out/vectors", name))
	if os.IsNotExist(err) {
		if testing.Short() {
			t.Skip("the vectors are not there, and -short does without; \"make vectors\" downloads them")
		}
		t.Fatal("the vectors are not there: \"make vectors\" downloads them (or run the tests with -short)")
	}
	require.NoError(t, err)
	return b
}

// A vector is a message with what must come of it.
type vector struct {
	name                         string
	key, nonce, ad, text, sealed []byte
	tagBits                      int
	valid                        bool // Open takes it
}

// tally counts vectors by whether they were run, or why not.
type tally map[string]int

func (n tally) run(t *testing.T, v vector) {
	t.Helper()
	switch {
	case len(v.key) != 16 && len(v.key) != 32:
		n[fmt.Sprintf("not served: key of %d bits", len(v.key)*8)]++
		_, err := aead.NewAESGCM(v.key)
		require.Error(t, err)
		return
	case v.tagBits != 128:
		n["not served: tag below 128 bits"]++
		return
	case len(v.nonce) != 12:
		n["not served: nonce other than 96 bits"]++
		a, err := aead.NewAESGCM(v.key)
		require.NoError(t, err)
		require.Panics(t, func() { a.Seal(nil, v.nonce, v.text, v.ad) })
		require.Panics(t, func() { _, _ = a.Open(nil, v.nonce, v.sealed, v.ad) })
		return
	}
	n[map[bool]string{true: "run: valid", false: "run: invalid"}[v.valid]]++
	ours, err := aead.NewAESGCM(v.key)
	require.NoError(t, err, v.name)
	random, err := aead.NewAESGCMRandomNonce(v.key)
	require.NoError(t, err, v.name)

	if v.valid {
		require.True(t, bytes.Equal(v.sealed, ours.Seal(nil, v.nonce, v.text, v.ad)), "%s: Seal", v.name)
	}
	for _, c := range []struct {
		a             cipher.AEAD
		nonce, sealed []byte
	}{{ours, v.nonce, v.sealed}, {random, nil, slices.Concat(v.nonce, v.sealed)}} {
		got, err := c.a.Open(nil, c.nonce, c.sealed, v.ad)
		if v.valid {
			require.NoError(t, err, "%s: Open", v.name)
			require.True(t, bytes.Equal(v.text, got), "%s: Open", v.name)
		} else {
			require.Error(t, err, "%s: Open", v.name)
			require.Nil(t, got, v.name)
		}
	}
}

// done prints the tally and compares it: the vectors are pinned, so none is lost
// unseen.
func (n tally) done(t *testing.T, want tally) {
	t.Helper()
	for _, reason := range slices.Sorted(maps.Keys(n)) {
		t.Logf("%6d %s", n[reason], reason)
	}
	assert.Equal(t, want, n)
}

func TestWycheproof(t *testing.T) {
	var file struct {
		NumberOfTests int
		TestGroups    []struct {
			TagSize int
			Tests   []struct {
				TcID                                        int
				Comment, Key, Iv, Aad, Msg, Ct, Tag, Result string
			}
		}
	}
	require.NoError(t, json.Unmarshal(vectorFile(t, "wycheproof/aes_gcm_test.json"), &file))
	n := tally{}
	for _, g := range file.TestGroups {
		for _, v := range g.Tests {
			file.NumberOfTests--
			require.Contains(t, []string{"valid", "invalid"}, v.Result)
			n.run(t, vector{
				name: fmt.Sprintf("%d %s", v.TcID, v.Comment), key: unhex(t, v.Key), nonce: unhex(t, v.Iv), ad: unhex(t, v.Aad),
				text: unhex(t, v.Msg), sealed: unhex(t, v.Ct+v.Tag), tagBits: g.TagSize, valid: v.Result == "valid",
			})
		}
	}
	assert.Zero(t, file.NumberOfTests)
	n.done(t, tally{
		"run: valid": 79, "run: invalid": 54,
		"not served: key of 192 bits": 103, "not served: nonce other than 96 bits": 80,
	})
}

func TestCAVP(t *testing.T) {
	n := tally{}
	for _, name := range []string{
		"gcmEncryptExtIV128.rsp", "gcmEncryptExtIV192.rsp", "gcmEncryptExtIV256.rsp",
		"gcmDecrypt128.rsp", "gcmDecrypt192.rsp", "gcmDecrypt256.rsp",
	} {
		decrypt := strings.HasPrefix(name, "gcmDecrypt")
		var tagBits int
		var fields map[string]string
		finish := func() {
			if fields == nil {
				return
			}
			_, failed := fields["FAIL"]
			require.True(t, !failed || decrypt)
			n.run(t, vector{
				name: name + " " + fields["Count"], key: unhex(t, fields["Key"]), nonce: unhex(t, fields["IV"]), ad: unhex(t, fields["AAD"]),
				text: unhex(t, fields["PT"]), sealed: unhex(t, fields["CT"]+fields["Tag"]), tagBits: tagBits, valid: !failed,
			})
			fields = nil
		}
		for lines := bufio.NewScanner(bytes.NewReader(vectorFile(t, "cavp/"+name))); lines.Scan(); {
			line := strings.TrimSpace(lines.Text())
			field, value, _ := strings.Cut(line, "=")
			field, value = strings.TrimSpace(field), strings.TrimSpace(value)
			switch {
			case line == "" || line[0] == '#':
			case line[0] == '[':
				finish()
				if field == "[Taglen" {
					var err error
					tagBits, err = strconv.Atoi(strings.TrimSuffix(value, "]"))
					require.NoError(t, err)
				}
			case field == "Count":
				finish()
				fields = map[string]string{field: value}
			default:
				fields[field] = value
			}
		}
		finish()
	}
	n.done(t, tally{
		"run: valid": 1113, "run: invalid": 387,
		"not served: key of 192 bits": 15750, "not served: nonce other than 96 bits": 3000, "not served: tag below 128 bits": 27000,
	})
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}
