#ifndef BENCH_NVHOOKS_STORE_H
#define BENCH_NVHOOKS_STORE_H
/* The interface of a durable map to the driver (ycsb_worker.cpp) and the tests, from 64-bit keys to values of 1024 bytes.
 * Implemented by hash_map.c and btree.c, once for every layer, and by hash_map_pmdk.c and btree_pmdk.c, annotated by
 * hand for libpmemobj. All but store_open and store_close may be called by any thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_VALUE_BYTES 1024

#ifdef __cplusplus
extern "C" {
#endif

/* Opens the pool at `path`, made with `size_bytes` where there is none, and finds the map in it. 0 or an errno. */
int store_open(const char* path, size_t size_bytes);
void store_close(void);

/* Inserts the key, or overwrites its value. 0 or an errno. */
int store_put(uint64_t key, const void* value);
bool store_get(uint64_t key, void* value);
/* False: there was no such key. */
bool store_remove(uint64_t key);

/* Walks everything; no other thread may be writing. The number of keys, or -1 where the structure is not sound. */
long store_check(void);

/* The name of the compiled program: "hash_map pmdk". */
const char* store_name(void);
/* Why the last store_open failed. */
const char* store_error(void);

#ifdef __cplusplus
}
#endif
#endif
