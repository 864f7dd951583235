/* Preloaded: takes an address of the window of durable memory, so that no pool can be mapped. */
#define _GNU_SOURCE
#include <sys/mman.h>

__attribute__((constructor)) static void take_an_address(void)
{
    mmap((void*)(0x48ul << 40), 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}
