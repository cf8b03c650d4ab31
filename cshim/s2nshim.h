/* The C side of package cshim: our own prototypes, no upstream header needed.
 *
 * Rules that hold for every function here:
 *  - A call that can fail returns s2nshim_result by value. s2n's errno and
 *    AWS-LC's error queue belong to the OS thread, so they are read in the
 *    call that failed and nowhere else.
 *  - No call blocks. None runs Go code but those that negotiate and write, which call the one
 *    function of s2nshim_set_tick: it does nothing and exists for Go's scheduler.
 *  - Strings returned as const char* are static and never freed.
 */
#ifndef S2NSHIM_H
#define S2NSHIM_H

#include <stddef.h>
#include <stdint.h>

typedef struct s2nshim_cert s2nshim_cert;     /* a certificate chain and its key; immutable, reference counted */
typedef struct s2nshim_store s2nshim_store;   /* a set of trusted roots; reference counted */
typedef struct s2nshim_config s2nshim_config; /* frozen once a connection uses it; reference counted */
typedef struct s2nshim_conn s2nshim_conn;     /* one connection; one owner */

enum {
    S2NSHIM_OK = 0,
    S2NSHIM_WANT_READ,    /* call again when the transport has bytes */
    S2NSHIM_WANT_WRITE,   /* call again when the transport takes bytes */
    S2NSHIM_WANT_VERIFY,  /* s2nshim_conn_verified must be called first */
    S2NSHIM_CLOSE_NOTIFY, /* the peer ended the stream as TLS ends it */
    S2NSHIM_CUT,          /* the transport ended without close_notify */
    S2NSHIM_SYS,          /* a system call failed: sys */
    S2NSHIM_ALERT,        /* the peer sent a fatal alert: alert */
    S2NSHIM_NOT_TLS,      /* the peer's first bytes are no TLS record */
    S2NSHIM_FLOOD,        /* too many records in a row that carry no data */
    S2NSHIM_FAILED        /* s2n failed: code, and crypto and x509 where they add something */
};

enum {
    /* Bytes wait in the out buffer, s2nshim_conn_out (buffer transport, or a socket that is full). */
    S2NSHIM_FLAG_OUT = 1,
    /* A message (key update, warning alert) wants s2nshim_conn_flush, by whoever may write. */
    S2NSHIM_FLAG_FLUSH = 2,
    /* S2NSHIM_SYS: it was reading that failed. */
    S2NSHIM_FLAG_READ = 4
};

typedef struct s2nshim_result {
    int64_t n;       /* bytes of plaintext */
    uint64_t delay;  /* ns that s2n wants between a bad record and the alert */
    int32_t status;
    int32_t code;    /* s2n's error code */
    uint32_t crypto; /* AWS-LC's packed error */
    int32_t sys;     /* errno */
    int32_t x509;    /* X509_V_ERR_* of a chain that did not verify */
    uint8_t alert;   /* received (S2NSHIM_ALERT), or the one queued for the peer */
    uint8_t flags;
} s2nshim_result;

/* ---- init.c */
s2nshim_result s2nshim_init(void); /* any number of times, from any thread */

/* ---- tick.c */
void s2nshim_set_tick(void (*f)(void)); /* called after each operation of public-key cryptography in a handshake */

/* ---- mem.c */
typedef struct s2nshim_mem_stats {
    int64_t s2n_bytes;   /* held by s2n-tls through the shim's allocator */
    int64_t s2n_blocks;
    int64_t pool_bytes;  /* free record buffers kept for reuse */
    int64_t conns;       /* live objects, by kind */
    int64_t configs;
    int64_t certs;
    int64_t stores;
    int64_t aeads;
} s2nshim_mem_stats;
s2nshim_mem_stats s2nshim_mem_get_stats(void);
int64_t s2nshim_mem_trim(void); /* gives record buffers that stayed unused since the last call back to the system; bytes still kept */
void s2nshim_free(void *p);     /* what a function below says must be freed */

/* ---- error.c */
enum { S2NSHIM_ERRORS_END = -1 };
const char *s2nshim_error_name(int32_t code);
const char *s2nshim_error_message(int32_t code);
int32_t s2nshim_error_type(int32_t code);      /* s2n_error_get_type */
int32_t s2nshim_error_next(int32_t code);      /* walks all of s2n's codes from 0; S2NSHIM_ERRORS_END after the last */
int32_t s2nshim_error_alert(int32_t code, int32_t x509, int32_t version); /* the alert that names the fault */
const char *s2nshim_x509_error_message(int32_t x509);
void s2nshim_crypto_error_message(uint32_t crypto, char *out, size_t size);
int32_t s2nshim_error_queue_depth(void);       /* of this thread; for tests */

/* ---- fips.c */
typedef struct s2nshim_module_info {
    int32_t fips;              /* FIPS_mode() */
    const char *awslc_version; /* awslc_version_string() */
} s2nshim_module_info;
s2nshim_module_info s2nshim_module(void);
int32_t s2nshim_self_test(void); /* 1 passed; -1 integrity, -2 known answers */

/* ---- policy.c */
enum { S2NSHIM_POLICY_MAX = 64 };
typedef struct s2nshim_policy_info {
    const char *name;
    int32_t fips; /* s2n's FIPS 140-3 rule holds */
    uint16_t min_version;
    uint16_t max_version;
    uint16_t n_suites, n_groups, n_schemes, n_hybrids;
    uint16_t suites[S2NSHIM_POLICY_MAX];
    uint16_t groups[S2NSHIM_POLICY_MAX]; /* hybrids and pure ML-KEM first */
    uint16_t schemes[S2NSHIM_POLICY_MAX];
} s2nshim_policy_info;
const char *s2nshim_policy_name(int32_t index); /* NULL after the last */
int32_t s2nshim_policy_get(const char *name, s2nshim_policy_info *out); /* 0 found, -1 unknown, -2 refused by s2n */

/* ---- newpolicy.c */
enum { S2NSHIM_LIST_SUITES = 0, S2NSHIM_LIST_GROUPS, S2NSHIM_LIST_SCHEMES, S2NSHIM_LIST_MIN, S2NSHIM_LIST_MAX };
enum {
    S2NSHIM_FAULT_NAME = 1,     /* the name is taken */
    S2NSHIM_FAULT_EMPTY,        /* the list is */
    S2NSHIM_FAULT_TOO_MANY,     /* value: how many s2n's arrays, or this interface, can hold */
    S2NSHIM_FAULT_UNKNOWN,      /* value: what s2n does not know */
    S2NSHIM_FAULT_UNAVAILABLE,  /* value: what the linked module does not have */
    S2NSHIM_FAULT_DUPLICATE,    /* value: what is there twice */
    S2NSHIM_FAULT_NOT_FIPS,     /* value: what s2n's FIPS 140-3 rule does not allow */
    S2NSHIM_FAULT_ORDER,        /* value: a group with ML-KEM after one without */
    S2NSHIM_FAULT_MIN_OVER_MAX,
    S2NSHIM_FAULT_NEEDS_TLS13,  /* value: a suite or group of TLS 1.3 where that is above the maximum */
    S2NSHIM_FAULT_NO_TLS13,     /* SUITES, SCHEMES: nothing in it works with TLS 1.3, the maximum */
    S2NSHIM_FAULT_NO_CURVE,     /* TLS 1.2 is allowed and needs a group without ML-KEM */
    S2NSHIM_FAULT_RULES,        /* s2n's own validation refused the whole */
    S2NSHIM_FAULT_MEMORY
};
typedef struct s2nshim_policy_fault {
    uint8_t kind, list;
    uint16_t value;
} s2nshim_policy_fault;
/* Registers a policy for the life of the process. It returns how many faults it found, of which it writes at
 * most max; 0: registered. The counts in info must not be above S2NSHIM_POLICY_MAX; n_hybrids is not read. */
int32_t s2nshim_policy_new(const s2nshim_policy_info *info, s2nshim_policy_fault *faults, int32_t max);

/* ---- cert.c */
/* PEM of the chain, leaf first, and of the key; neither needs a final NUL, nor is kept. */
s2nshim_result s2nshim_cert_new(const uint8_t *chain, uint32_t chain_len, const uint8_t *key, uint32_t key_len, s2nshim_cert **out);
void s2nshim_cert_free(s2nshim_cert *cert);
s2nshim_result s2nshim_store_new(s2nshim_store **out);
s2nshim_result s2nshim_store_add(s2nshim_store *store, const uint8_t *der, size_t len);
void s2nshim_store_free(s2nshim_store *store);

/* ---- config.c */
enum { S2NSHIM_SERVER = 0, S2NSHIM_CLIENT = 1 };
enum { S2NSHIM_AUTH_NONE = 0, S2NSHIM_AUTH_OPTIONAL, S2NSHIM_AUTH_REQUIRED };
enum { S2NSHIM_RECORDS_DYNAMIC = 0, S2NSHIM_RECORDS_LOW_LATENCY, S2NSHIM_RECORDS_THROUGHPUT };
/* Which shares a ClientHello sends: as the policy has it; the hybrid's classical key again beside it, where the
 * policy has its curve; one more key for the policy's first curve; no classical share. */
enum { S2NSHIM_SHARES_POLICY = 0, S2NSHIM_SHARES_REUSE, S2NSHIM_SHARES_SEPARATE, S2NSHIM_SHARES_HYBRID_ONLY };
typedef struct s2nshim_config_params {
    const char *policy;
    const uint8_t *protocols; /* ALPN, each with a length byte before it */
    s2nshim_store *store;     /* NULL: no chain verifies */
    uint32_t protocols_len;
    uint8_t role;
    uint8_t client_auth;
    uint8_t skip_verify; /* take any chain; it is still handed to s2nshim_conn_peer_certs */
    uint8_t records;
    uint8_t shares;
    uint8_t blinding;    /* keep s2n's delay after a record that did not decrypt */
} s2nshim_config_params;
/* A failure has in n how many of certs were taken before it. */
s2nshim_result s2nshim_config_new(const s2nshim_config_params *params, s2nshim_cert *const *certs, int32_t n_certs, s2nshim_config **out);
void s2nshim_config_free(s2nshim_config *config); /* drops the caller's reference */

/* ---- conn.c */
/* fd: a non-blocking socket that outlives the connection, or -1 for the buffer transport.
 * server_name: for SNI, or NULL. */
s2nshim_result s2nshim_conn_new(s2nshim_config *config, int32_t fd, const char *server_name, s2nshim_conn **out);
void s2nshim_conn_free(s2nshim_conn *conn);
s2nshim_result s2nshim_conn_negotiate(s2nshim_conn *conn);
/* The answer to S2NSHIM_WANT_VERIFY: 0 accepts the chain, an alert refuses it. */
void s2nshim_conn_verified(s2nshim_conn *conn, uint8_t alert);
/* Ends a handshake from outside with an alert, as a failure inside would. */
s2nshim_result s2nshim_conn_abort(s2nshim_conn *conn, uint8_t alert);
/* The peer's certificates, each as a 4-byte length (host order) and DER, in memory that s2nshim_free frees; NULL if none.
 * First the chain as it was sent, sent bytes of it; then the one that AWS-LC verified, with its root, if it did. */
uint8_t *s2nshim_conn_peer_certs(s2nshim_conn *conn, size_t *sent, size_t *len);

/* Bits of a set of transcript hashes. */
enum {
    S2NSHIM_HASH_MD5 = 1,
    S2NSHIM_HASH_SHA1 = 2,
    S2NSHIM_HASH_SHA224 = 4,
    S2NSHIM_HASH_SHA256 = 8,
    S2NSHIM_HASH_SHA384 = 16,
    S2NSHIM_HASH_SHA512 = 32,
    S2NSHIM_HASH_MD5_SHA1 = 64
};

typedef struct s2nshim_conn_info {
    const char *policy;
    const char *handshake_type;
    char protocol[256]; /* ALPN; empty if none */
    char server_name[256];
    uint16_t version; /* 0x0303, 0x0304 */
    uint16_t suite;
    uint16_t group;
    uint16_t scheme;        /* the server's signature */
    uint16_t client_scheme; /* 0: none */
    uint16_t hashes;          /* still rolling at the end */
    uint16_t hashes_first;    /* that took the first message */
    uint16_t hashes_upstream; /* that s2n alone would have rolled at the end */
    uint8_t resumed;
    uint8_t retried; /* a HelloRetryRequest happened */
    uint8_t fips;    /* the policy holds s2n's FIPS rule */
    uint8_t ems;
    uint8_t client_cert;
} s2nshim_conn_info;
/* After the handshake: what was agreed; then frees what only the handshake needed. */
s2nshim_result s2nshim_conn_finish(s2nshim_conn *conn, s2nshim_conn_info *out);

enum { S2NSHIM_OFFERED_MAX = 4, S2NSHIM_OFFERED_REUSED = 0x10000 };
typedef struct s2nshim_conn_counts {
    uint64_t wire_in, wire_out;   /* bytes */
    uint64_t reads, writes;       /* system calls on the socket transport */
    int64_t native;               /* bytes of C memory held now */
    /* A client's key shares, a retry's after those of its first ClientHello, each a group and
     * S2NSHIM_OFFERED_REUSED where the key is that of the hybrid beside it; 0 after the last. */
    uint32_t offered[S2NSHIM_OFFERED_MAX];
} s2nshim_conn_counts;
s2nshim_conn_counts s2nshim_conn_get_counts(s2nshim_conn *conn); /* any time, any thread */
/* The first bytes the peer sent, at most 5, and how many: to say what is there instead of TLS. */
int32_t s2nshim_conn_first_bytes(s2nshim_conn *conn, uint8_t out[5]);

/* ---- keyshare.c */
/* The last ClientHello's key shares as on the wire (group, length, key), in memory that s2nshim_free frees; NULL on a
 * server, before the ClientHello, and after the handshake. Any time, any thread. */
uint8_t *s2nshim_conn_key_shares(s2nshim_conn *conn, size_t *len);

/* ---- io.c: one reader and one writer at once */
s2nshim_result s2nshim_conn_read(s2nshim_conn *conn, void *buf, size_t len);
/* Plaintext that a read would give without touching the transport; for WriteTo and for tests. */
size_t s2nshim_conn_buffered(s2nshim_conn *conn);
s2nshim_result s2nshim_conn_write(s2nshim_conn *conn, const void *buf, size_t len);
s2nshim_result s2nshim_conn_flush(s2nshim_conn *conn); /* out buffer, key update, warning alert */
s2nshim_result s2nshim_conn_key_update(s2nshim_conn *conn);
/* Sends close_notify, or the alert of a failure, once; what it cannot send at once it leaves in the out buffer. */
s2nshim_result s2nshim_conn_close_write(s2nshim_conn *conn);
/* The same, where a failure has an alert to tell; else nothing. */
s2nshim_result s2nshim_conn_send_alert(s2nshim_conn *conn);
/* The buffer transport: where ciphertext goes in, how much came (0: the end), where it waits, how much left. */
void *s2nshim_conn_in_space(s2nshim_conn *conn, size_t *len);
void s2nshim_conn_in_filled(s2nshim_conn *conn, size_t n);
const void *s2nshim_conn_out(s2nshim_conn *conn, size_t *len);
void s2nshim_conn_out_sent(s2nshim_conn *conn, size_t n);

/* ---- aead.c: AES-GCM with a nonce of 12 bytes and a tag of 16. The calls return 1, or 0 for a failure.
 * One s2nshim_aead serves any number of threads at once. out is all that is written: in_len + 16 bytes by
 * seal, in_len - 16 by open, in_len + 28 and in_len - 28 by the random ones, and a failed open leaves zeros
 * there. out may begin where in does, or must be apart from it; ad is apart from out. */
enum { S2NSHIM_AEAD_NONCE = 12, S2NSHIM_AEAD_TAG = 16 };
/* An AES-GCM key; immutable, one owner. The struct is complete because cgo checks every pointer that it
 * passes to an unknown one, and none to a struct without pointers. new gives NULL for another key size than
 * 16 and 32, and without memory; free overwrites the key. */
typedef struct s2nshim_aead {
    uint64_t opaque[80];
} s2nshim_aead;
s2nshim_aead *s2nshim_aead_new(const uint8_t *key, size_t key_len, int32_t random_nonce);
void s2nshim_aead_free(s2nshim_aead *a);
int32_t s2nshim_aead_seal(const s2nshim_aead *a, uint8_t *out, const uint8_t *nonce, const uint8_t *in, size_t in_len, const uint8_t *ad, size_t ad_len);
int32_t s2nshim_aead_open(const s2nshim_aead *a, uint8_t *out, const uint8_t *nonce, const uint8_t *in, size_t in_len, const uint8_t *ad, size_t ad_len);
/* For a key made with random_nonce: the nonce comes from the module and stands before the ciphertext. */
int32_t s2nshim_aead_seal_random(const s2nshim_aead *a, uint8_t *out, const uint8_t *in, size_t in_len, const uint8_t *ad, size_t ad_len);
int32_t s2nshim_aead_open_random(const s2nshim_aead *a, uint8_t *out, const uint8_t *in, size_t in_len, const uint8_t *ad, size_t ad_len);
/* This thread's count of approved services that the module has done; a test reads it before and after. */
uint64_t s2nshim_service_indicator(void);

#endif
