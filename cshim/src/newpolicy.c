/* Policies that s2n does not know: two of ours, and those that a program makes. s2n's table of names
 * cannot grow, so they are set on a config by pointer, and everything that its table promises by being
 * tested upstream is checked here: s2n's setter does not. A policy, once named, lives for ever, since
 * any config or connection may point to it. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "shim.h"
#include "tls/s2n_security_policies.h"
#include "tls/s2n_security_rules.h"
#include "tls/s2n_tls13.h"
#include "utils/s2n_safety.h"

struct own_policy {
    struct shim_policy named;
    struct own_policy *next;
    struct s2n_security_policy policy;
};

/* 20251015, which is default_fips, with other habits (FIPSPQ2026) and with NIST's curves only (FIPSNIST2026). */
static const struct s2n_kem_group *nist_groups[] = { &s2n_secp256r1_mlkem_768, &s2n_secp384r1_mlkem_1024 };
static const struct s2n_kem_preferences nist_kems = {
    .tls13_kem_group_count = s2n_array_len(nist_groups),
    .tls13_kem_groups = nist_groups,
};
static struct own_policy fips_nist = {
    .named = { "s2ngo-fips-nist-2026", &fips_nist.policy, S2NSHIM_SHARES_REUSE },
};
static struct own_policy fips_pq = {
    .named = { "s2ngo-fips-pq-2026", &fips_pq.policy, S2NSHIM_SHARES_HYBRID_ONLY },
    .next = &fips_nist,
};

static struct own_policy *const first = &fips_pq;
static struct own_policy *last = &fips_nist; /* lock guards it */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool shim_own_policy(int32_t index, struct shim_policy *out)
{
    struct own_policy *p = first;
    while (p != NULL && index-- > 0) {
        p = __atomic_load_n(&p->next, __ATOMIC_ACQUIRE);
    }
    if (p == NULL) {
        return false;
    }
    *out = p->named;
    return true;
}

/* What s2n_security_policies_init checks of each policy in s2n's table. */
static bool valid(const struct s2n_security_policy *policy)
{
    const struct s2n_ecc_preferences *curves = policy->ecc_preferences;
    const struct s2n_kem_preferences *kems = policy->kem_preferences;
    struct s2n_security_rule_result result = { 0 };
    return s2n_check_ecc_preferences_curves_list(curves) == S2N_SUCCESS
            && (policy->certificate_signature_preferences == NULL
                    || s2n_result_is_ok(s2n_validate_certificate_signature_preferences(policy->certificate_signature_preferences)))
            && curves->count <= S2N_ECC_EVP_SUPPORTED_CURVES_COUNT
            && curves->count + kems->tls13_kem_group_count > 0
            && (curves->count > 0 || policy->minimum_protocol_version >= S2N_TLS13)
            && s2n_validate_kem_preferences(kems, false) == S2N_SUCCESS
            && s2n_result_is_ok(s2n_security_policy_validate_security_rules(policy, &result)) && !result.found_error;
}

bool shim_policies_init(void)
{
    fips_pq.policy = security_policy_20251015;
    fips_nist.policy = security_policy_20251015;
    fips_nist.policy.kem_preferences = &nist_kems;
    return valid(&fips_pq.policy) && valid(&fips_nist.policy)
            && fips_pq.policy.rules[S2N_FIPS_140_3] && fips_nist.policy.rules[S2N_FIPS_140_3];
}

/* A policy in the making, with room for its lists. */
struct made_policy {
    struct own_policy own;
    struct s2n_cipher_preferences ciphers;
    struct s2n_ecc_preferences curves;
    struct s2n_signature_preferences sigs;
    uint8_t n_kems;
    struct s2n_cipher_suite *suite[S2NSHIM_POLICY_MAX];
    const struct s2n_kem_group *kem[S2N_KEM_GROUPS_COUNT];
    const struct s2n_ecc_named_curve *curve[S2N_ECC_EVP_SUPPORTED_CURVES_COUNT];
    const struct s2n_signature_scheme *scheme[S2NSHIM_POLICY_MAX];
    struct s2n_kem_preferences *kems; /* its count is const, so it is allocated whole */
};

struct report {
    s2nshim_policy_fault *faults;
    int32_t n, max;
};

static void fault(struct report *r, uint8_t kind, uint8_t list, uint16_t value)
{
    if (r->n < r->max) {
        r->faults[r->n] = (s2nshim_policy_fault){ .kind = kind, .list = list, .value = value };
    }
    r->n++;
}

/* Whether values[i] is the first of its kind; a second one is a fault. */
static bool first_of(struct report *r, uint8_t list, const uint16_t *values, uint16_t i)
{
    int before = 0;
    for (uint16_t k = 0; k < i; k++) {
        before += values[k] == values[i];
    }
    if (before == 1) {
        fault(r, S2NSHIM_FAULT_DUPLICATE, list, values[i]);
    }
    return before == 0;
}

static const struct s2n_security_rule *const fips_rule = &security_rule_definitions[S2N_FIPS_140_3];

static void make_suites(struct made_policy *m, const s2nshim_policy_info *info, struct report *r)
{
    bool tls13 = false;
    for (uint16_t i = 0; i < info->n_suites; i++) {
        uint16_t value = info->suites[i];
        if (!first_of(r, S2NSHIM_LIST_SUITES, info->suites, i)) {
            continue;
        }
        const uint8_t iana[] = { (uint8_t) (value >> 8), (uint8_t) value };
        struct s2n_cipher_suite *suite = NULL;
        if (s2n_result_is_error(s2n_cipher_suite_from_iana(iana, sizeof(iana), &suite)) || suite == NULL) {
            fault(r, S2NSHIM_FAULT_UNKNOWN, S2NSHIM_LIST_SUITES, value);
            continue;
        }
        bool fips = false;
        bool for_13 = suite->minimum_required_tls_version >= S2N_TLS13;
        tls13 = tls13 || for_13;
        if (!suite->available) {
            fault(r, S2NSHIM_FAULT_UNAVAILABLE, S2NSHIM_LIST_SUITES, value);
        }
        if (for_13 && info->max_version < 0x0304) {
            fault(r, S2NSHIM_FAULT_NEEDS_TLS13, S2NSHIM_LIST_SUITES, value);
        }
        if (info->fips && (s2n_result_is_error(fips_rule->validate_cipher_suite(suite, &fips)) || !fips)) {
            fault(r, S2NSHIM_FAULT_NOT_FIPS, S2NSHIM_LIST_SUITES, value);
        }
        m->suite[m->ciphers.count++] = suite;
    }
    if (info->n_suites == 0) {
        fault(r, S2NSHIM_FAULT_EMPTY, S2NSHIM_LIST_SUITES, 0);
    } else if (!tls13 && info->max_version >= 0x0304) {
        fault(r, S2NSHIM_FAULT_NO_TLS13, S2NSHIM_LIST_SUITES, 0);
    }
    m->ciphers.suites = m->suite;
}

static void make_group(struct made_policy *m, const s2nshim_policy_info *info, uint16_t value, struct report *r)
{
    const struct s2n_ecc_named_curve *curve = NULL;
    const struct s2n_kem_group *kem = NULL;
    bool is_curve = false;
    bool is_kem = false;
    bool fips = false;
    (void) s2n_find_ecc_curve_from_iana_id(value, &curve, &is_curve);
    (void) s2n_find_kem_group_from_iana_id(value, &kem, &is_kem);
    if (is_curve) {
        if (info->fips && (s2n_result_is_error(fips_rule->validate_curve(curve, &fips)) || !fips)) {
            fault(r, S2NSHIM_FAULT_NOT_FIPS, S2NSHIM_LIST_GROUPS, value);
        }
        if (m->curves.count == s2n_array_len(m->curve)) {
            fault(r, S2NSHIM_FAULT_TOO_MANY, S2NSHIM_LIST_GROUPS, s2n_array_len(m->curve));
            return;
        }
        m->curve[m->curves.count++] = curve;
    } else if (is_kem) {
        if (!s2n_kem_group_is_available(kem)) {
            fault(r, S2NSHIM_FAULT_UNAVAILABLE, S2NSHIM_LIST_GROUPS, value);
        }
        if (m->curves.count > 0) {
            fault(r, S2NSHIM_FAULT_ORDER, S2NSHIM_LIST_GROUPS, value);
        }
        if (info->max_version < 0x0304) {
            fault(r, S2NSHIM_FAULT_NEEDS_TLS13, S2NSHIM_LIST_GROUPS, value);
        }
        if (info->fips && (s2n_result_is_error(fips_rule->validate_hybrid_group(kem, &fips)) || !fips)) {
            fault(r, S2NSHIM_FAULT_NOT_FIPS, S2NSHIM_LIST_GROUPS, value);
        }
        if (m->n_kems == s2n_array_len(m->kem)) {
            fault(r, S2NSHIM_FAULT_TOO_MANY, S2NSHIM_LIST_GROUPS, s2n_array_len(m->kem));
            return;
        }
        m->kem[m->n_kems++] = kem;
    } else {
        fault(r, S2NSHIM_FAULT_UNKNOWN, S2NSHIM_LIST_GROUPS, value);
    }
}

static void make_groups(struct made_policy *m, const s2nshim_policy_info *info, struct report *r)
{
    for (uint16_t i = 0; i < info->n_groups; i++) {
        if (first_of(r, S2NSHIM_LIST_GROUPS, info->groups, i)) {
            make_group(m, info, info->groups[i], r);
        }
    }
    if (info->n_groups == 0) {
        fault(r, S2NSHIM_FAULT_EMPTY, S2NSHIM_LIST_GROUPS, 0);
    } else if (m->curves.count == 0 && m->n_kems > 0 && info->min_version < 0x0304) {
        fault(r, S2NSHIM_FAULT_NO_CURVE, S2NSHIM_LIST_GROUPS, 0);
    }
    m->curves.ecc_curves = m->curves.count == 0 ? NULL : m->curve;
    const struct s2n_kem_preferences kems = {
        .tls13_kem_group_count = m->n_kems,
        .tls13_kem_groups = m->n_kems == 0 ? NULL : m->kem,
    };
    m->kems = malloc(sizeof(kems));
    if (m->kems == NULL) {
        fault(r, S2NSHIM_FAULT_MEMORY, 0, 0);
        return;
    }
    memcpy(m->kems, &kems, sizeof(kems));
}

static const struct s2n_signature_scheme *find_scheme(uint16_t value)
{
    const struct s2n_signature_preferences *all = &s2n_signature_preferences_all;
    for (uint8_t i = 0; i < all->count; i++) {
        if (all->signature_schemes[i]->iana_value == value && value != TLS_SIGNATURE_SCHEME_PRIVATE_INTERNAL_RSA_PKCS1_MD5_SHA1) {
            return all->signature_schemes[i];
        }
    }
    return NULL;
}

static void make_schemes(struct made_policy *m, const s2nshim_policy_info *info, struct report *r)
{
    bool tls13 = false;
    bool sha1 = false;
    bool mldsa = false;
    for (uint16_t i = 0; i < info->n_schemes; i++) {
        uint16_t value = info->schemes[i];
        if (!first_of(r, S2NSHIM_LIST_SCHEMES, info->schemes, i)) {
            continue;
        }
        const struct s2n_signature_scheme *scheme = find_scheme(value);
        if (scheme == NULL) {
            fault(r, S2NSHIM_FAULT_UNKNOWN, S2NSHIM_LIST_SCHEMES, value);
            continue;
        }
        bool fips = false;
        if (info->fips && (s2n_result_is_error(fips_rule->validate_sig_scheme(scheme, &fips)) || !fips)) {
            fault(r, S2NSHIM_FAULT_NOT_FIPS, S2NSHIM_LIST_SCHEMES, value);
        }
        sha1 = sha1 || scheme->hash_alg == S2N_HASH_SHA1;
        mldsa = mldsa || scheme->sig_alg == S2N_SIGNATURE_MLDSA;
        /* What s2n_signature_scheme_validate_for_recv lets pass. */
        tls13 = tls13
                || (scheme->maximum_protocol_version == S2N_UNKNOWN_PROTOCOL_VERSION && scheme->hash_alg != S2N_HASH_SHA1
                        && scheme->sig_alg != S2N_SIGNATURE_RSA);
        m->scheme[m->sigs.count++] = scheme;
    }
    if (info->n_schemes == 0) {
        fault(r, S2NSHIM_FAULT_EMPTY, S2NSHIM_LIST_SCHEMES, 0);
    } else if (!tls13 && info->max_version >= 0x0304) {
        fault(r, S2NSHIM_FAULT_NO_TLS13, S2NSHIM_LIST_SCHEMES, 0);
    }
    m->sigs.signature_schemes = m->scheme;
    /* The signatures in certificates: those of s2n's defaults, unless the policy itself stoops to SHA-1. */
    if (!sha1) {
        m->own.policy.certificate_signature_preferences =
                mldsa ? &s2n_certificate_signature_preferences_20250512 : &s2n_certificate_signature_preferences_20201110;
    }
}

static void make_versions(struct made_policy *m, const s2nshim_policy_info *info, struct report *r)
{
    bool fips = false;
    if (info->min_version < 0x0301 || info->min_version > 0x0304) {
        fault(r, S2NSHIM_FAULT_UNKNOWN, S2NSHIM_LIST_MIN, info->min_version);
    }
    /* Which of the two it is, s2n reads from the suites. */
    if (info->max_version < 0x0303 || info->max_version > 0x0304) {
        fault(r, S2NSHIM_FAULT_UNKNOWN, S2NSHIM_LIST_MAX, info->max_version);
    }
    if (info->min_version > info->max_version) {
        fault(r, S2NSHIM_FAULT_MIN_OVER_MAX, S2NSHIM_LIST_MIN, 0);
    }
    uint8_t min = (uint8_t) (info->min_version - 0x0300 + S2N_SSLv3);
    if (info->fips && (s2n_result_is_error(fips_rule->validate_version(min, &fips)) || !fips)) {
        fault(r, S2NSHIM_FAULT_NOT_FIPS, S2NSHIM_LIST_MIN, info->min_version);
    }
    m->own.policy.minimum_protocol_version = min;
}

static bool name_taken(const char *name)
{
    if (name[0] == 0) {
        return true; /* stands for default_fips */
    }
    /* s2n finds its own whatever their case. */
    const struct s2n_security_policy *ignored = NULL;
    if (s2n_find_security_policy_from_version(name, &ignored) == S2N_SUCCESS) {
        return true;
    }
    for (size_t i = 0; i < deprecated_security_policies_len; i++) {
        if (strcasecmp(deprecated_security_policies[i], name) == 0) {
            return true;
        }
    }
    struct shim_policy own;
    for (int32_t i = 0; shim_own_policy(i, &own); i++) {
        if (strcasecmp(own.name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void make_rules(struct made_policy *m, const s2nshim_policy_info *info, struct report *r)
{
    struct s2n_security_policy *policy = &m->own.policy;
    policy->cipher_preferences = &m->ciphers;
    policy->kem_preferences = m->kems;
    policy->ecc_preferences = &m->curves;
    policy->signature_preferences = &m->sigs;
    if (r->n > 0) {
        return; /* nothing for s2n to look at */
    }
    struct s2n_security_rule_result secret = { 0 };
    policy->rules[S2N_PERFECT_FORWARD_SECRECY] =
            s2n_result_is_ok(s2n_security_rule_validate_policy(&security_rule_definitions[S2N_PERFECT_FORWARD_SECRECY], policy, &secret))
            && !secret.found_error;
    policy->rules[S2N_FIPS_140_3] = info->fips != 0;
    if (!valid(policy) || s2n_security_policy_supports_tls13(policy) != (info->max_version >= 0x0304)) {
        fault(r, S2NSHIM_FAULT_RULES, 0, 0);
    }
}

SHIM_EXPORT int32_t s2nshim_policy_new(const s2nshim_policy_info *info, s2nshim_policy_fault *faults, int32_t max)
{
    struct report r = { .faults = faults, .max = max };
    struct made_policy *m = calloc(1, sizeof(*m));
    char *name = strdup(info->name);
    if (m == NULL || name == NULL) {
        free(m);
        free(name);
        fault(&r, S2NSHIM_FAULT_MEMORY, 0, 0);
        return r.n;
    }
    m->own.named = (struct shim_policy){ name, &m->own.policy, S2NSHIM_SHARES_REUSE };
    make_versions(m, info, &r);
    make_suites(m, info, &r);
    make_groups(m, info, &r);
    make_schemes(m, info, &r);
    make_rules(m, info, &r);

    pthread_mutex_lock(&lock);
    if (name_taken(name)) {
        fault(&r, S2NSHIM_FAULT_NAME, 0, 0);
    }
    if (r.n == 0) {
        __atomic_store_n(&last->next, &m->own, __ATOMIC_RELEASE);
        last = &m->own;
    }
    pthread_mutex_unlock(&lock);
    if (r.n > 0) {
        free(m->kems);
        free(m);
        free(name);
    }
    return r.n;
}
