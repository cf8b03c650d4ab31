/* Handshakes in memory that end in every possible place, for AddressSanitizer and LeakSanitizer to look
 * at who owns the key shares. Arguments: certificate chain and key, PEM files. */
#include <s2nshim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(cond) \
    do { \
        if (!(cond)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
            exit(1); \
        } \
    } while (0)

#define NEVER ((size_t) -1)

static uint8_t *load(const char *path, uint32_t *len)
{
    FILE *f = fopen(path, "rb");
    CHECK(f != NULL);
    uint8_t *p = malloc(1 << 16);
    *len = (uint32_t) fread(p, 1, 1 << 16, f);
    fclose(f);
    return p;
}

static s2nshim_config *config(uint8_t role, const char *policy, uint8_t shares, s2nshim_cert *cert)
{
    s2nshim_config_params params = { .policy = policy, .role = role, .skip_verify = 1, .shares = shares };
    s2nshim_config *c = NULL;
    s2nshim_result r = s2nshim_config_new(&params, &cert, role == S2NSHIM_SERVER, &c);
    CHECK(r.status == S2NSHIM_OK);
    return c;
}

/* A policy with these groups alone. */
static void policy(const char *name, uint16_t a, uint16_t b, uint16_t c)
{
    s2nshim_policy_info info;
    s2nshim_policy_fault faults[8];
    CHECK(s2nshim_policy_get("default_pq", &info) == 0);
    info.name = name;
    info.n_groups = 0;
    for (int i = 0; i < 3; i++) {
        uint16_t group = i == 0 ? a : i == 1 ? b : c;
        if (group != 0) {
            info.groups[info.n_groups++] = group;
        }
    }
    CHECK(s2nshim_policy_new(&info, faults, 8) == 0);
    CHECK(s2nshim_policy_new(&info, faults, 8) == 1 && faults[0].kind == S2NSHIM_FAULT_NAME);
}

/* One turn of a side. Its status; what it sends goes to the other, with a byte changed if flip is in it. */
static int32_t turn(s2nshim_conn *from, s2nshim_conn *to, size_t *flip)
{
    s2nshim_result r = s2nshim_conn_negotiate(from);
    while (r.status == S2NSHIM_WANT_VERIFY) {
        s2nshim_conn_verified(from, 0);
        r = s2nshim_conn_negotiate(from);
    }
    for (;;) {
        size_t n = 0;
        const uint8_t *out = s2nshim_conn_out(from, &n);
        if (n == 0) {
            return r.status;
        }
        size_t room = 0;
        uint8_t *in = s2nshim_conn_in_space(to, &room);
        CHECK(in != NULL && room > 0);
        n = n < room ? n : room;
        memcpy(in, out, n);
        if (*flip < n) {
            in[*flip] ^= 4;
            *flip = NEVER;
        } else if (*flip != NEVER) {
            *flip -= n;
        }
        s2nshim_conn_in_filled(to, n);
        s2nshim_conn_out_sent(from, n);
    }
}

static int shares(s2nshim_conn *conn)
{
    size_t n = 0;
    uint8_t *p = s2nshim_conn_key_shares(conn, &n);
    s2nshim_free(p);
    return p != NULL;
}

/* A handshake of at most so many turns. Whether it was complete. */
static int handshake(s2nshim_config *cc, s2nshim_config *sc, int tls13, int turns, size_t flip)
{
    s2nshim_conn *client = NULL, *server = NULL;
    CHECK(s2nshim_conn_new(cc, -1, "localhost", &client).status == S2NSHIM_OK);
    CHECK(s2nshim_conn_new(sc, -1, NULL, &server).status == S2NSHIM_OK);
    int32_t c = S2NSHIM_WANT_READ, s = S2NSHIM_WANT_READ;
    CHECK(!shares(client) && !shares(server));
    for (int i = 0; i < turns && (c == S2NSHIM_WANT_READ || s == S2NSHIM_WANT_READ); i++) {
        size_t none = NEVER;
        if (i % 2 == 0 && c == S2NSHIM_WANT_READ) {
            c = turn(client, server, &flip);
            CHECK(shares(client) == (tls13 && (c == S2NSHIM_WANT_READ || c == S2NSHIM_OK)));
        } else if (i % 2 == 1 && s == S2NSHIM_WANT_READ) {
            s = turn(server, client, &none);
        }
        CHECK(!shares(server));
    }
    int complete = c == S2NSHIM_OK && s == S2NSHIM_OK;
    if (complete) {
        s2nshim_conn_info info;
        CHECK(s2nshim_conn_finish(client, &info).status == S2NSHIM_OK);
        CHECK(s2nshim_conn_finish(server, &info).status == S2NSHIM_OK);
        CHECK(!shares(client));
    }
    s2nshim_conn_free(client);
    s2nshim_conn_free(server);
    return complete;
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    CHECK(s2nshim_init().status == S2NSHIM_OK);
    uint32_t chain_len, key_len;
    uint8_t *chain = load(argv[1], &chain_len), *key = load(argv[2], &key_len);
    s2nshim_cert *cert = NULL;
    CHECK(s2nshim_cert_new(chain, chain_len, key, key_len, &cert).status == S2NSHIM_OK);
    free(chain);
    free(key);
    policy("x25519", 29, 0, 0);
    policy("p384", 24, 0, 0);
    policy("p521", 25, 0, 0);
    policy("hybrid-p256", 0x11eb, 23, 0);
    policy("hybrid-p384", 0x11ed, 24, 29);

    const char *clients[] = { "default_pq", "default_fips", "s2ngo-fips-pq-2026", "s2ngo-fips-nist-2026", "hybrid-p384", "20240502" };
    const char *servers[] = { "default_pq", "x25519", "p384", "p521", "hybrid-p256", "hybrid-p384", "20240502" };
    int whole = 0, all = 0;
    for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++) {
        int tls13 = strcmp(clients[i], "20240502") != 0;
        for (uint8_t mode = S2NSHIM_SHARES_POLICY; mode <= S2NSHIM_SHARES_HYBRID_ONLY; mode++) {
            s2nshim_config *cc = config(S2NSHIM_CLIENT, clients[i], mode, NULL);
            for (size_t k = 0; k < sizeof(servers) / sizeof(servers[0]); k++) {
                s2nshim_config *sc = config(S2NSHIM_SERVER, servers[k], 0, cert);
                int64_t before = s2nshim_mem_get_stats().s2n_bytes;
                for (int turns = 0; turns <= 9; turns++, all++) {
                    whole += handshake(cc, sc, tls13, turns, NEVER);
                }
                /* A byte of the hello's head, of each part of its shares, of its end; of the Finished. */
                static const size_t flips[] = { 8, 100, 300, 900, 1400, 1500, 1600, 1700, 1800, 1900, 2000 };
                for (size_t f = 0; f < sizeof(flips) / sizeof(flips[0]); f++, all++) {
                    whole += handshake(cc, sc, tls13, 9, flips[f]);
                }
                CHECK(s2nshim_mem_get_stats().s2n_bytes == before);
                s2nshim_config_free(sc);
            }
            s2nshim_config_free(cc);
        }
    }
    s2nshim_cert_free(cert);
    s2nshim_mem_stats stats = s2nshim_mem_get_stats();
    CHECK(stats.conns == 0 && stats.configs == 0 && stats.certs == 0);
    printf("%d handshakes, %d complete\n", all, whole);
    return 0;
}
