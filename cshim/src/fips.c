/* What the linked module says of itself. */
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/service_indicator.h>

#include "shim.h"

SHIM_EXPORT s2nshim_module_info s2nshim_module(void)
{
    s2nshim_module_info info = {
        .fips = FIPS_mode(),
        .awslc_version = awslc_version_string(),
    };
    return info;
}

SHIM_EXPORT int32_t s2nshim_self_test(void)
{
    int32_t verdict = 1;
    if (BORINGSSL_integrity_test() != 1) {
        verdict = -1;
    } else if (BORINGSSL_self_test() != 1) {
        verdict = -2;
    }
    ERR_clear_error();
    return verdict;
}
