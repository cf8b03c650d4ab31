package aead_test

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"github.com/s2n-go/s2n/aead"
)

// Data at rest: the module makes the nonces, and they travel with the ciphertext.
func ExampleNewAESGCMRandomNonce() {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	box, err := aead.NewAESGCMRandomNonce(key)
	if err != nil {
		fmt.Println(err)
		return
	}
	clear(key) // the AEAD has what it needs

	// What is not secret but must belong to it: here, whose record it is.
	owner := []byte("customer 4711")
	sealed := box.Seal(nil, nil, []byte("a secret"), owner)
	fmt.Println("longer by", len(sealed)-len("a secret"))

	opened, err := box.Open(nil, nil, sealed, owner)
	fmt.Printf("%s, %v\n", opened, err)
	_, err = box.Open(nil, nil, sealed, []byte("customer 4712"))
	fmt.Println(err)
	// Output:
	// longer by 28
	// a secret, <nil>
	// cipher: message authentication failed
}

// A protocol's own nonces: a counter, so that none comes twice under one key.
func ExampleNewAESGCM() {
	key := []byte("a key of 16 byte")
	sealer, err := aead.NewAESGCM(key)
	if err != nil {
		fmt.Println(err)
		return
	}
	nonce := make([]byte, sealer.NonceSize())
	for i, text := range []string{"one", "two"} {
		binary.BigEndian.PutUint64(nonce[4:], uint64(i))
		fmt.Printf("%x\n", sealer.Seal(nil, nonce, []byte(text), nil))
	}
	// Output:
	// 5917dc8434d917107efbb8360a228babbf3f35
	// fbfa03e13f10123e657001e8690c7a7134bad1
}

// No allocation: one buffer with room for the overhead, worked on in place.
func ExampleNewAESGCM_inPlace() {
	box, err := aead.NewAESGCM(make([]byte, 32))
	if err != nil {
		fmt.Println(err)
		return
	}
	nonce := make([]byte, box.NonceSize())
	buf := make([]byte, 0, 1024+box.Overhead())
	buf = append(buf, "record"...)

	sealed := box.Seal(buf[:0], nonce, buf, nil)
	opened, err := box.Open(sealed[:0], nonce, sealed, nil)
	fmt.Printf("%s, %v\n", opened, err)
	// Output: record, <nil>
}
