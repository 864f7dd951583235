/* Preloaded into a server: takes the address that TAKEN_ADDRESS names before the server can map its pool there. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

__attribute__((constructor)) static void take(void)
{
    const char* const text = getenv("TAKEN_ADDRESS");
    if (text != NULL && mmap((void*)(uintptr_t)strtoull(text, NULL, 10), 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
                             -1, 0) == MAP_FAILED) {
        perror("the address of the pool cannot be taken");
        abort();
    }
}
