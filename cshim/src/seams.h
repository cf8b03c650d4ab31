// What the shim puts in the place of s2n's own symbols, and the originals under
// the names that ../CMakeLists.txt compiles them with (list: ../seams.txt).
#pragma once

#include <stdbool.h>

#include "tls/extensions/s2n_extension_type.h"

// s2n's own key_share extension of the ClientHello.
extern const s2n_extension_type s2n_upstream_client_key_share_extension;

// Whether each seam differs from upstream's original only where it means to.
// Called once at init: a moved pin that changed a field must not go unnoticed.
bool shim_seam_check(void);
