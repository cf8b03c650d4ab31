/* Which libs2nshim.a a Go object was compiled against. */
#ifndef S2NSHIM_CGO_BUILD_H
#define S2NSHIM_CGO_BUILD_H

#if !__has_include(<s2nshim_build.h>)
#error "libs2nshim is not built. In a checkout of github.com/s2n-go/s2n run ./build.sh (or ./build.sh --prefix DIR, see README.md)"
#else
#include <s2nshim_build.h>
/* Compiled into each Go object that includes this, so the linker checks it. */
static inline const char *s2nshim_linked_build(void) { return S2NSHIM_BUILD_SYMBOL; }
__attribute__((used)) static const char *const s2nshim_wanted_build = S2NSHIM_BUILD_SYMBOL;
#endif

#endif
