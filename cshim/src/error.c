/* s2n's and AWS-LC's errors as values, and the alert that tells the peer what was wrong. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509.h>

#include "error/s2n_errno.h"
#include "shim.h"
#include "tls/s2n_alerts.h"

enum {
    ALERT_UNEXPECTED_MESSAGE = 10,
    ALERT_BAD_RECORD_MAC = 20,
    ALERT_RECORD_OVERFLOW = 22,
    ALERT_HANDSHAKE_FAILURE = 40,
    ALERT_BAD_CERTIFICATE = 42,
    ALERT_UNSUPPORTED_CERTIFICATE = 43,
    ALERT_CERTIFICATE_REVOKED = 44,
    ALERT_CERTIFICATE_EXPIRED = 45,
    ALERT_ILLEGAL_PARAMETER = 47,
    ALERT_UNKNOWN_CA = 48,
    ALERT_DECODE_ERROR = 50,
    ALERT_DECRYPT_ERROR = 51,
    ALERT_PROTOCOL_VERSION = 70,
    ALERT_INTERNAL_ERROR = 80,
    ALERT_INAPPROPRIATE_FALLBACK = 86,
    ALERT_MISSING_EXTENSION = 109,
    ALERT_UNSUPPORTED_EXTENSION = 110,
    ALERT_CERTIFICATE_REQUIRED = 116,
    ALERT_NO_APPLICATION_PROTOCOL = 120
};

s2nshim_result shim_failure(void)
{
    s2nshim_result r = { .status = S2NSHIM_FAILED, .code = s2n_errno, .sys = errno };
    r.crypto = (uint32_t) ERR_peek_last_error();
    ERR_clear_error();
    s2n_errno = S2N_ERR_OK;
    return r;
}

SHIM_EXPORT const char *s2nshim_error_name(int32_t code)
{
    return s2n_strerror_name(code);
}

SHIM_EXPORT const char *s2nshim_error_message(int32_t code)
{
    return s2n_strerror(code, "EN");
}

SHIM_EXPORT int32_t s2nshim_error_type(int32_t code)
{
    return s2n_error_get_type(code);
}

SHIM_EXPORT int32_t s2nshim_error_next(int32_t code)
{
    static const struct {
        int32_t first, end;
    } ranges[] = {
        { S2N_ERR_T_OK_START, S2N_ERR_T_OK_END },
        { S2N_ERR_T_IO_START, S2N_ERR_T_IO_END },
        { S2N_ERR_T_CLOSED_START, S2N_ERR_T_CLOSED_END },
        { S2N_ERR_T_BLOCKED_START, S2N_ERR_T_BLOCKED_END },
        { S2N_ERR_T_ALERT_START, S2N_ERR_T_ALERT_END },
        { S2N_ERR_T_PROTO_START, S2N_ERR_T_PROTO_END },
        { S2N_ERR_T_INTERNAL_START, S2N_ERR_T_INTERNAL_END },
        { S2N_ERR_T_USAGE_START, S2N_ERR_T_USAGE_END },
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        if (code < ranges[i].first) {
            return ranges[i].first;
        }
        if (code + 1 < ranges[i].end) {
            return code + 1;
        }
    }
    return S2NSHIM_ERRORS_END;
}

static int32_t alert_of_chain(int32_t x509)
{
    switch (x509) {
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
        case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
        case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
            return ALERT_UNKNOWN_CA;
        case X509_V_ERR_CERT_NOT_YET_VALID:
        case X509_V_ERR_CERT_HAS_EXPIRED:
            return ALERT_CERTIFICATE_EXPIRED;
        case X509_V_ERR_CERT_REVOKED:
            return ALERT_CERTIFICATE_REVOKED;
        default:
            return ALERT_BAD_CERTIFICATE;
    }
}

/* s2n maps some of its errors to alerts, and sends none of them. Where it has no alert, or a
 * vaguer one than RFC 8446, 6.2 asks for, this table speaks first. */
SHIM_EXPORT int32_t s2nshim_error_alert(int32_t code, int32_t x509, int32_t version)
{
    switch (code) {
        case S2N_ERR_CERT_UNTRUSTED:
            return x509 == 0 ? ALERT_UNKNOWN_CA : alert_of_chain(x509);
        case S2N_ERR_CERT_INVALID_HOSTNAME:
        case S2N_ERR_CERT_UNHANDLED_CRITICAL_EXTENSION:
        case S2N_ERR_CERT_REJECTED:
        case S2N_ERR_CERT_MAX_CHAIN_DEPTH_EXCEEDED:
        case S2N_ERR_CERT_INVALID:
        case S2N_ERR_DECODE_CERTIFICATE:
        case S2N_ERR_CRL_LOOKUP_FAILED:
        case S2N_ERR_CRL_SIGNATURE:
        case S2N_ERR_CRL_ISSUER:
        case S2N_ERR_CRL_UNHANDLED_CRITICAL_EXTENSION:
        case S2N_ERR_CRL_INVALID_THIS_UPDATE:
        case S2N_ERR_CRL_INVALID_NEXT_UPDATE:
        case S2N_ERR_CRL_NOT_YET_VALID:
        case S2N_ERR_CRL_EXPIRED:
            return ALERT_BAD_CERTIFICATE;
        case S2N_ERR_CERT_TYPE_UNSUPPORTED:
        case S2N_ERR_CERT_INTENT_INVALID:
        case S2N_ERR_SECURITY_POLICY_INCOMPATIBLE_CERT:
            return ALERT_UNSUPPORTED_CERTIFICATE;
        case S2N_ERR_CERT_REVOKED:
            return ALERT_CERTIFICATE_REVOKED;
        case S2N_ERR_CERT_NOT_YET_VALID:
        case S2N_ERR_CERT_EXPIRED:
            return ALERT_CERTIFICATE_EXPIRED;
        case S2N_ERR_MISSING_CLIENT_CERT:
            /* certificate_required is TLS 1.3's; RFC 5246, 7.4.6 has handshake_failure. */
            return version >= S2N_TLS13 ? ALERT_CERTIFICATE_REQUIRED : ALERT_HANDSHAKE_FAILURE;
        case S2N_ERR_NO_CERT_FOUND:
            return version >= S2N_TLS13 ? ALERT_DECODE_ERROR : ALERT_HANDSHAKE_FAILURE;
        case S2N_ERR_NO_APPLICATION_PROTOCOL:
            return ALERT_NO_APPLICATION_PROTOCOL;
        case S2N_ERR_PROTOCOL_VERSION_UNSUPPORTED:
        case S2N_ERR_UNKNOWN_PROTOCOL_VERSION:
        case S2N_ERR_CLIENT_PROTOCOL_VERSION:
        case S2N_ERR_SERVER_PROTOCOL_VERSION:
        case S2N_ERR_ACTUAL_PROTOCOL_VERSION:
            return ALERT_PROTOCOL_VERSION;
        case S2N_ERR_FALLBACK_DETECTED:
            return ALERT_INAPPROPRIATE_FALLBACK;
        case S2N_ERR_CIPHER_NOT_SUPPORTED:
        case S2N_ERR_NO_VALID_SIGNATURE_SCHEME:
        case S2N_ERR_INVALID_SIGNATURE_ALGORITHM:
        case S2N_ERR_NON_EMPTY_RENEGOTIATION_INFO:
        case S2N_ERR_NO_RENEGOTIATION:
        case S2N_ERR_ECDHE_UNSUPPORTED_CURVE:
        case S2N_ERR_ECDSA_UNSUPPORTED_CURVE:
        case S2N_ERR_KEM_UNSUPPORTED_PARAMS:
        case S2N_ERR_INVALID_SUPPORTED_GROUP_STATE:
            return ALERT_HANDSHAKE_FAILURE;
        case S2N_ERR_BAD_KEY_SHARE:
        case S2N_ERR_ECDHE_SHARED_SECRET:
        case S2N_ERR_ECDHE_INVALID_PUBLIC_KEY:
        case S2N_ERR_ECDHE_INVALID_PUBLIC_KEY_FIPS:
        case S2N_ERR_DH_SHARED_SECRET:
        case S2N_ERR_PQ_CRYPTO:
        case S2N_ERR_INVALID_SIGNATURE_SCHEME:
        case S2N_ERR_INVALID_HELLO_RETRY:
        case S2N_ERR_PROTOCOL_DOWNGRADE_DETECTED:
        case S2N_ERR_DUPLICATE_EXTENSION:
        case S2N_ERR_INVALID_MAX_FRAG_LEN:
        case S2N_ERR_MAX_FRAG_LEN_MISMATCH:
            return ALERT_ILLEGAL_PARAMETER;
        case S2N_ERR_MISSING_EXTENSION:
            return ALERT_MISSING_EXTENSION;
        case S2N_ERR_UNSUPPORTED_EXTENSION:
            return ALERT_UNSUPPORTED_EXTENSION;
        case S2N_ERR_DECRYPT:
        case S2N_ERR_CBC_VERIFY:
            return ALERT_BAD_RECORD_MAC;
        case S2N_ERR_RECORD_LIMIT:
        case S2N_ERR_MAX_INNER_PLAINTEXT_SIZE:
        case S2N_ERR_FRAGMENT_LENGTH_TOO_LARGE:
            return ALERT_RECORD_OVERFLOW;
        case S2N_ERR_VERIFY_SIGNATURE:
        case S2N_ERR_BAD_FINISHED:
        case S2N_ERR_BAD_PSK_BINDER:
            return ALERT_DECRYPT_ERROR;
        case S2N_ERR_STUFFER_OUT_OF_DATA:
        case S2N_ERR_INVALID_PARSED_EXTENSIONS:
        case S2N_ERR_SIZE_MISMATCH:
            return ALERT_DECODE_ERROR;
        case S2N_ERR_BAD_MESSAGE:
        case S2N_ERR_UNEXPECTED_CERT_REQUEST:
        case S2N_ERR_MISSING_CERT_REQUEST:
        case S2N_ERR_SHUTDOWN_RECORD_TYPE:
        case S2N_ERR_ALERT_PRESENT:
            return ALERT_UNEXPECTED_MESSAGE;
        default:
            break;
    }
    uint8_t alert = 0;
    int found = s2n_error_get_alert(code, &alert);
    s2n_errno = S2N_ERR_OK; /* "no alert" is an answer here, not an error to leave behind */
    if (found == S2N_SUCCESS) {
        return alert;
    }
    return s2n_error_get_type(code) == S2N_ERR_T_PROTO ? ALERT_HANDSHAKE_FAILURE : ALERT_INTERNAL_ERROR;
}

SHIM_EXPORT const char *s2nshim_x509_error_message(int32_t x509)
{
    return X509_verify_cert_error_string(x509);
}

SHIM_EXPORT void s2nshim_crypto_error_message(uint32_t crypto, char *out, size_t size)
{
    ERR_error_string_n(crypto, out, size);
}

SHIM_EXPORT int32_t s2nshim_error_queue_depth(void)
{
    return ERR_peek_error() == 0 ? 0 : 1;
}
