/* AES-GCM for package aead: EVP_AEAD_CTX, set up once a key and only read afterwards, so that
 * any number of threads may use one. One call here is all that a Seal or an Open does in C.
 *
 * What the Go side has checked before: sizes, room, and that buffers overlap exactly or not at
 * all. AWS-LC checks overlap too, and by address only: an empty buffer that lies inside another
 * one would be refused. So an empty buffer gets an address that can do no harm. */
#include <openssl/aead.h>
#include <openssl/err.h>
#include <openssl/mem.h>
#include <openssl/service_indicator.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

#define NONCE S2NSHIM_AEAD_NONCE
#define TAG S2NSHIM_AEAD_TAG

/* What a s2nshim_aead is: whole cache lines of its own, since it is read for every message, maybe
 * by all cores. */
#define ALIGN 64
_Static_assert(sizeof(EVP_AEAD_CTX) <= sizeof(s2nshim_aead), "s2nshim_aead has no room for EVP_AEAD_CTX");
_Static_assert(sizeof(s2nshim_aead) % ALIGN == 0, "aligned_alloc wants a multiple");

static const EVP_AEAD_CTX *ctx(const s2nshim_aead *a)
{
    return (const EVP_AEAD_CTX *) a;
}

static const EVP_AEAD *kind(size_t key_len, int32_t random_nonce)
{
    switch (key_len) {
        case 16:
            return random_nonce ? EVP_aead_aes_128_gcm_randnonce() : EVP_aead_aes_128_gcm();
        case 32:
            return random_nonce ? EVP_aead_aes_256_gcm_randnonce() : EVP_aead_aes_256_gcm();
        default:
            return NULL;
    }
}

SHIM_EXPORT s2nshim_aead *s2nshim_aead_new(const uint8_t *key, size_t key_len, int32_t random_nonce)
{
    const EVP_AEAD *aead = kind(key_len, random_nonce);
    s2nshim_aead *a = aead == NULL ? NULL : aligned_alloc(ALIGN, sizeof(*a));
    if (a == NULL) {
        return NULL;
    }
    memset(a, 0, sizeof(*a));
    if (!EVP_AEAD_CTX_init((EVP_AEAD_CTX *) a, aead, key, key_len, EVP_AEAD_DEFAULT_TAG_LENGTH, NULL)) {
        ERR_clear_error();
        OPENSSL_cleanse(a, sizeof(*a));
        free(a);
        return NULL;
    }
    shim_live(&shim_stats.aeads, 1);
    return a;
}

SHIM_EXPORT void s2nshim_aead_free(s2nshim_aead *a)
{
    EVP_AEAD_CTX_cleanup((EVP_AEAD_CTX *) a); /* leaves the key schedule as it is */
#ifndef S2NSHIM_OFF_WIPE                      /* for tests: it stays in freed memory */
    OPENSSL_cleanse(a, sizeof(*a));
#endif
    free(a);
    shim_live(&shim_stats.aeads, -1);
}

/* AWS-LC has put an error into this thread's queue; nobody asks for it. */
static int32_t failed(void)
{
    ERR_clear_error();
    return 0;
}

SHIM_EXPORT int32_t s2nshim_aead_seal(const s2nshim_aead *a, uint8_t *out, const uint8_t *nonce, const uint8_t *in, size_t in_len,
        const uint8_t *ad, size_t ad_len)
{
    size_t n;
    if (in_len == 0) {
        in = out;
    }
    return EVP_AEAD_CTX_seal(ctx(a), out, &n, in_len + TAG, nonce, NONCE, in, in_len, ad, ad_len) ? 1 : failed();
}

SHIM_EXPORT int32_t s2nshim_aead_open(const s2nshim_aead *a, uint8_t *out, const uint8_t *nonce, const uint8_t *in, size_t in_len,
        const uint8_t *ad, size_t ad_len)
{
    /* On failure AWS-LC zeroes all of the room it was given: exactly the plaintext's. */
    size_t n, room = in_len - TAG;
    uint8_t none;
    if (room == 0) {
        out = &none;
    }
    return EVP_AEAD_CTX_open(ctx(a), out, &n, room, nonce, NONCE, in, in_len, ad, ad_len) ? 1 : failed();
}

/* The module puts its nonce behind the tag. Here it comes first, as in crypto/cipher: so tag and
 * nonce are taken from the module apart from the ciphertext. */
SHIM_EXPORT int32_t s2nshim_aead_seal_random(const s2nshim_aead *a, uint8_t *out, const uint8_t *in, size_t in_len,
        const uint8_t *ad, size_t ad_len)
{
    uint8_t trailer[TAG + NONCE];
    size_t n;
    uint8_t *body = out + NONCE;
    if (in_len == 0) {
        in = body;
    } else if (in == out) {
        memmove(body, in, in_len);
        in = body;
    }
    if (!EVP_AEAD_CTX_seal_scatter(ctx(a), body, trailer, &n, sizeof(trailer), NULL, 0, in, in_len, NULL, 0, ad, ad_len)) {
        OPENSSL_cleanse(body, in_len);
        return failed();
    }
    memcpy(body + in_len, trailer, TAG);
    memcpy(out, trailer + TAG, NONCE);
    return 1;
}

SHIM_EXPORT int32_t s2nshim_aead_open_random(const s2nshim_aead *a, uint8_t *out, const uint8_t *in, size_t in_len,
        const uint8_t *ad, size_t ad_len)
{
    uint8_t trailer[TAG + NONCE];
    size_t room = in_len - NONCE - TAG;
    const uint8_t *body = in + NONCE;
    memcpy(trailer, body + room, TAG);
    memcpy(trailer + TAG, in, NONCE);
    if (in == out) {
        /* Writes the room of the plaintext and nothing else. */
        memmove(out, body, room);
        body = out;
    }
    return EVP_AEAD_CTX_open_gather(ctx(a), room == 0 ? trailer : out, NULL, 0, room == 0 ? trailer : body, room, trailer,
                   sizeof(trailer), ad, ad_len)
            ? 1
            : failed();
}

SHIM_EXPORT uint64_t s2nshim_service_indicator(void)
{
    return FIPS_service_indicator_before_call();
}
