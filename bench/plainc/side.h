/* What the files of the side in C share. */
#ifndef SIDE_H
#define SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spec {
    char kind[16];
    int version, group;
    char cert[16];
    bool mutual, both;
    char transport[8];
    long size, key, n;
    char op[8];
};

struct result {
    int64_t ops, bytes;
    int64_t user_ns, sys_ns, wall_ns, faults, switches;
    int version, group, suite, mutual; /* 0: there was no TLS */
};

/* Each answers 0, or -1 after fail() or unsupported(). */
int run_s2n(const struct spec *spec, struct result *out);
int hello_s2n(const struct spec *spec);
int run_aead(const struct spec *spec, struct result *out);
int init_s2n(const char *certs, const char *profile);

int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int unsupported(const char *why);

void measure_begin(void);
void measure_end(struct result *out);

#endif
