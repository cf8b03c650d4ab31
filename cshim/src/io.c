/* Record I/O after the handshake, and the transport below both.
 *
 * Reading: the shim fills s2n's own input buffer (one recv for as much as there is, straight to
 * where records are decrypted) and calls s2n_recv only when that buffer holds a whole record, for
 * that record. So s2n never holds part of a record, never loops on records that carry no data, and
 * each record handled is counted here.
 * Writing: s2n encrypts into its own output buffer, which goes to the socket from where it lies.
 * Only the handshake's records, and all records of the buffer transport, pass through out. */
#include <errno.h>
#include <openssl/err.h>
#include <string.h>
#include <sys/socket.h>

#include "shim.h"
#include "tls/s2n_alerts.h"
#include "tls/s2n_post_handshake.h"
#include "tls/s2n_tls.h"

/* Records in a row that bring the caller nothing (key updates, tickets, empty records) before it is an attack. */
#define MAX_IDLE_RECORDS 32

/* A send of more bytes than this is long for Go's scheduler: tick.c. */
#define TICK_ABOVE 32768

static void count(uint64_t *counter, uint64_t n)
{
    __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

/* ---- the transport */

void shim_note_first(s2nshim_conn *conn, const uint8_t *buf, size_t len)
{
    for (size_t i = 0; i < len && conn->first_len < RECORD_HEADER; i++) {
        conn->first[conn->first_len++] = buf[i];
    }
    if (conn->first_len < RECORD_HEADER) {
        return;
    }
    const uint8_t *h = conn->first;
    /* A first record is a handshake or an alert of some SSL 3 or TLS version; the high bit is an SSLv2-style hello. */
    bool tls = (h[0] == 22 || h[0] == 21) && h[1] < 0x10;
    bool sslv2 = conn->config->role == S2NSHIM_SERVER && (h[0] & 0x80) && h[2] == 1;
    conn->no_tls = !tls && !sslv2;
}

static ssize_t sock_recv(s2nshim_conn *conn, uint8_t *buf, size_t len)
{
    ssize_t n;
    do {
        n = recv(conn->fd, buf, len, MSG_DONTWAIT);
        count(&conn->counts.reads, 1);
    } while (n < 0 && errno == EINTR);
    if (n > 0) {
        count(&conn->counts.wire_in, (uint64_t) n);
    } else if (n == 0) {
        conn->eof = true;
    } else if (errno != EAGAIN && errno != EWOULDBLOCK) {
        conn->read_errno = errno;
    }
    return n;
}

static ssize_t sock_send(s2nshim_conn *conn, const uint8_t *buf, size_t len)
{
    ssize_t n;
    do {
        n = send(conn->fd, buf, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        count(&conn->counts.writes, 1);
    } while (n < 0 && errno == EINTR);
    if (n > 0) {
        count(&conn->counts.wire_out, (uint64_t) n);
    } else if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
        conn->write_errno = errno;
    }
    return n;
}

/* Room for len more bytes in out, moving or growing it. */
static bool out_room(s2nshim_conn *conn, uint32_t len)
{
    uint32_t held = conn->out_end - conn->out_start;
    if (conn->out != NULL && conn->out_size - conn->out_end >= len) {
        return true;
    }
    if (conn->out != NULL && conn->out_size - held >= len) {
        memmove(conn->out, conn->out + conn->out_start, held);
        conn->out_start = 0;
        conn->out_end = held;
        return true;
    }
    uint32_t size = 0;
    uint8_t *grown = shim_buf_get(held + len, &size);
    if (grown == NULL) {
        return false;
    }
    if (conn->out != NULL) {
        memcpy(grown, conn->out + conn->out_start, held);
        shim_buf_put(conn->out, conn->out_size);
    }
    conn->out = grown;
    conn->out_size = size;
    conn->out_start = 0;
    conn->out_end = held;
    return true;
}

static void out_drop(s2nshim_conn *conn)
{
    /* Only ciphertext and public handshake messages pass here: nothing to wipe. */
    shim_buf_put(conn->out, conn->out_size);
    conn->out = NULL;
    conn->out_size = conn->out_start = conn->out_end = 0;
}

s2nshim_result shim_flush_out(s2nshim_conn *conn)
{
    s2nshim_result r = { 0 };
    while (conn->out_start < conn->out_end) {
        ssize_t n = sock_send(conn, conn->out + conn->out_start, conn->out_end - conn->out_start);
        if (n < 0) {
            r.status = conn->write_errno != 0 ? S2NSHIM_SYS : S2NSHIM_WANT_WRITE;
            r.sys = conn->write_errno;
            return r;
        }
        conn->out_start += (uint32_t) n;
    }
    if (conn->out != NULL) {
        out_drop(conn);
    }
    return r;
}

int shim_on_send(void *ctx, const uint8_t *buf, uint32_t len)
{
    s2nshim_conn *conn = ctx;
    if (conn->fd < 0 || conn->gather) {
        if (!out_room(conn, len)) {
            errno = EAGAIN; /* full: what is there must leave first */
            return -1;
        }
        memcpy(conn->out + conn->out_end, buf, len);
        conn->out_end += len;
        return (int) len;
    }
    if (conn->out_start != conn->out_end) {
        s2nshim_result r = shim_flush_out(conn);
        if (r.status != S2NSHIM_OK) {
            errno = r.status == S2NSHIM_SYS ? r.sys : EAGAIN;
            return -1;
        }
    }
    if (len <= TICK_ABOVE) {
        return (int) sock_send(conn, buf, len);
    }
    shim_tick(); /* to encrypt it took long, and so will sending it */
    ssize_t n = sock_send(conn, buf, len);
    shim_tick();
    return (int) n;
}

int shim_on_recv(void *ctx, uint8_t *buf, uint32_t len)
{
    s2nshim_conn *conn = ctx;
    if (conn->negotiated || conn->fd < 0) {
        /* Whole records are in s2n's buffer before it is called: asking for more means there is none. */
        if (conn->eof && !conn->negotiated) {
            return 0;
        }
        if (conn->no_tls && !conn->negotiated) {
            errno = EPROTO; /* the length in what looks like a record's header is not waited for */
            return -1;
        }
        errno = EAGAIN;
        return -1;
    }
    ssize_t n = sock_recv(conn, buf, len);
    if (n > 0) {
        shim_note_first(conn, buf, (size_t) n);
        if (conn->no_tls) {
            errno = EPROTO;
            return -1;
        }
    }
    return (int) n;
}

/* ---- buffers go back to the pool when empty */

void shim_release_in(s2nshim_conn *conn)
{
    struct s2n_connection *s2n = conn->s2n;
    struct s2n_stuffer *in = &s2n->buffer_in;
    if (s2n_stuffer_is_freed(in) || s2n->in_status == PLAINTEXT || !s2n_stuffer_is_consumed(in)) {
        return;
    }
    /* Application data was erased as it was read. Anything else that was decrypted here is wiped now,
     * and so is all that the handshake left. */
    if (conn->in_dirty || !conn->negotiated) {
        (void) s2n_free(&in->blob);
    } else {
        (void) s2n_free_without_wipe(&in->blob);
    }
    conn->in_dirty = false;
    *in = (struct s2n_stuffer){ .growable = 1, .alloced = 1 };
}

void shim_release_out(s2nshim_conn *conn)
{
    struct s2n_stuffer *out = &conn->s2n->out;
    if (s2n_stuffer_is_freed(out) || s2n_stuffer_data_available(out) != 0) {
        return;
    }
    /* Records are encrypted in place: only ciphertext is left. */
    (void) s2n_free_without_wipe(&out->blob);
    *out = (struct s2n_stuffer){ .growable = 1, .alloced = 1 };
}

uint8_t shim_pending_flags(s2nshim_conn *conn)
{
    struct s2n_connection *s2n = conn->s2n;
    uint8_t flags = 0;
    if (s2n_atomic_flag_test(&s2n->key_update_pending) || s2n->reader_warning_out != 0) {
        flags |= S2NSHIM_FLAG_FLUSH;
    }
    return flags;
}

/* ---- reading */

/* Bytes that are still missing for the next whole record, 0 if it is there. A length that no version
 * allows is not waited for: s2n is to refuse it. */
static uint32_t record_missing(const struct s2n_stuffer *in, bool *too_long)
{
    uint32_t have = s2n_stuffer_data_available(in);
    if (have < RECORD_HEADER) {
        return RECORD_HEADER - have;
    }
    const uint8_t *h = in->blob.data + in->read_cursor;
    uint32_t whole = RECORD_HEADER + ((uint32_t) h[3] << 8 | h[4]);
    if (whole > MAX_RECORD) {
        *too_long = true;
        return 0;
    }
    return have >= whole ? 0 : whole - have;
}

static bool in_room(s2nshim_conn *conn, uint32_t need)
{
    struct s2n_stuffer *in = &conn->s2n->buffer_in;
    if (s2n_stuffer_resize_if_empty(in, conn->in_size) != S2N_SUCCESS) {
        return false;
    }
    if (!conn->negotiated || s2n_stuffer_space_remaining(in) >= need) {
        return true; /* in the handshake s2n itself makes room */
    }
    /* Between whole records nothing points into the buffer, so it may move. It may also be too small: the
     * handshake's own, which s2n made for 16 KiB and which holds data of the peer's since its last recv. */
    if (s2n_stuffer_shift(in) != S2N_SUCCESS) {
        return false;
    }
    return s2n_stuffer_space_remaining(in) >= need || s2n_stuffer_resize(in, BUF_RECORD) == S2N_SUCCESS;
}

static s2nshim_result read_errno(const s2nshim_conn *conn)
{
    return (s2nshim_result){ .status = S2NSHIM_SYS, .sys = conn->read_errno, .flags = S2NSHIM_FLAG_READ };
}

static s2nshim_result fill(s2nshim_conn *conn, uint32_t need)
{
    s2nshim_result r = { 0 };
    struct s2n_stuffer *in = &conn->s2n->buffer_in;
    if (conn->eof) {
        r.status = S2NSHIM_CUT;
        return r;
    }
    if (conn->read_errno != 0) {
        return read_errno(conn);
    }
    if (conn->fd < 0) {
        r.status = S2NSHIM_WANT_READ;
        return r;
    }
    if (!in_room(conn, need)) {
        return shim_failure();
    }
    uint32_t space = s2n_stuffer_space_remaining(in);
    ssize_t n = sock_recv(conn, in->blob.data + in->write_cursor, space);
    if (n > 0) {
        in->write_cursor += (uint32_t) n;
        if (in->high_water_mark < in->write_cursor) {
            in->high_water_mark = in->write_cursor;
        }
        /* A full buffer asks for a larger one next time, a nearly empty one for a small one. */
        if ((uint32_t) n == space) {
            conn->in_size = BUF_READ;
        } else if (n < 4096) {
            conn->in_size = BUF_RECORD;
        }
        return r;
    }
    if (n == 0) {
        r.status = S2NSHIM_CUT;
    } else if (conn->read_errno != 0) {
        r = read_errno(conn);
    } else {
        r.status = S2NSHIM_WANT_READ;
    }
    return r;
}

/* A failure of the reading side; the alert leaves with the writing side's next move. */
static s2nshim_result read_failure(s2nshim_conn *conn)
{
    s2nshim_result r = shim_failure();
    struct s2n_connection *s2n = conn->s2n;
    if (r.code == S2N_ERR_ALERT) {
        r.status = S2NSHIM_ALERT;
        r.alert = s2n->alert_in_data[1];
        conn->failed = true;
    } else {
        shim_fail_conn(conn, &r);
        r.flags |= S2NSHIM_FLAG_FLUSH;
    }
    return r;
}

static s2nshim_result flood(s2nshim_conn *conn)
{
    s2nshim_result r = { .status = S2NSHIM_FLOOD, .alert = 10, .flags = S2NSHIM_FLAG_FLUSH }; /* unexpected_message */
    conn->s2n->reader_alert_out = r.alert;
    conn->failed = true;
    return r;
}

static s2nshim_result overlong(s2nshim_conn *conn)
{
    s2nshim_result r = { .status = S2NSHIM_FAILED, .code = S2N_ERR_RECORD_LIMIT, .alert = 22, .flags = S2NSHIM_FLAG_FLUSH };
    conn->s2n->reader_alert_out = r.alert;
    conn->failed = true;
    return r;
}

/* s2n_recv for one record. s2n would go on through all that lies in its buffer until it finds data, and
 * take in part of a record at the end, so what follows this record is hidden from it. */
static ssize_t recv_one(s2nshim_conn *conn, uint8_t *buf, size_t len)
{
    struct s2n_connection *s2n = conn->s2n;
    struct s2n_stuffer *in = &s2n->buffer_in;
    s2n_blocked_status blocked = S2N_NOT_BLOCKED;
    if (s2n->in_status == PLAINTEXT) {
        return s2n_recv(s2n, buf, (ssize_t) len, &blocked);
    }
    const uint8_t *h = in->blob.data + in->read_cursor;
    const uint32_t end = in->read_cursor + RECORD_HEADER + ((uint32_t) h[3] << 8 | h[4]);
    const uint32_t written = in->write_cursor;
    in->write_cursor = end;
    ssize_t n = s2n_recv(s2n, buf, (ssize_t) len, &blocked);
    if (in->write_cursor != end) {
        in->read_cursor = end; /* s2n starts over in a buffer that it has used up */
    }
    in->write_cursor = written;
    if (s2n->in_status != PLAINTEXT && in->read_cursor == written) {
        in->read_cursor = in->write_cursor = 0;
    }
    return n;
}

static s2nshim_result read_some(s2nshim_conn *conn, uint8_t *buf, size_t len)
{
    struct s2n_connection *s2n = conn->s2n;
    s2nshim_result r = { 0 };
    while ((size_t) r.n < len) {
        if (conn->peer_closed) {
            s2nshim_result end = { .status = S2NSHIM_CLOSE_NOTIFY };
            return r.n > 0 ? r : end;
        }
        if (s2n->in_status != PLAINTEXT) {
            bool too_long = false;
            uint32_t missing = record_missing(&s2n->buffer_in, &too_long);
            if (too_long || conn->idle_records > MAX_IDLE_RECORDS) {
                s2nshim_result bad = too_long ? overlong(conn) : flood(conn);
                if (r.n == 0) {
                    return bad;
                }
                conn->later = bad;
                return r;
            }
            if (missing > 0) {
                if (r.n > 0) {
                    return r;
                }
                s2nshim_result f = fill(conn, missing);
                if (f.status != S2NSHIM_OK) {
                    return f;
                }
                continue;
            }
        }
        ssize_t n = recv_one(conn, buf + r.n, len - (size_t) r.n);
        if (n > 0) {
            r.n += n;
            conn->idle_records = 0;
        } else if (n == 0 && s2n_atomic_flag_test(&s2n->close_notify_received)) {
            conn->peer_closed = true;
            /* Before TLS 1.3 s2n stops writing when the peer does; half-closed streams are for the caller to use. */
            s2n_atomic_flag_clear(&s2n->read_closed);
        } else if (n < 0 && s2n_error_get_type(s2n_errno) != S2N_ERR_T_BLOCKED) {
            s2nshim_result bad = read_failure(conn);
            if (r.n == 0) {
                return bad;
            }
            conn->later = bad; /* the caller gets its data first */
            return r;
        } else {
            /* A whole record went by and brought nothing. */
            s2n_errno = S2N_ERR_OK;
            s2n->recv_in_use = false;
            conn->in_dirty = true;
            conn->idle_records++;
        }
    }
    return r;
}

SHIM_EXPORT s2nshim_result s2nshim_conn_read(s2nshim_conn *conn, void *buf, size_t len)
{
    if (conn->later.status != S2NSHIM_OK) {
        return conn->later;
    }
    shim_current = conn;
    s2nshim_result r = read_some(conn, buf, len);
    if (r.status != S2NSHIM_OK && r.status != S2NSHIM_WANT_READ && r.status != S2NSHIM_CLOSE_NOTIFY) {
        conn->later = r; /* a failed reader stays failed */
    }
    shim_release_in(conn);
    shim_current = NULL;
    if (!conn->failed) {
        /* Told once for each thing that waits, so that a reader who may not write can go on reading. */
        uint8_t pending = shim_pending_flags(conn);
        if (pending != 0 && !conn->flush_told) {
            r.flags |= pending;
        }
        conn->flush_told = pending != 0;
    }
    return r;
}

SHIM_EXPORT size_t s2nshim_conn_buffered(s2nshim_conn *conn)
{
    return s2n_peek(conn->s2n);
}

SHIM_EXPORT void *s2nshim_conn_in_space(s2nshim_conn *conn, size_t *len)
{
    struct s2n_stuffer *in = &conn->s2n->buffer_in;
    shim_current = conn;
    bool too_long = false;
    uint32_t need = conn->negotiated ? record_missing(in, &too_long) : 1;
    bool room = in_room(conn, need);
    shim_current = NULL;
    if (!room) {
        *len = 0;
        return NULL;
    }
    *len = s2n_stuffer_space_remaining(in);
    return in->blob.data + in->write_cursor;
}

SHIM_EXPORT void s2nshim_conn_in_filled(s2nshim_conn *conn, size_t n)
{
    struct s2n_stuffer *in = &conn->s2n->buffer_in;
    if (n == 0) {
        conn->eof = true;
        return;
    }
    if (!conn->negotiated) {
        shim_note_first(conn, in->blob.data + in->write_cursor, n);
    }
    in->write_cursor += (uint32_t) n;
    if (in->high_water_mark < in->write_cursor) {
        in->high_water_mark = in->write_cursor;
    }
    count(&conn->counts.wire_in, n);
}

/* ---- writing */

/* A failed or blocked s2n call of the writing side as a result. */
static s2nshim_result write_failure(s2nshim_conn *conn)
{
    s2nshim_result r = { 0 };
    if (s2n_error_get_type(s2n_errno) == S2N_ERR_T_BLOCKED) {
        s2n_errno = S2N_ERR_OK;
        r.status = S2NSHIM_WANT_WRITE;
        return r;
    }
    r = shim_failure();
    if (conn->write_errno != 0) {
        r.status = S2NSHIM_SYS;
        r.sys = conn->write_errno;
    }
    return r;
}

SHIM_EXPORT s2nshim_result s2nshim_conn_write(s2nshim_conn *conn, const void *buf, size_t len)
{
    s2nshim_result r = { 0 };
    struct s2n_connection *s2n = conn->s2n;
    if (conn->write_closed) {
        r.status = S2NSHIM_FAILED;
        r.code = S2N_ERR_CLOSED;
        return r;
    }
    shim_current = conn;
    if (len > 16384 && s2n_stuffer_is_freed(&s2n->out)) {
        /* Eight records in one system call; s2n by itself makes room for one. */
        if (s2n_stuffer_growable_alloc(&s2n->out, BUF_WRITE) != S2N_SUCCESS) {
            r = shim_failure();
            shim_current = NULL;
            return r;
        }
    }
    s2n_blocked_status blocked = S2N_NOT_BLOCKED;
    ssize_t n = s2n_send(s2n, buf, (ssize_t) len, &blocked);
    if (n < 0 && s2n_errno == S2N_ERR_CLOSED && s2n_atomic_flag_test(&s2n->close_notify_received)) {
        /* The reader met close_notify between s2n's setting and our clearing of read_closed. */
        s2n_atomic_flag_clear(&s2n->read_closed);
        s2n->send_in_use = false;
        n = s2n_send(s2n, buf, (ssize_t) len, &blocked);
    }
    if (n < 0) {
        r = write_failure(conn);
    } else {
        r.n = n;
        if ((size_t) n < len) {
            r.status = S2NSHIM_WANT_WRITE;
        }
    }
    s2n->send_in_use = false;
    shim_release_out(conn);
    shim_current = NULL;
    if (conn->out_start != conn->out_end) {
        r.flags |= S2NSHIM_FLAG_OUT;
    }
    return r;
}

SHIM_EXPORT s2nshim_result s2nshim_conn_flush(s2nshim_conn *conn)
{
    s2nshim_result r = { 0 };
    struct s2n_connection *s2n = conn->s2n;
    shim_current = conn;
    if (conn->fd >= 0) {
        r = shim_flush_out(conn);
    }
    if (r.status == S2NSHIM_OK && conn->negotiated && !conn->failed && !conn->write_closed) {
        s2n_blocked_status blocked = S2N_NOT_BLOCKED;
        if (s2n_flush(s2n, &blocked) != S2N_SUCCESS || s2n_post_handshake_send(s2n, &blocked) != S2N_SUCCESS) {
            r = write_failure(conn);
        }
        shim_release_out(conn);
    }
    shim_current = NULL;
    if (conn->out_start != conn->out_end) {
        r.flags |= S2NSHIM_FLAG_OUT;
    }
    return r;
}

SHIM_EXPORT s2nshim_result s2nshim_conn_key_update(s2nshim_conn *conn)
{
    /* s2n answers the peer's requests but makes none: it refuses S2N_KEY_UPDATE_REQUESTED. */
    if (s2n_connection_request_key_update(conn->s2n, S2N_KEY_UPDATE_NOT_REQUESTED) != S2N_SUCCESS) {
        return shim_failure();
    }
    return s2nshim_conn_flush(conn);
}

SHIM_EXPORT s2nshim_result s2nshim_conn_close_write(s2nshim_conn *conn)
{
    s2nshim_result r = { 0 };
    struct s2n_connection *s2n = conn->s2n;
    struct s2nshim_conn *before = shim_current;
    shim_current = conn;
    /* Not s2n_shutdown_send: it marks the connection so that TLS 1.2 stops reading too. */
    bool told = s2n->alert_sent || s2n_atomic_flag_test(&s2n->error_alert_received);
    if (!conn->write_closed && !told && conn->write_errno == 0) {
        bool was = conn->gather;
        conn->gather = true;
        s2n_blocked_status blocked = S2N_NOT_BLOCKED;
        shim_alert_key(s2n);
        if (s2n_flush(s2n, &blocked) != S2N_SUCCESS
                || s2n_result_is_error(s2n_alerts_write_error_or_close_notify(s2n))
                || s2n_flush(s2n, &blocked) != S2N_SUCCESS) {
            r = write_failure(conn);
        }
        conn->gather = was;
        shim_release_out(conn);
    }
    conn->write_closed = true;
    if (r.status == S2NSHIM_OK && conn->fd >= 0 && conn->write_errno == 0) {
        r = shim_flush_out(conn);
    }
    shim_current = before;
    if (conn->out_start != conn->out_end) {
        r.flags |= S2NSHIM_FLAG_OUT;
    }
    return r;
}

SHIM_EXPORT s2nshim_result s2nshim_conn_send_alert(s2nshim_conn *conn)
{
    if (!conn->failed) {
        return (s2nshim_result){ 0 };
    }
    return s2nshim_conn_close_write(conn);
}

SHIM_EXPORT const void *s2nshim_conn_out(s2nshim_conn *conn, size_t *len)
{
    *len = conn->out_end - conn->out_start;
    return *len == 0 ? NULL : conn->out + conn->out_start;
}

SHIM_EXPORT void s2nshim_conn_out_sent(s2nshim_conn *conn, size_t n)
{
    conn->out_start += (uint32_t) n;
    count(&conn->counts.wire_out, n);
    if (conn->out_start == conn->out_end && conn->out != NULL) {
        shim_current = conn;
        out_drop(conn);
        shim_current = NULL;
    }
}
