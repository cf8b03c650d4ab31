//go:build linux && !cgo

package cshim

// This package is C by way of cgo, and there is no fallback without it. The
// undefined name below is the error message. Go also leaves cgo out by itself
// where it finds no C compiler.
var _ = s2n_needs_cgo__set_CGO_ENABLED_1_and_install_a_C_compiler
