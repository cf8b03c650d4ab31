// What the shim puts in the place of s2n's own symbols, and the originals under
// the names that ../CMakeLists.txt compiles them with (list: ../seams.txt).
#pragma once

#include <stdbool.h>

#include "tls/extensions/s2n_extension_type.h"
#include "tls/s2n_security_policies.h"
#include "utils/s2n_result.h"

struct s2n_connection;

// s2n's own key_share extensions, of the ClientHello and of the ServerHello.
extern const s2n_extension_type s2n_upstream_client_key_share_extension;
extern const s2n_extension_type s2n_upstream_server_key_share_extension;

// s2n's own setter by pointer, which its setters by name end in. s2n has it in no
// header; internal/buildtest compares this with its definition.
int s2n_config_set_security_policy(struct s2n_config *config, const struct s2n_security_policy *security_policy);

// Adds the message that was just handled to the hashes that roll.
S2N_RESULT s2n_upstream_handshake_transcript_update(struct s2n_connection *conn);

// Whether each seam differs from upstream's original only where it means to.
// Called once at init: a moved pin that changed a field must not go unnoticed.
bool shim_seam_check(void);
