#ifndef BENCH_BREEZE_PORTS_PRONTO_STORE_H
#define BENCH_BREEZE_PORTS_PRONTO_STORE_H
/* The volatile store under other names, with memory of pronto: what lies between it and pronto_store.cpp. */

#include <stdlib.h>

#include <stillpoint/stillpoint.h>

#include "store.h"

#ifdef __cplusplus
extern "C" {
#endif

int volatile_open(const char* path, size_t size_bytes);
int volatile_put(uint64_t key, const void* value);
bool volatile_remove(uint64_t key);

/* The address of the structure's first block, and the way back after a restart. */
void* kept_structure(void);
void find_kept_structure(void* kept);

#ifdef __cplusplus
}
#else
#define store_open volatile_open
#define store_close volatile_close
#define store_put volatile_put
#define store_remove volatile_remove
#define store_name volatile_name
#define store_error volatile_error
#define malloc sp_malloc
#define calloc sp_calloc
#define free sp_free
#endif

#endif
