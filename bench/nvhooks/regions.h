#ifndef BENCH_NVHOOKS_REGIONS_H
#define BENCH_NVHOOKS_REGIONS_H
/* Pages of durable memory, compiled for a layer (page_regions.c), and their driver (regions_worker.cpp): an operation overwrites a region
 * of a page, as in the microbenchmark of [NVthreads §3, Figure 3], or all of it, as PageRank does. A lock for each page makes its
 * overwriting one operation. */

#include <stddef.h>
#include <stdint.h>

enum { regions_page_bytes = 4096 };

#ifdef __cplusplus
extern "C" {
#endif

/* Opens the pool at `path`, made with `size_bytes` where there is none. 0 or an errno. */
int regions_open(const char* path, size_t size_bytes, size_t pages);
void regions_close(void);
/* Every byte of [begin, + length) of the page becomes `content`. 0 or an errno. Any thread. */
int regions_write(size_t page, size_t begin, size_t length, int content);
/* The page becomes what is at `bytes`. 0 or an errno. Any thread. */
int regions_put(size_t page, const void* bytes);
/* Pages lie one after the other. */
const void* regions_bytes(void);
/* How many pages do not hold what was written to them last. No thread is writing. */
size_t regions_torn(void);
/* Why the last regions_open failed. */
const char* regions_error(void);

#ifdef __cplusplus
}
#endif
#endif
