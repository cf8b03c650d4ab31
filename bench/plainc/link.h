/* Connections, as s2n.c makes them. */
#ifndef LINK_H
#define LINK_H

#include "api/s2n.h"
#include "side.h"

struct configs {
    struct s2n_config *client, *server;
    struct s2n_cert_chain_and_key *client_chain, *server_chain;
};

struct pipe {
    uint8_t *buf;
    size_t start, end, room;
    bool closed;
};

/* One end of a connection. fd -1: in memory. */
struct end {
    struct s2n_connection *conn;
    int fd;
    bool blocking; /* after the handshake, where each direction has a thread */
    struct pipe *in, *out;
    struct pipe flight; /* what a step of the handshake has to send */
    bool done;
};

/* A connection: two ends, and what is between them. */
struct link {
    struct end client, server;
    struct pipe there, back;
};

int open_link(struct link *l, const struct spec *spec, const struct configs *c);
int shake(struct link *l, const struct spec *spec);
void close_link(struct link *l);

/* data.c */
int data(const struct spec *spec, const struct configs *c, struct result *out);

#endif
