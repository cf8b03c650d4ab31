//go:build !race

package aead_test

const raceEnabled = false
