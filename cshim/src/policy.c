/* The security policies, s2n's and ours, as plain lists. */
#include <string.h>

#include "shim.h"
#include "tls/s2n_cipher_preferences.h"
#include "tls/s2n_ecc_preferences.h"
#include "tls/s2n_kem_preferences.h"
#include "tls/s2n_security_policies.h"
#include "tls/s2n_signature_algorithms.h"

SHIM_EXPORT const char *s2nshim_policy_name(int32_t index)
{
    for (int32_t i = 0;; i++) {
        if (security_policy_selection[i].version == NULL) {
            struct shim_policy own;
            return shim_own_policy(index - i, &own) ? own.name : NULL;
        }
        if (i == index) {
            return security_policy_selection[i].version;
        }
    }
}

bool shim_policy_find(const char *name, struct shim_policy *out)
{
    for (const struct s2n_security_policy_selection *s = security_policy_selection; s->version != NULL; s++) {
        if (strcmp(s->version, name) == 0) {
            *out = (struct shim_policy){ s->version, s->security_policy, S2NSHIM_SHARES_REUSE };
            return true;
        }
    }
    for (int32_t i = 0; shim_own_policy(i, out); i++) {
        if (strcmp(out->name, name) == 0) {
            return true;
        }
    }
    return false;
}

static uint16_t wire_version(uint8_t s2n_version)
{
    /* s2n counts 30, 31 … 34 for SSL 3.0, TLS 1.0 … 1.3. */
    return (uint16_t) (0x0300 + s2n_version - S2N_SSLv3);
}

/* s2n has some signature schemes once a protocol version, and one of its lists a suite twice. */
static void add_once(uint16_t *list, uint16_t *n, uint16_t value)
{
    for (uint16_t i = 0; i < *n; i++) {
        if (list[i] == value) {
            return;
        }
    }
    list[(*n)++] = value;
}

SHIM_EXPORT int32_t s2nshim_policy_get(const char *name, s2nshim_policy_info *out)
{
    /* s2n keeps the names of these and nothing else. */
    for (size_t i = 0; i < deprecated_security_policies_len; i++) {
        if (strcmp(deprecated_security_policies[i], name) == 0) {
            return -2;
        }
    }
    struct shim_policy found;
    if (!shim_policy_find(name, &found)) {
        return -1;
    }
    const struct s2n_security_policy *policy = found.s2n;
    memset(out, 0, sizeof(*out));
    out->name = found.name;
    out->fips = policy->rules[S2N_FIPS_140_3];
    out->min_version = wire_version(policy->minimum_protocol_version);
    out->max_version = wire_version(S2N_TLS12);

    const struct s2n_cipher_preferences *ciphers = policy->cipher_preferences;
    for (uint16_t i = 0; i < ciphers->count && out->n_suites < S2NSHIM_POLICY_MAX; i++) {
        const struct s2n_cipher_suite *suite = ciphers->suites[i];
        if (!suite->available) {
            continue;
        }
        if (suite->minimum_required_tls_version >= S2N_TLS13) {
            out->max_version = wire_version(S2N_TLS13);
        }
        add_once(out->suites, &out->n_suites, (uint16_t) (suite->iana_value[0] << 8 | suite->iana_value[1]));
    }
    const struct s2n_kem_preferences *kems = policy->kem_preferences;
    for (uint8_t i = 0; kems != NULL && i < kems->tls13_kem_group_count && out->n_groups < S2NSHIM_POLICY_MAX; i++) {
        if (s2n_kem_group_is_available(kems->tls13_kem_groups[i])) {
            out->groups[out->n_groups++] = kems->tls13_kem_groups[i]->iana_id;
            out->n_hybrids++;
        }
    }
    const struct s2n_ecc_preferences *curves = policy->ecc_preferences;
    for (uint8_t i = 0; curves != NULL && i < curves->count && out->n_groups < S2NSHIM_POLICY_MAX; i++) {
        out->groups[out->n_groups++] = curves->ecc_curves[i]->iana_id;
    }
    const struct s2n_signature_preferences *sigs = policy->signature_preferences;
    for (uint8_t i = 0; i < sigs->count && out->n_schemes < S2NSHIM_POLICY_MAX; i++) {
        add_once(out->schemes, &out->n_schemes, sigs->signature_schemes[i]->iana_value);
    }
    return 0;
}
