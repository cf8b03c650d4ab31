/* What a handshake must not leave behind.
 *
 * s2n overwrites what it frees, AWS-LC too (OPENSSL_free cleanses), and in TLS 1.3 s2n wipes the
 * key shares and the handshake's traffic secrets once they are used. What it leaves to the day
 * when the connection is freed: the keys of the Finished messages; the premaster secret's room in
 * TLS 1.2; the peer's certificate chain as it was decrypted; after a failure everything, and a
 * connection lives on for up to 30 seconds after one that blinding hides. And it leaves on the
 * stack what its functions and AWS-LC's had there. All of that is overwritten here, right when
 * s2n_negotiate has come to its end.
 *
 * Not here, because still needed until Close: the keys of the record layer, the traffic,
 * resumption and exporter secrets, TLS 1.2's master secret. They go with s2n_connection_free. */
#include <openssl/mem.h>

#include "crypto/s2n_dhe.h"
#include "shim.h"
#include "tls/s2n_psk.h"
#include "tls/s2n_x509_validator.h"

#ifdef S2NSHIM_OFF_WIPE /* for tests: s2n as it is */
#define WIPE false
#else
#define WIPE true
#endif

/* Key shares of both sides and kinds, and the secrets that only the handshake uses. */
static void wipe_handshake_secrets(struct s2n_connection *s2n)
{
    s2n_result_ignore(s2n_connection_wipe_all_keyshares(s2n));
    (void) s2n_kem_free(&s2n->kex_params.kem_params);
    (void) s2n_dh_params_free(&s2n->kex_params.server_dh_params);
    if (s2n->actual_protocol_version >= S2N_TLS13) {
        struct s2n_tls13_secrets *secrets = &s2n->secrets.version.tls13;
        OPENSSL_cleanse(secrets->extract_secret, sizeof(secrets->extract_secret));
        OPENSSL_cleanse(secrets->client_early_secret, sizeof(secrets->client_early_secret));
        OPENSSL_cleanse(secrets->client_handshake_secret, sizeof(secrets->client_handshake_secret));
        OPENSSL_cleanse(secrets->server_handshake_secret, sizeof(secrets->server_handshake_secret));
        s2n->secrets.extract_secret_type = S2N_NONE_SECRET;
    } else {
        struct s2n_tls12_secrets *secrets = &s2n->secrets.version.tls12;
        OPENSSL_cleanse(secrets->rsa_premaster_secret, sizeof(secrets->rsa_premaster_secret));
    }
    /* In TLS 1.3 the keys of the Finished messages, before it their contents. */
    OPENSSL_cleanse(s2n->handshake.client_finished, sizeof(s2n->handshake.client_finished));
    OPENSSL_cleanse(s2n->handshake.server_finished, sizeof(s2n->handshake.server_finished));
}

/* What was decrypted of the peer's messages and is kept outside the buffers that s2n wipes as it goes. */
static void wipe_messages(struct s2n_connection *s2n)
{
    (void) s2n_free(&s2n->handshake_params.client_cert_chain);
    (void) s2n_free(&s2n->ct_response);
    (void) s2n_free(&s2n->status_response);
    (void) s2n_free(&s2n->cert_authorities);
    (void) s2n_pkey_free(&s2n->handshake_params.server_public_key);
    (void) s2n_pkey_free(&s2n->handshake_params.client_public_key);
}

void shim_wipe_negotiated(s2nshim_conn *conn)
{
    if (WIPE) {
        wipe_handshake_secrets(conn->s2n);
    }
}

void shim_wipe_finished(s2nshim_conn *conn)
{
    if (WIPE) {
        wipe_messages(conn->s2n);
    }
}

/* The key for what the peer sends. s2n's later calls for it, to wipe and to free, take one that was never set. */
static void wipe_read_key(struct s2n_connection *s2n)
{
    struct s2n_session_key *key = s2n->mode == S2N_CLIENT ? &s2n->secure->server_key : &s2n->secure->client_key;
    if (key->evp_aead_ctx != NULL) {
        EVP_AEAD_CTX_cleanup(key->evp_aead_ctx);
        OPENSSL_cleanse(key->evp_aead_ctx, sizeof(*key->evp_aead_ctx));
    }
    if (key->evp_cipher_ctx != NULL) {
        (void) EVP_CIPHER_CTX_reset(key->evp_cipher_ctx);
    }
}

void shim_wipe_failed(s2nshim_conn *conn, bool chain)
{
    struct s2n_connection *s2n = conn->s2n;
    if (!WIPE) {
        return;
    }
    wipe_handshake_secrets(s2n);
    /* Nobody will send or read data: only the key that the alert is encrypted with is needed. */
    OPENSSL_cleanse(&s2n->secrets, sizeof(s2n->secrets));
    wipe_read_key(s2n);
    s2n_result_ignore(s2n_psk_parameters_wipe_secrets(&s2n->psk_params));
    (void) s2n_free(&s2n->tls13_ticket_fields.session_secret);
    wipe_messages(s2n);
    (void) s2n_stuffer_wipe(&s2n->handshake.io);
    (void) s2n_stuffer_wipe(&s2n->post_handshake.in);
    /* A record, decrypted in place, and what came after it. */
    if (s2n->buffer_in.blob.data != NULL) {
        OPENSSL_cleanse(s2n->buffer_in.blob.data, s2n->buffer_in.blob.allocated);
    }
    if (chain) {
        conn->verify = NULL;
        s2n_x509_validator_wipe(&s2n->x509_validator);
    }
}

/* The stack. Below s2n_negotiate it gets 13 KiB deep, in a module's first call and with ML-KEM's keys and
 * ciphertexts up to 42 (measured for modules 3 and 4); more than that costs what it can never gain. */
#define STACK_DEPTH 16384
#define STACK_DEPTH_KEM 49152

__attribute__((noinline)) static void wipe_below(void)
{
    uint8_t below[STACK_DEPTH];
    OPENSSL_cleanse(below, sizeof(below));
}

__attribute__((noinline)) static void wipe_far_below(void)
{
    uint8_t below[STACK_DEPTH_KEM];
    OPENSSL_cleanse(below, sizeof(below));
}

s2n_extract_secret_type_t shim_wipe_stage(s2nshim_conn *conn)
{
    return conn->s2n->secrets.extract_secret_type;
}

void shim_wipe_stack(s2nshim_conn *conn, s2n_extract_secret_type_t before, bool over)
{
    const struct s2n_connection *s2n = conn->s2n;
    const struct s2n_kem_group_params *client = &s2n->kex_params.client_kem_group_params;
    bool kem = client->kem_group != NULL || s2n->kex_params.server_kem_group_params.kem_group != NULL;
    bool keyed = client->kem_params.private_key.data != NULL;
    bool made = before < S2N_HANDSHAKE_SECRET && s2n->secrets.extract_secret_type >= S2N_HANDSHAKE_SECRET;
    if (!WIPE) {
        return;
    }
    if (kem && (keyed || made || over)) {
        wipe_far_below();
    } else {
        wipe_below();
    }
}
