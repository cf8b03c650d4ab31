//go:build race

package aead_test

const raceEnabled = true
