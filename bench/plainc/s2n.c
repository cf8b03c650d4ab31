/* s2n-tls by its public API, used as well as C can use it: own I/O with one write a flight and
 * reads ahead, plain malloc instead of s2n's locked pages, records as large as they get.
 *
 * Handshakes run in one thread, a step of each end in turn: there is nothing to wait for, in memory
 * and over loopback alike. What streams has a thread for each reader and each writer. */
#include <arpa/inet.h>
#include <errno.h>
#include <malloc.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link.h"
#include "tls/s2n_config.h"
#include "tls/s2n_security_policies.h"

enum {
    X25519MLKEM768 = 0x11ec,
    SECP256R1MLKEM768 = 0x11eb,
    P256 = 23,
    X25519 = 29
};

static const char *cert_dir;
static bool one_share;

static int s2n_failed(const char *what)
{
    return fail("%s: %s", what, s2n_strerror(s2n_errno, "EN"));
}

/* --- policies ---------------------------------------------------------------- */

/* default_fips, cut down to one hybrid, so that it is the only share that is sent. */
static const struct s2n_kem_group *x25519_groups[] = { &s2n_x25519_mlkem_768 };
static const struct s2n_kem_group *p256_groups[] = { &s2n_secp256r1_mlkem_768 };
static const struct s2n_kem_preferences x25519_kems = { .tls13_kem_group_count = 1, .tls13_kem_groups = x25519_groups };
static const struct s2n_kem_preferences p256_kems = { .tls13_kem_group_count = 1, .tls13_kem_groups = p256_groups };
static struct s2n_security_policy one_policy[2];

static int set_policy(struct s2n_config *config, const struct spec *spec)
{
    if (one_share) {
        if (spec->version != 0x0304 || (spec->group != X25519MLKEM768 && spec->group != SECP256R1MLKEM768)) {
            return unsupported("this side has hybrids only");
        }
        int i = spec->group == SECP256R1MLKEM768;
        one_policy[i] = security_policy_20251015;
        one_policy[i].minimum_protocol_version = S2N_TLS13;
        one_policy[i].kem_preferences = i == 0 ? &x25519_kems : &p256_kems;
        one_policy[i].ecc_preferences = &s2n_ecc_preferences_null;
        config->security_policy = &one_policy[i]; /* what s2n's own setter does, which takes names only */
        return 0;
    }
    /* The same names as side-s2n. */
    const char *name = NULL;
    if (spec->version == 0x0304) {
        name = spec->group == X25519MLKEM768 ? "default_fips"
                : spec->group == P256        ? "20230317"
                : spec->group == X25519      ? "20241106"
                                             : NULL;
    } else if (spec->group == P256) {
        name = "20240502";
    }
    if (name == NULL) {
        return unsupported("no policy of s2n prefers this group");
    }
    return s2n_config_set_cipher_preferences(config, name) == S2N_SUCCESS ? 0 : s2n_failed("policy");
}

static const char *group_name(int group)
{
    switch (group) {
        case X25519MLKEM768:
            return "X25519MLKEM768";
        case SECP256R1MLKEM768:
            return "SecP256r1MLKEM768";
        case P256:
            return "secp256r1";
    }
    return "x25519";
}

/* --- configs ----------------------------------------------------------------- */

static char *read_file(const char *who, const char *cert, const char *ending)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s-%s.%s", cert_dir, who, cert, ending);
    FILE *f = fopen(path, "r");
    if (f == NULL) {
        return NULL;
    }
    char *text = calloc(1, 1 << 16);
    if (text != NULL && fread(text, 1, (1 << 16) - 1, f) == 0) {
        free(text);
        text = NULL;
    }
    fclose(f);
    return text;
}

static struct s2n_cert_chain_and_key *load_chain(const char *who, const char *cert)
{
    char *pem = read_file(who, cert, "pem"), *key = read_file(who, cert, "key");
    struct s2n_cert_chain_and_key *chain = s2n_cert_chain_and_key_new();
    if (pem == NULL || key == NULL || chain == NULL
            || s2n_cert_chain_and_key_load_pem_bytes(chain, (uint8_t *) pem, (uint32_t) strlen(pem), (uint8_t *) key,
                       (uint32_t) strlen(key))
                    != S2N_SUCCESS) {
        s2n_cert_chain_and_key_free(chain);
        chain = NULL;
    }
    free(pem);
    free(key);
    return chain;
}

static void free_configs(struct configs *c)
{
    s2n_config_free(c->client);
    s2n_config_free(c->server);
    s2n_cert_chain_and_key_free(c->client_chain);
    s2n_cert_chain_and_key_free(c->server_chain);
}

/* What a client is called is nobody's to check. */
static uint8_t any_name(const char *name, size_t len, void *ctx)
{
    (void) name;
    (void) len;
    (void) ctx;
    return 1;
}

static int make_configs(const struct spec *spec, struct configs *c)
{
    char *ca = read_file("ca", spec->cert, "pem");
    c->client = s2n_config_new_minimal();
    c->server = s2n_config_new_minimal();
    c->server_chain = load_chain("server", spec->cert);
    if (ca == NULL || c->client == NULL || c->server == NULL || c->server_chain == NULL) {
        free(ca);
        return s2n_failed("configs");
    }
    struct s2n_config *both[] = { c->client, c->server };
    for (int i = 0; i < 2; i++) {
        if (set_policy(both[i], spec) != 0) {
            free(ca);
            return -1;
        }
        if (s2n_config_add_pem_to_trust_store(both[i], ca) != S2N_SUCCESS
                || s2n_config_set_send_buffer_size(both[i], 131072 + 4096) != S2N_SUCCESS
                || s2n_config_set_recv_multi_record(both[i], true) != S2N_SUCCESS) {
            free(ca);
            return s2n_failed("configs");
        }
    }
    free(ca);
    if (s2n_config_add_cert_chain_and_key_to_store(c->server, c->server_chain) != S2N_SUCCESS) {
        return s2n_failed("server's chain");
    }
    if (spec->mutual) {
        c->client_chain = load_chain("client", spec->cert);
        if (c->client_chain == NULL || s2n_config_add_cert_chain_and_key_to_store(c->client, c->client_chain) != S2N_SUCCESS
                || s2n_config_set_client_auth_type(c->client, S2N_CERT_AUTH_OPTIONAL) != S2N_SUCCESS
                || s2n_config_set_client_auth_type(c->server, S2N_CERT_AUTH_REQUIRED) != S2N_SUCCESS
                || s2n_config_set_verify_host_callback(c->server, any_name, NULL) != S2N_SUCCESS) {
            return s2n_failed("client's chain");
        }
    }
    return 0;
}

/* --- transports -------------------------------------------------------------- */

static int put(struct pipe *p, const uint8_t *buf, uint32_t len)
{
    if (p->room - p->end < len) {
        p->room = 2 * p->room + len;
        uint8_t *more = realloc(p->buf, p->room);
        if (more == NULL) {
            return -1;
        }
        p->buf = more;
    }
    memcpy(p->buf + p->end, buf, len);
    p->end += len;
    return (int) len;
}

static int send_all(int fd, const uint8_t *buf, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, buf, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) {
            struct pollfd p = { .fd = fd, .events = POLLOUT };
            poll(&p, 1, -1);
        } else if (n < 0) {
            return -1;
        } else {
            buf += n;
            len -= (size_t) n;
        }
    }
    return 0;
}

static int on_send(void *ctx, const uint8_t *buf, uint32_t len)
{
    struct end *e = ctx;
    if (e->fd < 0) {
        return put(e->out, buf, len);
    }
    if (!e->blocking) {
        return put(&e->flight, buf, len);
    }
    return send_all(e->fd, buf, len) == 0 ? (int) len : -1;
}

static int on_recv(void *ctx, uint8_t *buf, uint32_t len)
{
    struct end *e = ctx;
    if (e->fd >= 0) {
        return (int) recv(e->fd, buf, len, e->blocking ? 0 : MSG_DONTWAIT);
    }
    struct pipe *p = e->in;
    size_t there = p->end - p->start;
    if (there == 0) {
        errno = EAGAIN;
        return p->closed ? 0 : -1;
    }
    size_t n = there < len ? there : len;
    memcpy(buf, p->buf + p->start, n);
    p->start += n;
    if (p->start == p->end) {
        p->start = p->end = 0;
    }
    return (int) n;
}

static int flush(struct end *e)
{
    if (e->flight.end == 0) {
        return 0;
    }
    size_t len = e->flight.end;
    e->flight.end = 0;
    return send_all(e->fd, e->flight.buf, len);
}

static int open_end(struct end *e, s2n_mode mode, struct s2n_config *config)
{
    e->conn = s2n_connection_new(mode);
    if (e->conn == NULL || s2n_connection_set_config(e->conn, config) != S2N_SUCCESS
            || s2n_connection_set_send_cb(e->conn, on_send) != S2N_SUCCESS || s2n_connection_set_send_ctx(e->conn, e) != S2N_SUCCESS
            || s2n_connection_set_recv_cb(e->conn, on_recv) != S2N_SUCCESS || s2n_connection_set_recv_ctx(e->conn, e) != S2N_SUCCESS
            || s2n_connection_set_recv_buffering(e->conn, true) != S2N_SUCCESS
            || s2n_connection_prefer_throughput(e->conn) != S2N_SUCCESS
            || s2n_connection_set_blinding(e->conn, S2N_SELF_SERVICE_BLINDING) != S2N_SUCCESS
            || (mode == S2N_CLIENT && s2n_set_server_name(e->conn, "localhost") != S2N_SUCCESS)) {
        return s2n_failed("connection");
    }
    return 0;
}

static int listener = -1;
static struct sockaddr_in address;

static int listen_once(void)
{
    if (listener >= 0) {
        return 0;
    }
    socklen_t len = sizeof(address);
    address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *) &address, len) != 0 || listen(listener, 4096) != 0
            || getsockname(listener, (struct sockaddr *) &address, &len) != 0) {
        return fail("listen: %s", strerror(errno));
    }
    return 0;
}

void close_link(struct link *l)
{
    struct end *ends[] = { &l->client, &l->server };
    for (int i = 0; i < 2; i++) {
        s2n_connection_free(ends[i]->conn);
        if (ends[i]->fd >= 0) {
            close(ends[i]->fd);
        }
        free(ends[i]->flight.buf);
    }
    free(l->there.buf);
    free(l->back.buf);
}

int open_link(struct link *l, const struct spec *spec, const struct configs *c)
{
    *l = (struct link){ .client.fd = -1, .server.fd = -1 };
    if (strcmp(spec->transport, "tcp") == 0) {
        int on = 1;
        if (listen_once() != 0) {
            return -1;
        }
        l->client.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (l->client.fd < 0 || connect(l->client.fd, (struct sockaddr *) &address, sizeof(address)) != 0
                || (l->server.fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) < 0) {
            return fail("connect: %s", strerror(errno));
        }
        /* As Go does for every connection. */
        setsockopt(l->client.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        setsockopt(l->server.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    } else {
        l->client.in = l->server.out = &l->back;
        l->client.out = l->server.in = &l->there;
    }
    return open_end(&l->client, S2N_CLIENT, c->client) != 0 ? -1 : open_end(&l->server, S2N_SERVER, c->server);
}

/* --- handshakes -------------------------------------------------------------- */

static int step(struct end *e)
{
    s2n_blocked_status blocked;
    if (e->done) {
        return 0;
    }
    if (s2n_negotiate(e->conn, &blocked) == S2N_SUCCESS) {
        e->done = true;
    } else if (s2n_error_get_type(s2n_errno) != S2N_ERR_T_BLOCKED) {
        return s2n_failed("negotiate");
    }
    return flush(e) == 0 ? 0 : fail("send: %s", strerror(errno));
}

static int wanted_suite(const struct spec *spec)
{
    if (spec->version == 0x0304) {
        return 0x1301;
    }
    return strcmp(spec->cert, "rsa-2048") == 0 ? 0xc02f : 0xc02b;
}

/* Reads the peer's certificates as an application would. */
static int peer_chain(struct end *e, bool wanted)
{
    struct s2n_cert_chain_and_key *chain = s2n_cert_chain_and_key_new();
    struct s2n_cert *leaf = NULL;
    const uint8_t *der = NULL;
    uint32_t len = 0;
    bool got = chain != NULL && s2n_connection_get_peer_cert_chain(e->conn, chain) == S2N_SUCCESS
            && s2n_cert_chain_get_cert(chain, &leaf, 0) == S2N_SUCCESS && s2n_cert_get_der(leaf, &der, &len) == S2N_SUCCESS && len > 0;
    s2n_cert_chain_and_key_free(chain);
    return got == wanted ? 0 : fail("the peer's certificate: wanted %d, got %d", wanted, got);
}

static int look_at(struct end *e, const struct spec *spec, bool peer_has_cert)
{
    uint8_t suite[2];
    const char *group = NULL;
    s2n_tls_signature_algorithm sig;
    if (s2n_connection_get_cipher_iana_value(e->conn, &suite[0], &suite[1]) != S2N_SUCCESS
            || s2n_connection_get_key_exchange_group(e->conn, &group) != S2N_SUCCESS
            || s2n_connection_get_selected_signature_algorithm(e->conn, &sig) != S2N_SUCCESS) {
        return s2n_failed("state");
    }
    bool rsa = strcmp(spec->cert, "rsa-2048") == 0;
    if (s2n_connection_get_actual_protocol_version(e->conn) != (spec->version == 0x0304 ? S2N_TLS13 : S2N_TLS12)
            || suite[0] << 8 != (wanted_suite(spec) & 0xff00) || suite[1] != (wanted_suite(spec) & 0xff)
            || strcmp(group, group_name(spec->group)) != 0 || s2n_connection_is_session_resumed(e->conn)
            || (sig == S2N_TLS_SIGNATURE_ECDSA) == rsa || strstr(s2n_connection_get_handshake_type_name(e->conn), "HELLO_RETRY") != NULL) {
        return fail("negotiated %s, suite %02x%02x, %s", s2n_connection_get_handshake_type_name(e->conn), suite[0], suite[1], group);
    }
    return peer_has_cert ? peer_chain(e, true) : 0;
}

int shake(struct link *l, const struct spec *spec)
{
    while (!l->client.done || !l->server.done) {
        if (step(&l->client) != 0 || step(&l->server) != 0) {
            return -1;
        }
    }
    if (s2n_connection_client_cert_used(l->server.conn) != spec->mutual) {
        return fail("the client's certificate: wanted %d", spec->mutual);
    }
    return look_at(&l->client, spec, true) != 0 ? -1 : look_at(&l->server, spec, spec->mutual);
}

/* The client ends the connection, the server hears it. */
static int finish(struct link *l)
{
    s2n_blocked_status blocked;
    uint8_t one;
    if (s2n_shutdown_send(l->client.conn, &blocked) != S2N_SUCCESS || flush(&l->client) != 0) {
        return s2n_failed("client's close");
    }
    if (l->client.fd >= 0) {
        close(l->client.fd);
        l->client.fd = -1;
    }
    if (s2n_recv(l->server.conn, &one, 1, &blocked) != 0) {
        return s2n_failed("the end was not heard");
    }
    (void) s2n_shutdown_send(l->server.conn, &blocked);
    (void) flush(&l->server);
    return 0;
}

static int one_handshake(const struct spec *spec, const struct configs *c)
{
    struct link l;
    int status = open_link(&l, spec, c) != 0 || shake(&l, spec) != 0 || finish(&l) != 0 ? -1 : 0;
    close_link(&l);
    return status;
}

static int handshakes(const struct spec *spec, const struct configs *c, struct result *out)
{
    if (one_handshake(spec, c) != 0) {
        return -1;
    }
    measure_begin();
    for (long i = 0; i < spec->n; i++) {
        if (one_handshake(spec, c) != 0) {
            return -1;
        }
    }
    measure_end(out);
    out->ops = spec->n;
    return 0;
}

/* --- what main calls --------------------------------------------------------- */

int run_s2n(const struct spec *spec, struct result *out)
{
    struct configs c = { 0 };
    int status = make_configs(spec, &c);
    if (status == 0) {
        if (strcmp(spec->kind, "handshake") == 0) {
            status = handshakes(spec, &c, out);
        } else if (strcmp(spec->kind, "bulk") == 0 || strcmp(spec->kind, "write") == 0 || strcmp(spec->kind, "pingpong") == 0) {
            status = data(spec, &c, out);
        } else {
            status = unsupported("this side has handshake, bulk, write, pingpong and aead");
        }
    }
    out->version = spec->version;
    out->group = spec->group;
    out->suite = wanted_suite(spec);
    out->mutual = spec->mutual;
    free_configs(&c);
    return status;
}

int hello_s2n(const struct spec *spec)
{
    struct configs c = { 0 };
    struct link l = { .client.fd = -1, .server.fd = -1 };
    struct spec mem = *spec;
    snprintf(mem.transport, sizeof(mem.transport), "mem");
    int status = make_configs(spec, &c);
    if (status == 0 && (status = open_link(&l, &mem, &c)) == 0 && (status = step(&l.client)) == 0) {
        printf("ok hello=");
        for (size_t i = 0; i < l.there.end; i++) {
            printf("%02x", l.there.buf[i]);
        }
        printf("\n");
    }
    close_link(&l);
    free_configs(&c);
    return status;
}

static int mem_init(void)
{
    return S2N_SUCCESS;
}

static int mem_malloc(void **ptr, uint32_t requested, uint32_t *allocated)
{
    *ptr = malloc(requested);
    *allocated = requested;
    return *ptr == NULL ? S2N_FAILURE : S2N_SUCCESS;
}

static int mem_free(void *ptr, uint32_t size)
{
    (void) size;
    free(ptr);
    return S2N_SUCCESS;
}

int init_s2n(const char *certs, const char *profile)
{
    /* glibc gives the top of the heap back after each connection, and faults it in again for the next. */
    (void) mallopt(M_TRIM_THRESHOLD, 64 << 20);
    (void) mallopt(M_MMAP_THRESHOLD, 64 << 20);
    cert_dir = certs;
    one_share = strcmp(profile, "one-share") == 0;
    if (s2n_mem_set_callbacks(mem_init, mem_init, mem_malloc, mem_free) != S2N_SUCCESS || s2n_init() != S2N_SUCCESS) {
        return s2n_failed("s2n_init");
    }
    return 0;
}
