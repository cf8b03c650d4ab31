/* What the shim's C files share. Not part of the header that Go sees. */
#ifndef S2NSHIM_INTERNAL_H
#define S2NSHIM_INTERNAL_H

#include <stdbool.h>

#include "../s2nshim.h"
#include "api/s2n.h"
#include "tls/s2n_connection.h"

#define SHIM_EXPORT __attribute__((visibility("default")))

#define RECORD_HEADER 5
#define MAX_RECORD (RECORD_HEADER + 16384 + 2048) /* RFC 5246, 6.2.3: the larger of both versions' limits */

/* Record buffers come in three sizes, whole pages each: one record; a read-ahead of a few;
 * and a write of eight full records (8 x 16,384 plus a burst of small ones and all headers). */
#define BUF_RECORD 20480
#define BUF_READ 69632
#define BUF_WRITE 147456

struct s2nshim_config {
    struct s2n_config *s2n;
    const struct s2n_security_policy *policy;
    const char *policy_name;
    struct s2nshim_cert **certs;
    int32_t n_certs;
    int32_t refs;
    uint8_t role;
    uint8_t records;
    uint8_t blinding;
    uint8_t client_auth;
    uint8_t shares; /* what the ClientHello's key_share holds; never S2NSHIM_SHARES_POLICY */
};

struct s2nshim_conn {
    struct s2n_connection *s2n;
    s2nshim_config *config;
    int fd;
    /* Set in the handshake only. */
    struct s2n_cert_validation_info *verify;
    uint8_t verify_alert;
    bool gather; /* outgoing records collect in out, to leave as one flight */
    bool negotiated;
    bool failed;            /* the alert of a failure is queued or sent */
    struct s2n_blob shares; /* the last ClientHello's; keyshare.c locks it */
    struct {
        uint16_t first, rolling, upstream, dropped;
    } hashes; /* hash.c's; a bit for each s2n_hash_algorithm */
    /* The reader's. */
    bool eof;
    bool no_tls;
    bool peer_closed; /* close_notify came; s2n's own flag is cleared for TLS 1.2 */
    bool in_dirty;    /* buffer_in held decrypted messages */
    bool flush_told;  /* S2NSHIM_FLAG_FLUSH was given for what waits now */
    uint8_t first_len;
    uint8_t first[RECORD_HEADER];
    uint32_t idle_records; /* in a row, without data for the caller */
    uint32_t in_size;      /* of the next read buffer */
    int32_t read_errno;
    s2nshim_result later; /* a failure found after data of the same call */
    /* The writer's. */
    bool write_closed;
    int32_t write_errno;
    uint8_t *out;
    uint32_t out_size, out_start, out_end;
    /* Atomic. */
    s2nshim_conn_counts counts;
};

/* The connection that this thread works for: what the allocator counts for. */
extern __thread struct s2nshim_conn *shim_current;

void shim_mem_install(void);
void *shim_buf_get(uint32_t want, uint32_t *got);
void shim_buf_put(void *p, uint32_t size);
void shim_live(int64_t *counter, int64_t delta);
extern s2nshim_mem_stats shim_stats;

/* The failure that s2n just reported on this thread. */
s2nshim_result shim_failure(void);
/* Queues the alert of a failed handshake or record and lets it go at once, unless blinding must delay it. */
void shim_fail_conn(s2nshim_conn *conn, s2nshim_result *r);
void shim_alert_key(struct s2n_connection *s2n);

s2nshim_result shim_flush_out(s2nshim_conn *conn);
int shim_on_send(void *ctx, const uint8_t *buf, uint32_t len);
int shim_on_recv(void *ctx, uint8_t *buf, uint32_t len);
void shim_release_in(s2nshim_conn *conn);
void shim_release_out(s2nshim_conn *conn);
uint8_t shim_pending_flags(s2nshim_conn *conn);
void shim_note_first(s2nshim_conn *conn, const uint8_t *buf, size_t len);

/* The handshake is over: nobody may see its shares any more. */
void shim_shares_drop(s2nshim_conn *conn);

/* A named policy: s2n's, one of ours, or one that s2nshim_policy_new made. All live for ever. */
struct shim_policy {
    const char *name;
    const struct s2n_security_policy *s2n;
    uint8_t shares; /* what S2NSHIM_SHARES_POLICY means for it */
};
bool shim_policy_find(const char *name, struct shim_policy *out);
bool shim_own_policy(int32_t index, struct shim_policy *out); /* those that s2n does not know, in order */
bool shim_policies_init(void);
void shim_hash_info(const s2nshim_conn *conn, s2nshim_conn_info *out);

/* wipe.c: when s2n_negotiate is through; when all was taken over of it; when it failed, with the peer's chain or
 * without; and after each call of it, what lies below on the stack: since a stage, over or not. */
void shim_wipe_negotiated(s2nshim_conn *conn);
void shim_wipe_finished(s2nshim_conn *conn);
void shim_wipe_failed(s2nshim_conn *conn, bool chain);
s2n_extract_secret_type_t shim_wipe_stage(s2nshim_conn *conn);
void shim_wipe_stack(s2nshim_conn *conn, s2n_extract_secret_type_t since, bool over);

int shim_on_client_hello(struct s2n_connection *s2n, void *ctx);
X509_STORE *shim_store_x509(s2nshim_store *store);
struct s2n_cert_chain_and_key *shim_cert_s2n(s2nshim_cert *cert);
void shim_cert_ref(s2nshim_cert *cert);

/* tick.c: tells Go's scheduler that the call goes on. Only in calls that may call Go. */
void shim_tick(void);

#endif
