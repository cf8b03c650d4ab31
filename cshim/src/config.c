/* A config is made whole by one call and never changed after it. Its owner holds one reference
 * and each connection another, so it outlives the Go object that made it where it must. */
#include <openssl/err.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>

#include "seams.h"
#include "shim.h"
#include "tls/s2n_config.h"
#include "tls/s2n_tls_parameters.h"

/* Stops the handshake (S2NSHIM_WANT_VERIFY) until Go has looked at the chain. */
static int on_verify(struct s2n_connection *s2n, struct s2n_cert_validation_info *info, void *ctx)
{
    (void) ctx;
    s2nshim_conn *conn = s2n_connection_get_ctx(s2n);
    conn->verify = info;
    return S2N_SUCCESS;
}

/* RFC 7301, 3.2: without a protocol in common the server answers no_application_protocol, where
 * s2n would go on without one. As crypto/tls has it, a client that knows only HTTP/1.1 may still
 * reach a server that offers only h2. */
static bool protocols_overlap(const uint8_t *server, uint32_t server_len, const uint8_t *client, uint32_t client_len)
{
    bool fallback = false;
    for (uint32_t i = 0; i < server_len; i += 1 + server[i]) {
        for (uint32_t k = 0; k < client_len && k + 1 + client[k] <= client_len; k += 1 + client[k]) {
            if (server[i] == client[k] && memcmp(server + i + 1, client + k + 1, server[i]) == 0) {
                return true;
            }
            fallback = fallback
                    || (server[i] == 2 && memcmp(server + i + 1, "h2", 2) == 0 && client[k] == 8
                            && memcmp(client + k + 1, "http/1.1", 8) == 0);
        }
    }
    return fallback;
}

int shim_on_client_hello(struct s2n_connection *s2n, void *ctx)
{
    (void) ctx;
    const struct s2n_blob *ours = &s2n->config->application_protocols;
    struct s2n_client_hello *hello = s2n_connection_get_client_hello(s2n);
    ssize_t len = s2n_client_hello_get_extension_length(hello, S2N_EXTENSION_ALPN);
    if (ours->size == 0 || len <= 2) {
        return S2N_SUCCESS;
    }
    uint8_t *theirs = malloc((size_t) len);
    if (theirs == NULL) {
        return S2N_FAILURE;
    }
    int verdict = S2N_SUCCESS;
    if (s2n_client_hello_get_extension_by_id(hello, S2N_EXTENSION_ALPN, theirs, (uint32_t) len) != len
            || !protocols_overlap(ours->data, ours->size, theirs + 2, (uint32_t) len - 2)) {
        s2nshim_conn *conn = s2n_connection_get_ctx(s2n);
        conn->verify_alert = 120; /* no_application_protocol */
        verdict = S2N_FAILURE;
    }
    free(theirs);
    return verdict;
}

static int fill(s2nshim_config *config, const s2nshim_config_params *p, s2nshim_cert *const *certs, int32_t n_certs)
{
    struct s2n_config *s2n = config->s2n;
    if (s2n_config_set_security_policy(s2n, config->policy) != S2N_SUCCESS
            || s2n_config_set_cert_validation_cb(s2n, on_verify, NULL) != S2N_SUCCESS) {
        return S2N_FAILURE;
    }
    if (p->skip_verify && s2n_config_disable_x509_verification(s2n) != S2N_SUCCESS) {
        return S2N_FAILURE;
    }
    if (p->store != NULL) {
        s2n->trust_store.trust_store = shim_store_x509(p->store);
        X509_STORE_up_ref(s2n->trust_store.trust_store);
    }
    for (uint32_t i = 0; i < p->protocols_len; i += 1 + p->protocols[i]) {
        if (s2n_config_append_protocol_preference(s2n, p->protocols + i + 1, p->protocols[i]) != S2N_SUCCESS) {
            return S2N_FAILURE;
        }
    }
    for (int32_t i = 0; i < n_certs; i++) {
        if (s2n_config_add_cert_chain_and_key_to_store(s2n, shim_cert_s2n(certs[i])) != S2N_SUCCESS) {
            return S2N_FAILURE;
        }
        shim_cert_ref(certs[i]);
        config->certs[config->n_certs++] = certs[i];
    }
    if (p->role == S2NSHIM_SERVER) {
        static const s2n_cert_auth_type auth[] = { S2N_CERT_AUTH_NONE, S2N_CERT_AUTH_OPTIONAL, S2N_CERT_AUTH_REQUIRED };
        if (s2n_config_set_client_auth_type(s2n, auth[p->client_auth]) != S2N_SUCCESS
                || s2n_config_set_client_hello_cb(s2n, shim_on_client_hello, NULL) != S2N_SUCCESS) {
            return S2N_FAILURE;
        }
    }
    return S2N_SUCCESS;
}

SHIM_EXPORT s2nshim_result s2nshim_config_new(const s2nshim_config_params *params, s2nshim_cert *const *certs, int32_t n_certs,
        s2nshim_config **out)
{
    s2nshim_result r = { 0 };
    s2nshim_config *config = calloc(1, sizeof(*config));
    if (config != NULL) {
        config->certs = calloc((size_t) n_certs + 1, sizeof(s2nshim_cert *));
        config->s2n = s2n_config_new_minimal();
    }
    if (config == NULL || config->certs == NULL || config->s2n == NULL) {
        r = shim_failure();
        if (config != NULL) {
            free(config->certs);
            free(config);
        }
        return r;
    }
    config->refs = 1;
    struct shim_policy policy = { 0 };
    if (!shim_policy_find(params->policy, &policy)) {
        policy.s2n = NULL; /* s2n's setter has the error */
    }
    config->policy = policy.s2n;
    config->policy_name = policy.name;
    config->shares = params->shares == S2NSHIM_SHARES_POLICY ? policy.shares : params->shares;
    config->role = params->role;
    config->records = params->records;
    config->blinding = params->blinding;
    config->client_auth = params->client_auth;
    shim_live(&shim_stats.configs, 1);
    if (fill(config, params, certs, n_certs) != S2N_SUCCESS) {
        r = shim_failure();
        r.n = config->n_certs;
        s2nshim_config_free(config);
        return r;
    }
    ERR_clear_error();
    *out = config;
    return r;
}

SHIM_EXPORT void s2nshim_config_free(s2nshim_config *config)
{
    if (__atomic_sub_fetch(&config->refs, 1, __ATOMIC_ACQ_REL) != 0) {
        return;
    }
    s2n_config_free(config->s2n);
    for (int32_t i = 0; i < config->n_certs; i++) {
        s2nshim_cert_free(config->certs[i]);
    }
    free(config->certs);
    free(config);
    shim_live(&shim_stats.configs, -1);
}
