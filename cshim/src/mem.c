#define _GNU_SOURCE /* MAP_ANONYMOUS */

/* The allocator that s2n gets: plain malloc for what is small, and a pool of page-aligned
 * buffers for records, shared by all connections.
 *
 * s2n wipes what it frees by s2n_free, so nothing here wipes again. A record buffer that goes
 * back to the pool without s2n_free was emptied by erasing reads (io.c says where).
 * The pool keeps a bounded number of free buffers, and s2nshim_mem_trim returns those that
 * nobody needed since its last call, so that memory falls back after a peak. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shim.h"
#include "utils/s2n_safety.h"

__thread struct s2nshim_conn *shim_current;
s2nshim_mem_stats shim_stats;

/* Below this, malloc serves better than a whole record buffer. */
#define POOL_FROM 8192

struct free_buf {
    struct free_buf *next;
};

static struct pool {
    const uint32_t size;
    const uint32_t keep; /* free buffers kept at most */
    uint32_t count;
    uint32_t low;  /* the fewest since the last trim: never needed meanwhile */
    uint32_t lent; /* to s2n and to connections */
    struct free_buf *head;
    pthread_mutex_t lock;
} pools[] = {
    { .size = BUF_RECORD, .keep = 512, .lock = PTHREAD_MUTEX_INITIALIZER },
    { .size = BUF_READ, .keep = 128, .lock = PTHREAD_MUTEX_INITIALIZER },
    { .size = BUF_WRITE, .keep = 64, .lock = PTHREAD_MUTEX_INITIALIZER },
};
#define N_POOLS (sizeof(pools) / sizeof(pools[0]))

void shim_live(int64_t *counter, int64_t delta)
{
    __atomic_fetch_add(counter, delta, __ATOMIC_RELAXED);
}

/* The current connection's share. */
static void account_conn(int64_t bytes)
{
    if (shim_current != NULL) {
        shim_live(&shim_current->counts.native, bytes);
    }
}

static void account(int64_t bytes, int64_t blocks)
{
    shim_live(&shim_stats.s2n_bytes, bytes);
    shim_live(&shim_stats.s2n_blocks, blocks);
    account_conn(bytes);
}

static struct pool *pool_for(uint32_t size)
{
    for (size_t i = 0; i < N_POOLS; i++) {
        if (size <= pools[i].size) {
            return &pools[i];
        }
    }
    return NULL;
}

/* Under AddressSanitizer every buffer is malloc's own, so that an overrun or a late use shows. */
#ifdef S2N_ADDRESS_SANITIZER
static void *map_buf(uint32_t size)
{
    return malloc(size);
}
static void unmap_buf(void *p, uint32_t size)
{
    (void) size;
    free(p);
}
#else
static void *map_buf(uint32_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}
static void unmap_buf(void *p, uint32_t size)
{
    munmap(p, size);
}
#endif

void *shim_buf_get(uint32_t want, uint32_t *got)
{
    struct pool *pool = pool_for(want);
    if (pool == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&pool->lock);
    struct free_buf *buf = pool->head;
    if (buf != NULL) {
        pool->head = buf->next;
        pool->count--;
        if (pool->count < pool->low) {
            pool->low = pool->count;
        }
    }
    pool->lent++;
    pthread_mutex_unlock(&pool->lock);
    if (buf == NULL) {
        buf = map_buf(pool->size);
        if (buf == NULL) {
            pthread_mutex_lock(&pool->lock);
            pool->lent--;
            pthread_mutex_unlock(&pool->lock);
            return NULL;
        }
    }
    *got = pool->size;
    account_conn(pool->size);
    return buf;
}

void shim_buf_put(void *p, uint32_t size)
{
    struct pool *pool = pool_for(size);
    account_conn(-(int64_t) size);
    bool keep = false;
    pthread_mutex_lock(&pool->lock);
    pool->lent--;
#ifndef S2N_ADDRESS_SANITIZER
    keep = pool->count < pool->keep;
    if (keep) {
        struct free_buf *buf = p;
        buf->next = pool->head;
        pool->head = buf;
        pool->count++;
    }
#endif
    pthread_mutex_unlock(&pool->lock);
    if (!keep) {
        unmap_buf(p, pool->size);
    }
}

SHIM_EXPORT int64_t s2nshim_mem_trim(void)
{
    int64_t kept = 0;
    for (size_t i = 0; i < N_POOLS; i++) {
        struct pool *pool = &pools[i];
        struct free_buf *drop = NULL;
        pthread_mutex_lock(&pool->lock);
        for (uint32_t n = pool->low; n > 0 && pool->head != NULL; n--) {
            struct free_buf *buf = pool->head;
            pool->head = buf->next;
            pool->count--;
            buf->next = drop;
            drop = buf;
        }
        pool->low = pool->count;
        kept += (int64_t) pool->count * pool->size;
        pthread_mutex_unlock(&pool->lock);
        while (drop != NULL) {
            struct free_buf *next = drop->next;
            unmap_buf(drop, pool->size);
            drop = next;
        }
    }
    return kept;
}

static int on_init(void)
{
    return S2N_SUCCESS;
}

static int on_malloc(void **ptr, uint32_t requested, uint32_t *allocated)
{
    if (requested > POOL_FROM && requested <= BUF_WRITE) {
        *ptr = shim_buf_get(requested, allocated);
        return *ptr == NULL ? S2N_FAILURE : S2N_SUCCESS;
    }
    *ptr = malloc(requested);
    if (*ptr == NULL) {
        return S2N_FAILURE;
    }
    *allocated = requested;
    account(requested, 1);
    return S2N_SUCCESS;
}

static int on_free(void *ptr, uint32_t size)
{
    /* A pool buffer is told by its size: malloc serves none that large but those above the largest. */
    if (size > POOL_FROM && size <= BUF_WRITE) {
        shim_buf_put(ptr, size);
        return S2N_SUCCESS;
    }
    account(-(int64_t) size, -1);
    free(ptr);
    return S2N_SUCCESS;
}

void shim_mem_install(void)
{
    (void) s2n_mem_set_callbacks(on_init, on_init, on_malloc, on_free);
}

SHIM_EXPORT s2nshim_mem_stats s2nshim_mem_get_stats(void)
{
    s2nshim_mem_stats s;
    s.s2n_bytes = __atomic_load_n(&shim_stats.s2n_bytes, __ATOMIC_RELAXED);
    s.s2n_blocks = __atomic_load_n(&shim_stats.s2n_blocks, __ATOMIC_RELAXED);
    s.pool_bytes = 0;
    for (size_t i = 0; i < N_POOLS; i++) {
        struct pool *pool = &pools[i];
        pthread_mutex_lock(&pool->lock);
        s.s2n_bytes += (int64_t) pool->lent * pool->size;
        s.s2n_blocks += pool->lent;
        s.pool_bytes += (int64_t) pool->count * pool->size;
        pthread_mutex_unlock(&pool->lock);
    }
    s.conns = __atomic_load_n(&shim_stats.conns, __ATOMIC_RELAXED);
    s.configs = __atomic_load_n(&shim_stats.configs, __ATOMIC_RELAXED);
    s.certs = __atomic_load_n(&shim_stats.certs, __ATOMIC_RELAXED);
    s.stores = __atomic_load_n(&shim_stats.stores, __ATOMIC_RELAXED);
    s.aeads = __atomic_load_n(&shim_stats.aeads, __ATOMIC_RELAXED);
    return s;
}

SHIM_EXPORT void s2nshim_free(void *p)
{
    free(p);
}
