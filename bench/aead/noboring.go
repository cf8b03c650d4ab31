//go:build !boringcrypto

package main

var boring = false
