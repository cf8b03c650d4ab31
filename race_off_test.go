//go:build !race

package s2n_test

const raceEnabled = false
