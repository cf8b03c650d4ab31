/* What streams: a thread for each reader and each writer. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "link.h"

struct stream {
    struct end *end;
    long n, size;
    int status;
};

static int write_all(struct end *e, uint8_t *buf, long size)
{
    s2n_blocked_status blocked;
    for (long sent = 0; sent < size;) {
        ssize_t n = s2n_send(e->conn, buf + sent, size - sent, &blocked);
        if (n <= 0) {
            return -1;
        }
        sent += n;
    }
    return 0;
}

static int read_all(struct end *e, uint8_t *buf, long size, long total)
{
    s2n_blocked_status blocked;
    for (long got = 0; got < total;) {
        long want = total - got < size ? total - got : size;
        ssize_t n = s2n_recv(e->conn, buf, want, &blocked);
        if (n <= 0) {
            return -1;
        }
        got += n;
    }
    return 0;
}

static void *writer(void *arg)
{
    struct stream *s = arg;
    uint8_t *buf = calloc(1, (size_t) s->size);
    for (long i = 0; i < s->n && s->status == 0; i++) {
        s->status = buf == NULL ? -1 : write_all(s->end, buf, s->size);
    }
    free(buf);
    return NULL;
}

static void *reader(void *arg)
{
    struct stream *s = arg;
    uint8_t *buf = malloc(64 << 10);
    s->status = buf == NULL ? -1 : read_all(s->end, buf, 64 << 10, s->n * s->size);
    free(buf);
    return NULL;
}

static void *echoer(void *arg)
{
    struct stream *s = arg;
    uint8_t *buf = malloc((size_t) s->size);
    for (long i = 0; i < s->n && s->status == 0; i++) {
        s->status = buf == NULL || read_all(s->end, buf, s->size, s->size) != 0 ? -1 : write_all(s->end, buf, s->size);
    }
    free(buf);
    return NULL;
}

static void *pinger(void *arg)
{
    struct stream *s = arg;
    uint8_t *buf = calloc(1, (size_t) s->size);
    for (long i = 0; i < s->n && s->status == 0; i++) {
        s->status = buf == NULL || write_all(s->end, buf, s->size) != 0 ? -1 : read_all(s->end, buf, s->size, s->size);
    }
    free(buf);
    return NULL;
}

/* Threads, one for each direction that an end has to serve, and this one for the last. */
static int stream(struct link *l, const struct spec *spec, long n)
{
    bool pong = strcmp(spec->kind, "pingpong") == 0;
    struct {
        void *(*run)(void *);
        struct stream s;
    } parts[] = {
        { pong ? echoer : reader, { &l->server, n, spec->size, 0 } },
        { writer, { &l->server, n, spec->size, 0 } },
        { reader, { &l->client, n, spec->size, 0 } },
        { pong ? pinger : writer, { &l->client, n, spec->size, 0 } },
    };
    const int last = 3;
    pthread_t threads[3];
    for (int i = 0; i < last; i++) {
        if ((i == 0 || spec->both) && pthread_create(&threads[i], NULL, parts[i].run, &parts[i].s) != 0) {
            return fail("no thread");
        }
    }
    parts[last].run(&parts[last].s);
    int status = parts[last].s.status;
    for (int i = 0; i < last; i++) {
        if (i == 0 || spec->both) {
            pthread_join(threads[i], NULL);
            status |= parts[i].s.status;
        }
    }
    return status == 0 ? 0 : fail("a stream broke off");
}

int data(const struct spec *spec, const struct configs *c, struct result *out)
{
    struct link l;
    if (strcmp(spec->transport, "tcp") != 0) {
        return unsupported("data over TCP only");
    }
    int status = open_link(&l, spec, c) != 0 || shake(&l, spec) != 0 ? -1 : 0;
    l.client.blocking = l.server.blocking = true;
    if (status == 0 && (status = stream(&l, spec, 1)) == 0) {
        measure_begin();
        status = stream(&l, spec, spec->n);
        measure_end(out);
    }
    close_link(&l);
    out->ops = spec->n;
    out->bytes = spec->n * spec->size * (spec->both || strcmp(spec->kind, "pingpong") == 0 ? 2 : 1);
    return status;
}
