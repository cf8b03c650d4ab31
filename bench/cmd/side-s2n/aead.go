package main

import (
	"github.com/s2n-go/s2n/aead"
	"github.com/s2n-go/s2n/bench/internal/proto"
	"github.com/s2n-go/s2n/bench/internal/side"
)

func newAEAD(spec proto.Spec) (side.AEAD, error) {
	a, err := aead.NewAESGCM(make([]byte, spec.Key))
	if err != nil {
		return nil, err
	}
	return side.CipherAEAD(spec, a)
}
