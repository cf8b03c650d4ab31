/* Tells Go's scheduler that a long call goes on.
 *
 * Go's monitor thread takes the P of a thread that it finds in the same call into C twice. While it finds such
 * calls it looks every 20 microseconds (some 75 to 130, with the kernel's timer slack and its own time); only
 * after 50 looks without one does it slow down, to one in 10 ms at last. One step of a handshake lasts hundreds
 * of microseconds, so at full load it never slows down: each look costs a context switch, each P taken wakes
 * another thread, and together they cost up to a quarter of a handshake's CPU time (docs/BENCHMARKING.md).
 * To call a Go function, whatever it does, makes a new call of the rest. So one that does nothing is called
 * between operations of public-key cryptography and around long sends. Few operations last long enough by
 * themselves (RSA signatures do), so the monitor comes to rest, and then none is long enough.
 *
 * ../calls.txt lists which calls of s2n's come here on their way to AWS-LC.
 */
#include <openssl/evp.h>
#include <openssl/x509.h>

#include "shim.h"

static void (*tick)(void);

SHIM_EXPORT void s2nshim_set_tick(void (*f)(void))
{
    __atomic_store_n(&tick, f, __ATOMIC_RELEASE);
}

void shim_tick(void)
{
    void (*f)(void) = __atomic_load_n(&tick, __ATOMIC_ACQUIRE);
    if (f) {
        f();
    }
}

/* Before and after: what lies between two operations is long too. */
#define TICKED(call)         \
    do {                     \
        shim_tick();         \
        int result = (call); \
        shim_tick();         \
        return result;       \
    } while (0)

int shim_EVP_PKEY_keygen(EVP_PKEY_CTX *ctx, EVP_PKEY **key)
{
    TICKED(EVP_PKEY_keygen(ctx, key));
}

int shim_EVP_PKEY_derive(EVP_PKEY_CTX *ctx, uint8_t *secret, size_t *size)
{
    TICKED(EVP_PKEY_derive(ctx, secret, size));
}

int shim_EVP_PKEY_encapsulate(EVP_PKEY_CTX *ctx, uint8_t *ciphertext, size_t *ciphertext_size, uint8_t *secret,
        size_t *secret_size)
{
    TICKED(EVP_PKEY_encapsulate(ctx, ciphertext, ciphertext_size, secret, secret_size));
}

int shim_EVP_PKEY_decapsulate(EVP_PKEY_CTX *ctx, uint8_t *secret, size_t *secret_size, const uint8_t *ciphertext,
        size_t ciphertext_size)
{
    TICKED(EVP_PKEY_decapsulate(ctx, secret, secret_size, ciphertext, ciphertext_size));
}

int shim_EVP_DigestSignFinal(EVP_MD_CTX *ctx, uint8_t *signature, size_t *size)
{
    TICKED(EVP_DigestSignFinal(ctx, signature, size));
}

int shim_EVP_PKEY_sign(EVP_PKEY_CTX *ctx, uint8_t *signature, size_t *size, const uint8_t *digest, size_t digest_size)
{
    TICKED(EVP_PKEY_sign(ctx, signature, size, digest, digest_size));
}

int shim_EVP_DigestVerifyFinal(EVP_MD_CTX *ctx, const uint8_t *signature, size_t size)
{
    TICKED(EVP_DigestVerifyFinal(ctx, signature, size));
}

int shim_EVP_PKEY_verify(EVP_PKEY_CTX *ctx, const uint8_t *signature, size_t size, const uint8_t *digest,
        size_t digest_size)
{
    TICKED(EVP_PKEY_verify(ctx, signature, size, digest, digest_size));
}

int shim_X509_verify_cert(X509_STORE_CTX *ctx)
{
    TICKED(X509_verify_cert(ctx));
}
