/* Which libs2nshim.a a Go object was compiled against. */
#ifndef S2NSHIM_CGO_BUILD_H
#define S2NSHIM_CGO_BUILD_H

/* Goes up when a change of s2nshim.h is released. What Go compiles against is the
 * header that was installed with the library, so the layouts always agree; this
 * number is for the error message. build.sh reads it. */
#define S2NSHIM_ABI 1

#if !__has_include(<s2nshim_build.h>)
#error "libs2nshim is not built. In a checkout of github.com/s2n-go/s2n run ./build.sh (or ./build.sh --prefix DIR, see README.md)"
#else
#include <s2nshim_build.h>
#if S2NSHIM_BUILD_ABI != S2NSHIM_ABI
#error "the libs2nshim that was found belongs to another version of github.com/s2n-go/s2n: run ./build.sh (or ./build.sh --prefix DIR) of this one"
#else
/* Compiled into each Go object that includes this, so the linker checks it. */
static inline const char *s2nshim_linked_build(void) { return S2NSHIM_BUILD_SYMBOL; }
__attribute__((used)) static const char *const s2nshim_wanted_build = S2NSHIM_BUILD_SYMBOL;
#endif
#endif

#endif
