/* Key share reuse: the classical share that a ClientHello sends beside a hybrid is the hybrid's own
 * classical key, where the policy has its curve. One key generation less, which the FIPS module makes
 * dear by its pairwise test of each.
 *
 * s2n calls ours through the seam over the ClientHello's key_share; ours decides which keys there are
 * and hands on. Everything on the wire, and everything after a HelloRetryRequest, is upstream's: it
 * writes a key that is there and generates one only where there is none. */
#include <openssl/evp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "seams.h"
#include "shim.h"
#include "crypto/s2n_pq.h"
#include "tls/extensions/s2n_client_key_share.h"
#include "tls/extensions/s2n_server_key_share.h"
#include "tls/s2n_security_policies.h"
#include "tls/s2n_tls.h"
#include "utils/s2n_safety.h"

/* Over shares of all connections: for the few hundred nanoseconds that a copy takes. */
static pthread_mutex_t shares_lock = PTHREAD_MUTEX_INITIALIZER;

/* Whether the policy offers the hybrid's curve by itself, so that its key may be sent alone, too. */
static bool reusable(const struct s2n_security_policy *policy, const struct s2n_kem_group *group)
{
#ifdef S2NSHIM_OFF_REUSE
    return false; /* S2NSHIM_OFF=reuse ./build.sh: the tests of the reuse must fail now */
#endif
    return group != NULL && group->curve != &s2n_ecc_curve_none
            && s2n_ecc_preferences_includes_curve(policy->ecc_preferences, group->curve->iana_id);
}

/* Upstream's send for a policy that has this one curve, or none. It takes the first of the policy's
 * list, and with an empty list sends no classical share. */
static int send_with(struct s2n_connection *s2n, struct s2n_stuffer *out, const struct s2n_security_policy *policy,
        const struct s2n_ecc_named_curve *curve)
{
    const struct s2n_ecc_preferences one = { .count = curve == NULL ? 0 : 1, .ecc_curves = &curve };
    struct s2n_security_policy narrowed = *policy;
    narrowed.ecc_preferences = &one;
    const struct s2n_security_policy *before = s2n->security_policy_override;
    s2n->security_policy_override = &narrowed;
    int r = s2n_upstream_client_key_share_extension.send(s2n, out);
    s2n->security_policy_override = before;
    return r;
}

static int send_shares(struct s2n_connection *s2n, struct s2n_stuffer *out, uint8_t mode)
{
    const struct s2n_security_policy *policy = NULL;
    if (s2n_connection_get_security_policy(s2n, &policy) != S2N_SUCCESS) {
        return S2N_FAILURE;
    }
    if (mode == S2NSHIM_SHARES_SEPARATE || s2n_is_hello_retry_handshake(s2n)) {
        return s2n_upstream_client_key_share_extension.send(s2n, out);
    }
    if (mode == S2NSHIM_SHARES_HYBRID_ONLY) {
        return send_with(s2n, out, policy, NULL);
    }
    const struct s2n_kem_group *group = NULL;
    if (s2n_pq_is_enabled()) {
        group = s2n_kem_preferences_get_highest_priority_group(policy->kem_preferences);
    }
    if (!reusable(policy, group)) {
        return s2n_upstream_client_key_share_extension.send(s2n, out);
    }
    struct s2n_ecc_evp_params *hybrid = &s2n->kex_params.client_kem_group_params.ecc_params;
    struct s2n_ecc_evp_params *alone = &s2n->kex_params.client_ecc_evp_params;
    hybrid->negotiated_curve = group->curve;
    /* Fails where a key is there already. Each of the two owns a reference, and s2n frees each with
     * s2n_ecc_evp_params_free: when the secret is made, before a retry's new key, or with the connection. */
    if (s2n_ecc_evp_generate_ephemeral_key(hybrid) != S2N_SUCCESS || EVP_PKEY_up_ref(hybrid->evp_pkey) != 1) {
        return S2N_FAILURE;
    }
    alone->evp_pkey = hybrid->evp_pkey;
    return send_with(s2n, out, policy, group->curve);
}

static uint16_t read_u16(const uint8_t *p)
{
    return (uint16_t) (p[0] << 8 | p[1]);
}

/* Keeps what was sent: the bytes until the handshake ends, which groups for good. */
static int keep_shares(s2nshim_conn *conn, const uint8_t *sent, uint32_t len)
{
    const struct s2n_kex_parameters *kex = &conn->s2n->kex_params;
    const struct s2n_ecc_evp_params *alone = &kex->client_ecc_evp_params;
    struct s2n_blob bytes = { 0 };
    if (s2n_alloc(&bytes, len - 2) != S2N_SUCCESS) {
        return S2N_FAILURE;
    }
    memcpy(bytes.data, sent + 2, len - 2);

    pthread_mutex_lock(&shares_lock);
    struct s2n_blob old = conn->shares;
    conn->shares = bytes;
    pthread_mutex_unlock(&shares_lock);
    uint32_t k = 0;
    while (k < S2NSHIM_OFFERED_MAX && conn->counts.offered[k] != 0) {
        k++;
    }
    for (uint32_t i = 0; i + 4 <= bytes.size && k < S2NSHIM_OFFERED_MAX; i += 4 + read_u16(bytes.data + i + 2), k++) {
        uint32_t group = read_u16(bytes.data + i);
        bool reused = alone->negotiated_curve != NULL && alone->negotiated_curve->iana_id == group && alone->evp_pkey != NULL
                && alone->evp_pkey == kex->client_kem_group_params.ecc_params.evp_pkey;
        __atomic_store_n(&conn->counts.offered[k], group | (reused ? S2NSHIM_OFFERED_REUSED : 0), __ATOMIC_RELAXED);
    }
    return s2n_free(&old);
}

void shim_shares_drop(s2nshim_conn *conn)
{
    pthread_mutex_lock(&shares_lock);
    struct s2n_blob old = conn->shares;
    conn->shares = (struct s2n_blob){ 0 };
    pthread_mutex_unlock(&shares_lock);
    (void) s2n_free(&old);
}

SHIM_EXPORT uint8_t *s2nshim_conn_key_shares(s2nshim_conn *conn, size_t *len)
{
    uint8_t *copy = NULL;
    *len = 0;
    pthread_mutex_lock(&shares_lock);
    if (conn->shares.size != 0) {
        copy = malloc(conn->shares.size);
        if (copy != NULL) {
            *len = conn->shares.size;
            memcpy(copy, conn->shares.data, conn->shares.size);
        }
    }
    pthread_mutex_unlock(&shares_lock);
    return copy;
}

static int key_share_send(struct s2n_connection *s2n, struct s2n_stuffer *out)
{
    s2nshim_conn *conn = s2n_connection_get_ctx(s2n);
    POSIX_ENSURE_REF(conn);
    const uint32_t start = out->write_cursor;
    if (send_shares(s2n, out, conn->config->shares) != S2N_SUCCESS) {
        return S2N_FAILURE;
    }
    return keep_shares(conn, out->blob.data + start, out->write_cursor - start);
}

static int key_share_recv(struct s2n_connection *s2n, struct s2n_stuffer *extension)
{
    return s2n_upstream_client_key_share_extension.recv(s2n, extension);
}

static bool was_sent(const s2nshim_conn *conn, uint16_t group)
{
    const struct s2n_blob *shares = &conn->shares;
    for (uint32_t i = 0; i + 4 <= shares->size; i += 4 + read_u16(shares->data + i + 2)) {
        if (read_u16(shares->data + i) == group) {
            return true;
        }
    }
    return false;
}

static bool was_offered(struct s2n_connection *s2n, uint16_t group)
{
    const struct s2n_security_policy *policy = NULL;
    return s2n_connection_get_security_policy(s2n, &policy) == S2N_SUCCESS
            && (s2n_ecc_preferences_includes_curve(policy->ecc_preferences, group)
                    || s2n_kem_preferences_includes_tls13_kem_group(policy->kem_preferences, group));
}

/* A client hears which group the server takes, or with a HelloRetryRequest wants a key of. Upstream refuses
 * what it must, but in part by a pointer that happens to be NULL. Here it is one rule, whatever the mode and
 * whatever older keys are still there: of the last ClientHello's shares one, or a group that is none of
 * them (RFC 8446, 4.2.8). */
static int server_key_share_recv(struct s2n_connection *s2n, struct s2n_stuffer *extension)
{
    s2nshim_conn *conn = s2n_connection_get_ctx(s2n);
    POSIX_ENSURE_REF(conn);
    POSIX_ENSURE(s2n_stuffer_data_available(extension) >= 2, S2N_ERR_BAD_KEY_SHARE);
    uint16_t group = read_u16(extension->blob.data + extension->read_cursor);
    if (s2n_is_hello_retry_message(s2n)) {
        POSIX_ENSURE(was_offered(s2n, group) && !was_sent(conn, group), S2N_ERR_INVALID_HELLO_RETRY);
    } else {
        POSIX_ENSURE(was_sent(conn, group), S2N_ERR_BAD_KEY_SHARE);
    }
    return s2n_upstream_server_key_share_extension.recv(s2n, extension);
}

static int server_key_share_send(struct s2n_connection *s2n, struct s2n_stuffer *out)
{
    return s2n_upstream_server_key_share_extension.send(s2n, out);
}

/* C has no way to start a constant from another one, so the fields are spelled
 * out, and shim_seam_check compares them with upstream's. */
const s2n_extension_type s2n_client_key_share_extension = {
    .iana_value = TLS_EXTENSION_KEY_SHARE,
    .is_response = false,
    .minimum_version = S2N_TLS13,
    .send = key_share_send,
    .recv = key_share_recv,
    .should_send = s2n_extension_always_send,
    .if_missing = s2n_extension_noop_if_missing,
};

const s2n_extension_type s2n_server_key_share_extension = {
    .iana_value = TLS_EXTENSION_KEY_SHARE,
    .is_response = true,
    .minimum_version = S2N_TLS13,
    .send = server_key_share_send,
    .recv = server_key_share_recv,
    .should_send = s2n_extension_always_send,
    .if_missing = s2n_extension_noop_if_missing,
};

/* Every field but send and recv. A field that a new s2n adds changes the size. */
_Static_assert(sizeof(s2n_extension_type) == 8 + 4 * sizeof(void (*)(void)),
        "s2n_extension_type has other fields than keyshare.c knows");

static bool same_but_for_ours(const s2n_extension_type *ours, const s2n_extension_type *theirs)
{
    return ours->iana_value == theirs->iana_value
            && ours->is_response == theirs->is_response
            && ours->minimum_version == theirs->minimum_version
            && ours->should_send == theirs->should_send
            && ours->if_missing == theirs->if_missing
            && theirs->send != NULL && theirs->recv != NULL;
}

bool shim_seam_check(void)
{
    return same_but_for_ours(&s2n_client_key_share_extension, &s2n_upstream_client_key_share_extension)
            && same_but_for_ours(&s2n_server_key_share_extension, &s2n_upstream_server_key_share_extension);
}
