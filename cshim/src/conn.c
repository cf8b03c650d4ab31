/* A connection's life: made, negotiated, finished, freed. The Go side holds one handle with a
 * reference count, so that s2nshim_conn_free runs when no call is inside any more. */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim.h"
#include "tls/s2n_alerts.h"
#include "tls/s2n_security_policies.h"
#include "tls/s2n_tls.h"
#include "tls/s2n_tls13_key_schedule.h"

static int set_up(s2nshim_conn *conn, const char *server_name)
{
    struct s2n_connection *s2n = conn->s2n;
    if (s2n_connection_set_config(s2n, conn->config->s2n) != S2N_SUCCESS
            || s2n_connection_set_ctx(s2n, conn) != S2N_SUCCESS
            /* Names are compared in Go, by x509's rules, in the verification step. Without this s2n also
             * refuses some certificates for their names alone, such as one whose CN is an IP address. */
            || s2n_connection_set_verify_host_callback(s2n, NULL, NULL) != S2N_SUCCESS
            /* s2n's built-in blinding sleeps in the calling thread. */
            || s2n_connection_set_blinding(s2n, S2N_SELF_SERVICE_BLINDING) != S2N_SUCCESS
            || s2n_connection_set_send_cb(s2n, shim_on_send) != S2N_SUCCESS
            || s2n_connection_set_send_ctx(s2n, conn) != S2N_SUCCESS
            || s2n_connection_set_recv_cb(s2n, shim_on_recv) != S2N_SUCCESS
            || s2n_connection_set_recv_ctx(s2n, conn) != S2N_SUCCESS
            || s2n_connection_set_recv_buffering(s2n, true) != S2N_SUCCESS) {
        return S2N_FAILURE;
    }
    /* As many records in one system call as the out buffer holds; shim_on_send sizes that buffer. */
    s2n->multirecord_send = true;
    switch (conn->config->records) {
        case S2NSHIM_RECORDS_LOW_LATENCY:
            if (s2n_connection_prefer_low_latency(s2n) != S2N_SUCCESS) {
                return S2N_FAILURE;
            }
            break;
        case S2NSHIM_RECORDS_DYNAMIC:
            /* The first 16 KiB of a burst fit TCP's initial window of ten segments: records of one
             * segment each can be read as they come. A second of silence starts a new burst. */
            if (s2n_connection_set_dynamic_record_threshold(s2n, 16384, 1) != S2N_SUCCESS) {
                return S2N_FAILURE;
            }
            /* fall through */
        default:
            if (s2n_connection_prefer_throughput(s2n) != S2N_SUCCESS) {
                return S2N_FAILURE;
            }
    }
    if (server_name != NULL && s2n_set_server_name(s2n, server_name) != S2N_SUCCESS) {
        return S2N_FAILURE;
    }
    return S2N_SUCCESS;
}

SHIM_EXPORT s2nshim_result s2nshim_conn_new(s2nshim_config *config, int32_t fd, const char *server_name, s2nshim_conn **out)
{
    s2nshim_result r = { 0 };
    s2nshim_conn *conn = calloc(1, sizeof(*conn));
    if (conn == NULL) {
        return (s2nshim_result){ .status = S2NSHIM_FAILED, .code = S2N_ERR_ALLOC };
    }
    conn->fd = fd;
    conn->in_size = BUF_RECORD;
    conn->config = config;
    __atomic_fetch_add(&config->refs, 1, __ATOMIC_RELAXED);
    shim_live(&shim_stats.conns, 1);
    shim_current = conn;
    conn->s2n = s2n_connection_new(config->role == S2NSHIM_CLIENT ? S2N_CLIENT : S2N_SERVER);
    if (conn->s2n == NULL || set_up(conn, server_name) != S2N_SUCCESS) {
        r = shim_failure();
        shim_current = NULL;
        s2nshim_conn_free(conn);
        return r;
    }
    shim_current = NULL;
    *out = conn;
    return r;
}

SHIM_EXPORT void s2nshim_conn_free(s2nshim_conn *conn)
{
    shim_current = conn;
    if (conn->s2n != NULL) {
        s2n_connection_free(conn->s2n);
    }
    shim_shares_drop(conn);
    if (conn->out != NULL) {
        shim_buf_put(conn->out, conn->out_size);
    }
    shim_current = NULL;
    s2nshim_config_free(conn->config);
    free(conn);
    shim_live(&shim_stats.conns, -1);
}

/* A client of TLS 1.3 takes its handshake key for sending only with the server's Finished. For an
 * alert before that RFC 8446, A.1 asks to take it first; peers cannot read one in the clear. */
void shim_alert_key(struct s2n_connection *s2n)
{
    if (s2n->mode == S2N_CLIENT && s2n->actual_protocol_version >= S2N_TLS13 && s2n->server == s2n->secure
            && s2n->client != s2n->secure
            && s2n_result_is_error(s2n_tls13_key_schedule_set_key(s2n, S2N_HANDSHAKE_SECRET, S2N_CLIENT))) {
        s2n->client = s2n->initial;
    }
}

/* What a failed negotiate or record means, and the alert it deserves. */
static void judge(s2nshim_conn *conn, s2nshim_result *r)
{
    struct s2n_connection *s2n = conn->s2n;
    int type = s2n_error_get_type(r->code);
    if (conn->no_tls) {
        r->status = S2NSHIM_NOT_TLS;
    } else if (r->code == S2N_ERR_ALERT) {
        r->status = S2NSHIM_ALERT;
        r->alert = s2n->alert_in_data[1];
        conn->failed = true;
    } else if (type == S2N_ERR_T_CLOSED && s2n_atomic_flag_test(&s2n->close_notify_received)) {
        r->status = S2NSHIM_CLOSE_NOTIFY;
    } else if (type == S2N_ERR_T_CLOSED && conn->eof) {
        r->status = S2NSHIM_CUT;
    } else if (type == S2N_ERR_T_IO && (conn->read_errno != 0 || conn->write_errno != 0)) {
        r->status = S2NSHIM_SYS;
        r->sys = conn->read_errno != 0 ? conn->read_errno : conn->write_errno;
        r->flags |= conn->read_errno != 0 ? S2NSHIM_FLAG_READ : 0;
    } else {
        shim_fail_conn(conn, r);
    }
}

void shim_fail_conn(s2nshim_conn *conn, s2nshim_result *r)
{
    struct s2n_connection *s2n = conn->s2n;
    if (s2n->x509_validator.store_ctx != NULL) {
        r->x509 = X509_STORE_CTX_get_error(s2n->x509_validator.store_ctx);
    }
    if (conn->verify_alert != 0) {
        r->alert = conn->verify_alert;
        if (r->alert == 120) {
            r->code = S2N_ERR_NO_APPLICATION_PROTOCOL;
        }
    } else {
        r->alert = (uint8_t) s2nshim_error_alert(r->code, r->x509, s2n->actual_protocol_version);
    }
    s2n->reader_alert_out = r->alert;
    conn->failed = true;
    /* The delay guards against timing how a record failed to decrypt; everything else is told at once. */
    if ((r->code != S2N_ERR_DECRYPT && r->code != S2N_ERR_CBC_VERIFY) || !conn->config->blinding) {
        s2n->delay = 0;
    }
    r->delay = s2n->delay;
}

/* What waits in the out buffer leaves in as few system calls as the socket allows. */
static s2nshim_result leave(s2nshim_conn *conn, s2nshim_result r)
{
    if (conn->out_start == conn->out_end) {
        return r;
    }
    if (conn->fd < 0) {
        r.flags |= S2NSHIM_FLAG_OUT;
        return r;
    }
    s2nshim_result f = shim_flush_out(conn);
    if (r.status == S2NSHIM_OK || r.status == S2NSHIM_WANT_READ) {
        if (f.status != S2NSHIM_OK) {
            return f;
        }
    }
    if (conn->out_start != conn->out_end) {
        r.flags |= S2NSHIM_FLAG_OUT;
    }
    return r;
}

SHIM_EXPORT s2nshim_result s2nshim_conn_negotiate(s2nshim_conn *conn)
{
    s2nshim_result r = { 0 };
    shim_current = conn;
    if (conn->out_start != conn->out_end && conn->fd >= 0) {
        r = shim_flush_out(conn);
    }
    if (r.status != S2NSHIM_OK || conn->negotiated) {
        shim_current = NULL;
        return r;
    }
    s2n_blocked_status blocked = S2N_NOT_BLOCKED;
    const s2n_extract_secret_type_t stage = shim_wipe_stage(conn);
    conn->gather = true;
    errno = 0;
    int rc = s2n_negotiate(conn->s2n, &blocked);
    if (rc == S2N_SUCCESS) {
        conn->negotiated = true;
        shim_wipe_negotiated(conn);
        ERR_clear_error();
    } else {
        r = shim_failure();
        if (s2n_error_get_type(r.code) != S2N_ERR_T_BLOCKED) {
            judge(conn, &r);
            shim_shares_drop(conn);
            if (conn->failed && r.status != S2NSHIM_ALERT && r.delay == 0) {
                (void) s2nshim_conn_close_write(conn);
            }
            /* Go still asks for the chain of a certificate that was refused, and then frees the connection. */
            shim_wipe_failed(conn, r.delay != 0);
        } else if (r.code == S2N_ERR_ASYNC_BLOCKED) {
            r = (s2nshim_result){ .status = S2NSHIM_WANT_VERIFY };
        } else {
            r = (s2nshim_result){ .status = blocked == S2N_BLOCKED_ON_WRITE ? S2NSHIM_WANT_WRITE : S2NSHIM_WANT_READ };
        }
    }
    conn->gather = false;
    shim_wipe_stack(conn, stage, r.status != S2NSHIM_WANT_READ && r.status != S2NSHIM_WANT_WRITE && r.status != S2NSHIM_WANT_VERIFY);
    shim_current = conn;
    r = leave(conn, r);
    shim_current = NULL;
    return r;
}

SHIM_EXPORT void s2nshim_conn_verified(s2nshim_conn *conn, uint8_t alert)
{
    struct s2n_cert_validation_info *info = conn->verify;
    conn->verify = NULL;
    if (info == NULL) {
        return;
    }
    if (alert == 0) {
        (void) s2n_cert_validation_accept(info);
    } else {
        conn->verify_alert = alert;
        (void) s2n_cert_validation_reject(info);
    }
}

SHIM_EXPORT s2nshim_result s2nshim_conn_abort(s2nshim_conn *conn, uint8_t alert)
{
    if (!conn->failed) {
        conn->s2n->reader_alert_out = alert;
        conn->failed = true;
    }
    return s2nshim_conn_close_write(conn);
}

/* The length (host order) and DER of each certificate; with out NULL it only counts. */
static size_t pack_certs(const STACK_OF(X509) *chain, uint8_t *out)
{
    size_t total = 0;
    for (size_t i = 0; i < sk_X509_num(chain); i++) {
        X509 *cert = sk_X509_value(chain, i);
        uint8_t *at = out == NULL ? NULL : out + total + sizeof(uint32_t);
        int len = i2d_X509(cert, out == NULL ? NULL : &at);
        if (len < 0) {
            return 0;
        }
        if (out != NULL) {
            uint32_t prefix = (uint32_t) len;
            memcpy(out + total, &prefix, sizeof(prefix));
        }
        total += sizeof(uint32_t) + (size_t) len;
    }
    return total;
}

SHIM_EXPORT uint8_t *s2nshim_conn_peer_certs(s2nshim_conn *conn, size_t *sent, size_t *len)
{
    const struct s2n_x509_validator *v = &conn->s2n->x509_validator;
    const STACK_OF(X509) *wire = v->cert_chain_from_wire, *verified = NULL;
    *sent = *len = 0;
    if (wire == NULL) {
        return NULL;
    }
    if (v->store_ctx != NULL && s2n_x509_validator_is_cert_chain_validated(v)) {
        verified = X509_STORE_CTX_get0_chain(v->store_ctx);
    }
    *sent = pack_certs(wire, NULL);
    size_t total = *sent + (verified == NULL ? 0 : pack_certs(verified, NULL));
    uint8_t *out = total == 0 ? NULL : malloc(total);
    if (out == NULL) {
        return NULL;
    }
    *len = pack_certs(wire, out);
    *len += verified == NULL ? 0 : pack_certs(verified, out + *len);
    if (*len != total) { /* out of memory in between */
        free(out);
        return NULL;
    }
    return out;
}

static uint16_t group_of(const struct s2n_connection *s2n)
{
    const struct s2n_kex_parameters *kex = &s2n->kex_params;
    if (s2n->actual_protocol_version >= S2N_TLS13 && kex->server_kem_group_params.kem_group != NULL) {
        return kex->server_kem_group_params.kem_group->iana_id;
    }
    const char *curve = s2n_connection_get_curve((struct s2n_connection *) (uintptr_t) s2n);
    if (curve != NULL && strcmp(curve, "NONE") != 0) {
        return kex->server_ecc_evp_params.negotiated_curve->iana_id;
    }
    return 0;
}

SHIM_EXPORT s2nshim_result s2nshim_conn_finish(s2nshim_conn *conn, s2nshim_conn_info *out)
{
    struct s2n_connection *s2n = conn->s2n;
    shim_current = conn;
    memset(out, 0, sizeof(*out));
    out->policy = conn->config->policy_name;
    out->fips = conn->config->policy->rules[S2N_FIPS_140_3];
    out->handshake_type = "";
    /* s2n builds the name into storage of the handshake type table, which lives on. */
    const char *type = s2n_connection_get_handshake_type_name(s2n);
    if (type != NULL) {
        out->handshake_type = type;
    }
    memcpy(out->protocol, s2n->application_protocol, sizeof(out->protocol) - 1);
    memcpy(out->server_name, s2n->server_name, sizeof(out->server_name) - 1);
    out->version = (uint16_t) (0x0300 + s2n->actual_protocol_version - S2N_SSLv3);
    const uint8_t *suite = s2n->secure->cipher_suite->iana_value;
    out->suite = (uint16_t) (suite[0] << 8 | suite[1]);
    out->group = group_of(s2n);
    if (s2n->handshake_params.server_cert_sig_scheme != NULL) {
        out->scheme = s2n->handshake_params.server_cert_sig_scheme->iana_value;
    }
    out->client_cert = s2n_connection_client_cert_used(s2n) == 1;
    if (out->client_cert && s2n->handshake_params.client_cert_sig_scheme != NULL) {
        out->client_scheme = s2n->handshake_params.client_cert_sig_scheme->iana_value;
    }
    out->resumed = s2n_connection_is_session_resumed(s2n) == 1;
    out->retried = s2n_is_hello_retry_handshake(s2n);
    out->ems = s2n->ems_negotiated;
    shim_hash_info(conn, out);

    s2nshim_result r = { 0 };
    shim_shares_drop(conn);
    s2n_x509_validator_wipe(&s2n->x509_validator);
    shim_wipe_finished(conn);
    if (s2n_connection_free_handshake(s2n) != S2N_SUCCESS) {
        r = shim_failure();
    }
    shim_release_in(conn);
    shim_release_out(conn);
    ERR_clear_error();
    shim_current = NULL;
    r.flags = shim_pending_flags(conn);
    return r;
}

SHIM_EXPORT s2nshim_conn_counts s2nshim_conn_get_counts(s2nshim_conn *conn)
{
    s2nshim_conn_counts c;
    c.wire_in = __atomic_load_n(&conn->counts.wire_in, __ATOMIC_RELAXED);
    c.wire_out = __atomic_load_n(&conn->counts.wire_out, __ATOMIC_RELAXED);
    c.reads = __atomic_load_n(&conn->counts.reads, __ATOMIC_RELAXED);
    c.writes = __atomic_load_n(&conn->counts.writes, __ATOMIC_RELAXED);
    c.native = __atomic_load_n(&conn->counts.native, __ATOMIC_RELAXED) + (int64_t) sizeof(*conn);
    for (int i = 0; i < S2NSHIM_OFFERED_MAX; i++) {
        c.offered[i] = __atomic_load_n(&conn->counts.offered[i], __ATOMIC_RELAXED);
    }
    return c;
}

SHIM_EXPORT int32_t s2nshim_conn_first_bytes(s2nshim_conn *conn, uint8_t out[RECORD_HEADER])
{
    memcpy(out, conn->first, RECORD_HEADER);
    return conn->first_len;
}
