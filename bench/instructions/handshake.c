/* Handshakes in memory over the library, both ends in one thread, for counting instructions:
 *
 *   handshake N POLICY CA.pem SERVER.pem SERVER.key [CLIENT.pem CLIENT.key]
 *
 * All that a client does is below client_part, all that a server does below server_part, so that
 * callgrind can count either (run says how). With a client certificate the handshake is mutual. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "s2nshim.h"

static void must(int ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "handshake: %s failed\n", what);
        exit(1);
    }
}

static uint8_t *slurp(const char *path, uint32_t *len)
{
    FILE *f = fopen(path, "rb");
    must(f != NULL, path);
    uint8_t *buf = malloc(1 << 16);
    *len = (uint32_t) fread(buf, 1, 1 << 16, f);
    fclose(f);
    return buf;
}

static s2nshim_cert *load(const char *chain, const char *key)
{
    uint32_t chain_len, key_len;
    uint8_t *c = slurp(chain, &chain_len), *k = slurp(key, &key_len);
    s2nshim_cert *cert = NULL;
    must(s2nshim_cert_new(c, chain_len, k, key_len, &cert).status == S2NSHIM_OK, chain);
    free(c);
    free(k);
    return cert;
}

/* DER: openssl x509 -outform DER. */
static s2nshim_store *trust(const char *path)
{
    uint32_t len;
    uint8_t *der = slurp(path, &len);
    s2nshim_store *store = NULL;
    must(s2nshim_store_new(&store).status == S2NSHIM_OK, "store");
    must(s2nshim_store_add(store, der, len).status == S2NSHIM_OK, path);
    free(der);
    return store;
}

static int step(s2nshim_conn *conn)
{
    for (;;) {
        s2nshim_result r = s2nshim_conn_negotiate(conn);
        if (r.status == S2NSHIM_WANT_VERIFY) {
            s2nshim_conn_verified(conn, 0);
            continue;
        }
        if (r.status != S2NSHIM_OK && r.status != S2NSHIM_WANT_READ) {
            fprintf(stderr, "handshake: status %d, %s\n", r.status, s2nshim_error_name(r.code));
            exit(1);
        }
        return r.status == S2NSHIM_OK;
    }
}

static void finish(s2nshim_conn *conn)
{
    s2nshim_conn_info info;
    must(s2nshim_conn_finish(conn, &info).status == S2NSHIM_OK, "finish");
}

static s2nshim_conn *begin(s2nshim_config *config, const char *name)
{
    s2nshim_conn *conn = NULL;
    must(s2nshim_conn_new(config, -1, name, &conn).status == S2NSHIM_OK, "conn");
    return conn;
}

/* begin, step, finish and free of one side; the names are what callgrind toggles on. */
__attribute__((noinline)) int client_part(s2nshim_conn **conn, s2nshim_config *config, int what)
{
    switch (what) {
        case 0: *conn = begin(config, "localhost"); return 0;
        case 1: return step(*conn);
        case 2: finish(*conn); return 0;
        default: s2nshim_conn_free(*conn); return 0;
    }
}

__attribute__((noinline)) int server_part(s2nshim_conn **conn, s2nshim_config *config, int what)
{
    switch (what) {
        case 0: *conn = begin(config, NULL); return 0;
        case 1: return step(*conn);
        case 2: finish(*conn); return 0;
        default: s2nshim_conn_free(*conn); return 0;
    }
}

static void carry(s2nshim_conn *from, s2nshim_conn *to)
{
    size_t len;
    const void *out;
    while ((out = s2nshim_conn_out(from, &len)) != NULL) {
        size_t room;
        void *in = s2nshim_conn_in_space(to, &room);
        size_t n = len < room ? len : room;
        must(n > 0, "carrying bytes over");
        memcpy(in, out, n);
        s2nshim_conn_in_filled(to, n);
        s2nshim_conn_out_sent(from, n);
    }
}

int main(int argc, char **argv)
{
    if (argc != 6 && argc != 8) {
        fprintf(stderr, "usage: handshake N POLICY CA.der SERVER.pem SERVER.key [CLIENT.pem CLIENT.key]\n");
        return 2;
    }
    must(s2nshim_init().status == S2NSHIM_OK, "init");
    s2nshim_store *ca = trust(argv[3]);
    s2nshim_cert *server_cert = load(argv[4], argv[5]);
    s2nshim_cert *client_cert = argc == 8 ? load(argv[6], argv[7]) : NULL;
    s2nshim_config_params p = { .policy = argv[2], .store = ca, .role = S2NSHIM_SERVER, .records = S2NSHIM_RECORDS_THROUGHPUT };
    p.client_auth = client_cert != NULL ? S2NSHIM_AUTH_REQUIRED : S2NSHIM_AUTH_NONE;
    s2nshim_config *server_config = NULL, *client_config = NULL;
    must(s2nshim_config_new(&p, &server_cert, 1, &server_config).status == S2NSHIM_OK, "server config");
    p.role = S2NSHIM_CLIENT;
    p.client_auth = S2NSHIM_AUTH_NONE;
    must(s2nshim_config_new(&p, &client_cert, client_cert != NULL, &client_config).status == S2NSHIM_OK, "client config");

    for (int i = atoi(argv[1]); i > 0; i--) {
        s2nshim_conn *client, *server;
        client_part(&client, client_config, 0);
        server_part(&server, server_config, 0);
        int client_done = 0, server_done = 0;
        while (!client_done || !server_done) {
            client_done = client_part(&client, client_config, 1);
            carry(client, server);
            server_done = server_part(&server, server_config, 1);
            carry(server, client);
        }
        client_part(&client, client_config, 2);
        server_part(&server, server_config, 2);
        client_part(&client, client_config, 3);
        server_part(&server, server_config, 3);
    }
    return 0;
}
