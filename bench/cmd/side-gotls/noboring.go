//go:build !boringcrypto

package main

func boring() bool { return false }
