/* The loop that answers the driver: ../internal/proto says in what words. */
#include <openssl/service_indicator.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "side.h"

static char complaint[512];

int fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = snprintf(complaint, sizeof(complaint), "error ");
    vsnprintf(complaint + n, sizeof(complaint) - (size_t) n, format, args);
    va_end(args);
    return -1;
}

int unsupported(const char *why)
{
    snprintf(complaint, sizeof(complaint), "unsupported %s", why);
    return -1;
}

static struct rusage usage;
static struct timespec begun;

void measure_begin(void)
{
    getrusage(RUSAGE_SELF, &usage);
    clock_gettime(CLOCK_MONOTONIC, &begun);
}

static int64_t us(struct timeval a, struct timeval b)
{
    return ((int64_t) a.tv_sec - b.tv_sec) * 1000000 + a.tv_usec - b.tv_usec;
}

void measure_end(struct result *out)
{
    struct timespec now;
    struct rusage after;
    clock_gettime(CLOCK_MONOTONIC, &now);
    getrusage(RUSAGE_SELF, &after);
    out->wall_ns = ((int64_t) now.tv_sec - begun.tv_sec) * 1000000000 + now.tv_nsec - begun.tv_nsec;
    out->user_ns = us(after.ru_utime, usage.ru_utime) * 1000;
    out->sys_ns = us(after.ru_stime, usage.ru_stime) * 1000;
    out->faults = after.ru_minflt - usage.ru_minflt;
    out->switches = after.ru_nvcsw + after.ru_nivcsw - usage.ru_nvcsw - usage.ru_nivcsw;
}

static int parse(char *words, struct spec *spec)
{
    char *rest = NULL;
    for (char *word = strtok_r(words, " \n", &rest); word != NULL; word = strtok_r(NULL, " \n", &rest)) {
        char *value = strchr(word, '=');
        if (value == NULL) {
            return fail("no key=value: %s", word);
        }
        *value++ = 0;
        const struct {
            const char *key;
            char *text;
            size_t size;
        } texts[] = {
            { "kind", spec->kind, sizeof(spec->kind) },
            { "cert", spec->cert, sizeof(spec->cert) },
            { "transport", spec->transport, sizeof(spec->transport) },
            { "op", spec->op, sizeof(spec->op) },
        };
        bool known = false;
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
            if (strcmp(word, texts[i].key) == 0) {
                known = true;
                if ((size_t) snprintf(texts[i].text, texts[i].size, "%s", value) >= texts[i].size) {
                    return unsupported("a word that it does not know");
                }
            }
        }
        if (known) {
            continue;
        }
        long n = strtol(value, NULL, 10);
        if (strcmp(word, "version") == 0) {
            spec->version = (int) n;
        } else if (strcmp(word, "group") == 0) {
            spec->group = (int) n;
        } else if (strcmp(word, "mutual") == 0) {
            spec->mutual = n != 0;
        } else if (strcmp(word, "both") == 0) {
            spec->both = n != 0;
        } else if (strcmp(word, "size") == 0) {
            spec->size = n;
        } else if (strcmp(word, "key") == 0) {
            spec->key = n;
        } else if (strcmp(word, "n") == 0) {
            spec->n = n;
        } else if (strcmp(word, "conns") != 0) {
            return fail("unknown word %s", word);
        }
    }
    return spec->n > 0 ? 0 : fail("n=%ld", spec->n);
}

static void answer(char *line)
{
    struct spec spec = { 0 };
    struct result r = { 0 };
    char *words = strchr(line, ' ');
    if (words == NULL || parse(words, &spec) != 0) {
        puts(words == NULL ? "error no request" : complaint);
        return;
    }
    if (strncmp(line, "hello ", 6) == 0) {
        if (hello_s2n(&spec) != 0) {
            puts(complaint);
        }
        return;
    }
    int status = strcmp(spec.kind, "aead") == 0 ? run_aead(&spec, &r) : run_s2n(&spec, &r);
    if (status != 0) {
        puts(complaint);
        return;
    }
    printf("ok ops=%ld bytes=%ld user_ns=%ld sys_ns=%ld wall_ns=%ld faults=%ld switches=%ld", (long) r.ops, (long) r.bytes,
            (long) r.user_ns, (long) r.sys_ns, (long) r.wall_ns, (long) r.faults, (long) r.switches);
    if (r.version != 0) {
        printf(" version=%d group=%d suite=%d mutual=%d", r.version, r.group, r.suite, r.mutual);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    const char *certs = ".", *profile = "default";
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "-certs") == 0) {
            certs = argv[i + 1];
        } else if (strcmp(argv[i], "-profile") == 0) {
            profile = argv[i + 1];
        }
    }
    if (init_s2n(certs, profile) != 0) {
        puts(complaint);
        return 1;
    }
    char library[64];
    snprintf(library, sizeof(library), "%s", awslc_version_string());
    for (char *c = library; *c != 0; c++) {
        if (*c == ' ') {
            *c = '_';
        }
    }
    printf("ready library=s2n-tls+%s\n", library);
    fflush(stdout);
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        answer(line);
        fflush(stdout);
    }
    free(line);
    return 0;
}
