//go:build linux && cgo

package cshim

// build.h ends a build without the library with one clear error. Then it makes
// this package ask for one library by name: Go's build cache knows nothing of
// libraries, and an object compiled against another one must not link.

// #include "build.h"
import "C"

// BuildID is the hash of the library that was linked.
func BuildID() string { return C.GoString(C.s2nshim_linked_build()) }

// BuildFlavour is how the library was built: release, debug or asan.
func BuildFlavour() string { return C.S2NSHIM_BUILD_FLAVOUR }
