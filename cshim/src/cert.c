/* Certificates with keys, and trusted roots. Each is shared by any number of configs and
 * connections by reference count, so that one set of system roots is parsed once a process. */
#include <openssl/err.h>
#include <openssl/x509.h>
#include <stdlib.h>

#include "shim.h"

struct s2nshim_cert {
    struct s2n_cert_chain_and_key *chain;
    int32_t refs;
};

struct s2nshim_store {
    X509_STORE *x509;
};

SHIM_EXPORT s2nshim_result s2nshim_cert_new(const uint8_t *chain, uint32_t chain_len, const uint8_t *key, uint32_t key_len,
        s2nshim_cert **out)
{
    s2nshim_result r = { 0 };
    s2nshim_cert *cert = calloc(1, sizeof(*cert));
    struct s2n_cert_chain_and_key *loaded = cert == NULL ? NULL : s2n_cert_chain_and_key_new();
    /* s2n takes writable buffers but only reads them. */
    if (loaded == NULL
            || s2n_cert_chain_and_key_load_pem_bytes(loaded, (uint8_t *) (uintptr_t) chain, chain_len,
                       (uint8_t *) (uintptr_t) key, key_len)
                    != S2N_SUCCESS) {
        r = shim_failure();
        if (loaded != NULL) {
            s2n_cert_chain_and_key_free(loaded);
        }
        free(cert);
        return r;
    }
    ERR_clear_error();
    cert->chain = loaded;
    cert->refs = 1;
    shim_live(&shim_stats.certs, 1);
    *out = cert;
    return r;
}

void shim_cert_ref(s2nshim_cert *cert)
{
    __atomic_fetch_add(&cert->refs, 1, __ATOMIC_RELAXED);
}

struct s2n_cert_chain_and_key *shim_cert_s2n(s2nshim_cert *cert)
{
    return cert->chain;
}

SHIM_EXPORT void s2nshim_cert_free(s2nshim_cert *cert)
{
    if (__atomic_sub_fetch(&cert->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        s2n_cert_chain_and_key_free(cert->chain);
        free(cert);
        shim_live(&shim_stats.certs, -1);
    }
}

SHIM_EXPORT s2nshim_result s2nshim_store_new(s2nshim_store **out)
{
    s2nshim_store *store = calloc(1, sizeof(*store));
    if (store != NULL) {
        store->x509 = X509_STORE_new();
    }
    if (store == NULL || store->x509 == NULL) {
        free(store);
        s2nshim_result r = shim_failure();
        r.code = S2N_ERR_ALLOC;
        return r;
    }
    shim_live(&shim_stats.stores, 1);
    *out = store;
    return (s2nshim_result){ 0 };
}

SHIM_EXPORT s2nshim_result s2nshim_store_add(s2nshim_store *store, const uint8_t *der, size_t len)
{
    s2nshim_result r = { 0 };
    const uint8_t *at = der;
    X509 *cert = d2i_X509(NULL, &at, (long) len);
    /* A certificate that is there already counts as added. */
    if (cert == NULL || X509_STORE_add_cert(store->x509, cert) != 1) {
        r = shim_failure();
        r.code = S2N_ERR_DECODE_CERTIFICATE;
    }
    X509_free(cert);
    return r;
}

X509_STORE *shim_store_x509(s2nshim_store *store)
{
    return store->x509;
}

SHIM_EXPORT void s2nshim_store_free(s2nshim_store *store)
{
    /* Configs that use it hold references of their own on the X509_STORE. */
    X509_STORE_free(store->x509);
    free(store);
    shim_live(&shim_stats.stores, -1);
}
