//go:build race || asan || msan

package aead_test

// instrumented: Go allocates for itself, and has shadow memory of terabytes.
const instrumented = true
