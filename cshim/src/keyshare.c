// The seam over the ClientHello's key_share: s2n calls ours, ours hands on.
#include <stddef.h>

#include "seams.h"
#include "tls/extensions/s2n_client_key_share.h"
#include "tls/s2n_connection.h"
#include "tls/s2n_tls.h"

static int key_share_send(struct s2n_connection *conn, struct s2n_stuffer *out)
{
    return s2n_upstream_client_key_share_extension.send(conn, out);
}

static int key_share_recv(struct s2n_connection *conn, struct s2n_stuffer *extension)
{
    return s2n_upstream_client_key_share_extension.recv(conn, extension);
}

// C has no way to start a constant from another one, so the fields are spelled
// out, and shim_seam_check compares them with upstream's.
const s2n_extension_type s2n_client_key_share_extension = {
    .iana_value = TLS_EXTENSION_KEY_SHARE,
    .is_response = false,
    .minimum_version = S2N_TLS13,
    .send = key_share_send,
    .recv = key_share_recv,
    .should_send = s2n_extension_always_send,
    .if_missing = s2n_extension_noop_if_missing,
};

// Every field but send and recv. A field that a new s2n adds changes the size.
_Static_assert(sizeof(s2n_extension_type) == 8 + 4 * sizeof(void (*)(void)),
        "s2n_extension_type has other fields than keyshare.c knows");

bool shim_seam_check(void)
{
    const s2n_extension_type *ours = &s2n_client_key_share_extension;
    const s2n_extension_type *theirs = &s2n_upstream_client_key_share_extension;
    return ours->iana_value == theirs->iana_value
            && ours->is_response == theirs->is_response
            && ours->minimum_version == theirs->minimum_version
            && ours->should_send == theirs->should_send
            && ours->if_missing == theirs->if_missing
            && theirs->send != NULL && theirs->recv != NULL;
}
