/* Starts s2n exactly once. The memory callbacks come before s2n_init, else s2n would mlock
 * every allocation; no atexit handler, since Go's threads may still be in C when exit runs. */
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <pthread.h>

#include "seams.h"
#include "shim.h"
#include "tls/s2n_tls.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static s2nshim_result init_result;

static void init_once(void)
{
    shim_mem_install();
    if (s2n_disable_atexit() != S2N_SUCCESS || s2n_init() != S2N_SUCCESS) {
        init_result = shim_failure();
        return;
    }
    if (!shim_seam_check()) {
        /* The pin moved and what a seam hangs on moved with it: never run on a guess. */
        init_result = (s2nshim_result){ .status = S2NSHIM_FAILED, .code = S2N_ERR_SAFETY };
        return;
    }
    if (!shim_policies_init()) {
        init_result = (s2nshim_result){ .status = S2NSHIM_FAILED, .code = S2N_ERR_INVALID_SECURITY_POLICY };
        return;
    }
    /* s2n makes each connection with its own default config before ours is set. That config's trust in the
     * system's roots would cost every connection a verification context, and is never used. */
    s2n_x509_trust_store_wipe(&s2n_fetch_default_config()->trust_store);
    ERR_clear_error();
}

SHIM_EXPORT s2nshim_result s2nshim_init(void)
{
    pthread_once(&once, init_once);
    return init_result;
}
