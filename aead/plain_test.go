//go:build !race && !asan && !msan

package aead_test

const instrumented = false
