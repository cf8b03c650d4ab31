//go:build !asan

package main

const asan = false
