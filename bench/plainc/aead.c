/* AES-GCM: a loop over EVP_AEAD_CTX_seal and _open. */
#include <openssl/aead.h>
#include <stdlib.h>
#include <string.h>

#include "side.h"

#define TAG 16

static int loop(const struct spec *spec, const EVP_AEAD_CTX *ctx, struct result *out)
{
    static const uint8_t nonce[12], ad[16];
    size_t size = (size_t) spec->size, len = 0;
    uint8_t *plain = calloc(1, size + TAG), *sealed = calloc(1, size + TAG);
    int ok = plain != NULL && sealed != NULL
            && EVP_AEAD_CTX_seal(ctx, sealed, &len, size + TAG, nonce, sizeof(nonce), plain, size, ad, sizeof(ad));
    bool seal = strcmp(spec->op, "seal") == 0;
    /* The buffers are touched now, once each way. */
    ok = ok && EVP_AEAD_CTX_open(ctx, plain, &len, size, nonce, sizeof(nonce), sealed, size + TAG, ad, sizeof(ad));
    measure_begin();
    for (long i = 0; ok && i < spec->n; i++) {
        ok = seal ? EVP_AEAD_CTX_seal(ctx, sealed, &len, size + TAG, nonce, sizeof(nonce), plain, size, ad, sizeof(ad))
                  : EVP_AEAD_CTX_open(ctx, plain, &len, size, nonce, sizeof(nonce), sealed, size + TAG, ad, sizeof(ad));
    }
    measure_end(out);
    free(plain);
    free(sealed);
    out->ops = spec->n;
    out->bytes = spec->n * spec->size;
    return ok ? 0 : fail("AES-GCM failed");
}

int run_aead(const struct spec *spec, struct result *out)
{
    static const uint8_t key[32];
    const EVP_AEAD *aead = spec->key == 16 ? EVP_aead_aes_128_gcm() : EVP_aead_aes_256_gcm();
    EVP_AEAD_CTX *ctx = EVP_AEAD_CTX_new(aead, key, (size_t) spec->key, TAG);
    if (ctx == NULL) {
        return fail("no context for a key of %ld bytes", spec->key);
    }
    int status = loop(spec, ctx, out);
    EVP_AEAD_CTX_free(ctx);
    return status;
}
