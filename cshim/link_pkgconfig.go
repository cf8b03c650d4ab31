//go:build linux && cgo && s2nshim_pkgconfig

package cshim

// With -tags s2nshim_pkgconfig the library is where pkg-config says; for a prefix
// of your own: PKG_CONFIG_PATH=DIR/lib/pkgconfig.

// #cgo pkg-config: s2nshim
import "C"
