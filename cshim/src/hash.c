/* Which hashes roll over the handshake.
 *
 * s2n keeps seven running hashes of all messages and starts with all of them, because in TLS 1.2
 * the client's CertificateVerify is signed over whichever hash the signature scheme names. It
 * drops to the cipher suite's own hash once it knows that no such signature will come, but only
 * at a few messages: a client feeds its own ClientHello, the longest message that it sends, to all
 * seven, and in TLS 1.2 every message after it, even if it has no certificate to sign with.
 *
 * The seam sits where a finished message is hashed. It takes from s2n's set what this connection
 * cannot need any more, and never adds: the hash of a PRF that is chosen or can be, and the
 * hashes of the signature schemes while a client's signature in TLS 1.2 can still come. It asks
 * for that anew at each message, from the connection as it is then: a policy that a callback put
 * in place, a session that resumes and a PSK are all in the answer. A hash that missed a message
 * is of no use later; that it is not used is checked here, not assumed. */
#include <string.h>

#include "seams.h"
#include "shim.h"
#include "tls/s2n_cipher_preferences.h"
#include "tls/s2n_config.h"
#include "tls/s2n_handshake_type.h"
#include "tls/s2n_psk.h"
#include "tls/s2n_security_policies.h"
#include "tls/s2n_signature_algorithms.h"
#include "utils/s2n_array.h"
#include "utils/s2n_safety.h"

/* A new hash would be one that this file has never heard of. */
_Static_assert(S2N_HASH_ALGS_COUNT == 9, "s2n has other hashes than hash.c knows");

#define BIT(alg) ((uint16_t) (1u << (alg)))
#define LEGACY (BIT(S2N_HASH_MD5) | BIT(S2N_HASH_SHA1)) /* s2n rolls MD5+SHA-1 when both of these do */
#define ALL ((uint16_t) ~0u)
#define KEPT 2 /* as true as s2n's 1, which then tells that s2n made the set anew */

#ifdef S2NSHIM_OFF_HASH /* for tests: s2n as it is */
#define NARROW false
#else
#define NARROW true
#endif

/* For the header, whose bits do not move when s2n's numbers do. */
static uint16_t as_public(uint16_t set)
{
    static const struct {
        s2n_hash_algorithm alg;
        uint16_t public;
    } names[] = {
        { S2N_HASH_MD5, S2NSHIM_HASH_MD5 },
        { S2N_HASH_SHA1, S2NSHIM_HASH_SHA1 },
        { S2N_HASH_SHA224, S2NSHIM_HASH_SHA224 },
        { S2N_HASH_SHA256, S2NSHIM_HASH_SHA256 },
        { S2N_HASH_SHA384, S2NSHIM_HASH_SHA384 },
        { S2N_HASH_SHA512, S2NSHIM_HASH_SHA512 },
    };
    uint16_t out = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (set & BIT(names[i].alg)) {
            out |= names[i].public;
        }
    }
    if ((set & LEGACY) == LEGACY) {
        out |= S2NSHIM_HASH_MD5_SHA1;
    }
    return out;
}

static uint16_t required(const struct s2n_handshake *handshake)
{
    uint16_t set = 0;
    for (int alg = 0; alg < S2N_HASH_ALGS_COUNT; alg++) {
        if (handshake->required_hash_algs[alg]) {
            set |= BIT(alg);
        }
    }
    return set;
}

static uint16_t of_prf(s2n_hmac_algorithm prf)
{
    s2n_hash_algorithm alg = S2N_HASH_NONE;
    return s2n_hmac_hash_alg(prf, &alg) == S2N_SUCCESS && alg != S2N_HASH_NONE ? BIT(alg) : 0;
}

/* What a signature's hash needs to roll. */
static uint16_t of_signature(s2n_hash_algorithm alg)
{
    return alg == S2N_HASH_MD5_SHA1 ? LEGACY : BIT(alg);
}

/* Before the version is known: what the policy, a session or a PSK lets be chosen. */
static uint16_t any_prf(struct s2n_connection *s2n, const struct s2n_security_policy *policy)
{
    uint16_t set = of_prf(s2n->secure->cipher_suite->prf_alg); /* a session that resumes has its own */
    for (uint8_t i = 0; i < policy->cipher_preferences->count; i++) {
        set |= of_prf(policy->cipher_preferences->suites[i]->prf_alg);
    }
    for (uint32_t i = 0; i < s2n->psk_params.psk_list.len; i++) {
        struct s2n_psk *psk = NULL;
        if (s2n_result_is_error(s2n_array_get(&s2n->psk_params.psk_list, i, (void **) &psk))) {
            return ALL;
        }
        set |= of_prf(psk->hmac_alg);
    }
    if (policy->minimum_protocol_version < S2N_TLS12) {
        set |= LEGACY;
    }
    return set;
}

/* What the client of a TLS 1.2 handshake (or an older one, where the policy goes that low) can sign with. */
static uint16_t any_signature(const struct s2n_security_policy *policy)
{
    uint16_t set = policy->minimum_protocol_version < S2N_TLS12 ? LEGACY : 0;
    for (uint8_t i = 0; i < policy->signature_preferences->count; i++) {
        const struct s2n_signature_scheme *scheme = policy->signature_preferences->signature_schemes[i];
        if (scheme->minimum_protocol_version < S2N_TLS13) {
            set |= of_signature(scheme->hash_alg);
        }
    }
    return set;
}

/* Whether this side can have part in a client's signature at all. A client without a certificate answers a request
 * with none. Who lets a client choose its certificate only when asked must say so here. */
static bool client_can_sign(struct s2n_connection *s2n)
{
    s2n_cert_auth_type auth = S2N_CERT_AUTH_NONE;
    if (s2n_connection_get_client_auth_type(s2n, &auth) != S2N_SUCCESS) {
        return true;
    }
    if (auth == S2N_CERT_AUTH_NONE) {
        return false;
    }
    return s2n->mode == S2N_SERVER || s2n_config_get_num_default_certs(s2n->config) > 0;
}

/* Whether, in a TLS 1.2 handshake that has come to message, CertificateVerify is still ahead. */
static bool signature_ahead(struct s2n_connection *s2n, message_type_t message)
{
    switch (message) {
        case CLIENT_HELLO:
        case SERVER_HELLO:
            /* Both sides know by now whether a session resumes. */
            return s2n_handshake_type_check_flag(s2n, FULL_HANDSHAKE);
        case SERVER_CERT:
        case SERVER_CERT_STATUS:
        case SERVER_KEY:
        case SERVER_CERT_REQ:
            return true;
        case SERVER_HELLO_DONE:
            return s2n_handshake_type_check_flag(s2n, CLIENT_AUTH);
        case CLIENT_CERT:
        case CLIENT_KEY:
            return s2n_handshake_type_check_flag(s2n, CLIENT_AUTH) && !s2n_handshake_type_check_flag(s2n, NO_CLIENT_CERT);
        default:
            return false;
    }
}

/* The hashes that a message just handled, and those after it, can be needed in. */
static uint16_t needed(struct s2n_connection *s2n)
{
    const struct s2n_security_policy *policy = NULL;
    if (s2n_connection_get_security_policy(s2n, &policy) != S2N_SUCCESS || policy->cipher_preferences == NULL
            || policy->signature_preferences == NULL) {
        return ALL;
    }
    message_type_t message = s2n_conn_get_current_message_type(s2n);
    bool known = s2n->mode == S2N_SERVER || s2n->actual_protocol_version_established;
    if (!known) {
        uint16_t set = any_prf(s2n, policy);
        if (policy->minimum_protocol_version < S2N_TLS13 && client_can_sign(s2n)) {
            set |= any_signature(policy);
        }
        return set;
    }
    uint16_t set = of_prf(s2n->secure->cipher_suite->prf_alg);
    if (s2n->actual_protocol_version >= S2N_TLS13) {
        return set;
    }
    if (s2n->actual_protocol_version < S2N_TLS12) {
        set = LEGACY;
    }
    if (client_can_sign(s2n) && signature_ahead(s2n, message)) {
        const struct s2n_signature_scheme *scheme = s2n->handshake_params.client_cert_sig_scheme;
        /* A client chooses when it is asked, and goes on with that one. */
        bool chosen = s2n->mode == S2N_CLIENT && scheme != NULL && scheme->hash_alg != S2N_HASH_NONE;
        set |= chosen ? of_signature(scheme->hash_alg) : any_signature(policy);
    }
    return set;
}

S2N_RESULT s2n_handshake_transcript_update(struct s2n_connection *s2n)
{
    s2nshim_conn *conn = s2n_connection_get_ctx(s2n);
    uint8_t *algs = s2n->handshake.required_hash_algs;
    if (memchr(algs, 1, S2N_HASH_ALGS_COUNT) != NULL) {
        conn->hashes.upstream = required(&s2n->handshake);
    }
    uint16_t need = NARROW ? needed(s2n) : ALL;
    for (int alg = 0; alg < S2N_HASH_ALGS_COUNT; alg++) {
        if (algs[alg] != 0) {
            algs[alg] = need & BIT(alg) ? KEPT : 0;
        }
    }
    /* A hash that missed a message: better no connection than a signature over something else. */
    RESULT_ENSURE((need & conn->hashes.dropped) == 0 || need == ALL, S2N_ERR_SAFETY);
    conn->hashes.rolling = required(&s2n->handshake);
    conn->hashes.dropped |= (uint16_t) ~conn->hashes.rolling;
    if (conn->hashes.first == 0) {
        conn->hashes.first = conn->hashes.rolling;
    }
    return s2n_upstream_handshake_transcript_update(s2n);
}

void shim_hash_info(const s2nshim_conn *conn, s2nshim_conn_info *out)
{
    out->hashes = as_public(conn->hashes.rolling);
    out->hashes_first = as_public(conn->hashes.first);
    out->hashes_upstream = as_public(conn->hashes.upstream);
}
