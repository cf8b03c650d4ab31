//go:build linux && cgo && !s2nshim_pkgconfig

package cshim

// The library is looked for in this checkout first, then in the default prefix
// of "build.sh --prefix". CGO_CFLAGS and CGO_LDFLAGS come before both.

// #cgo CFLAGS: -I${SRCDIR}/../third_party/out/include -I/usr/local/include
// #cgo LDFLAGS: -L${SRCDIR}/../third_party/out/lib -L/usr/local/lib -ls2nshim -lpthread -ldl
import "C"
