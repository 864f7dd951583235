/* An object that was not instrumented: it stores into durable memory and marks nothing. */
#include <string.h>

#include "unmarked_writer.h"

__attribute__((noinline)) static void store_deep_inside(long* value)
{
    *value += 1;
    __asm__ volatile("" : : "r"(value) : "memory");
}

__attribute__((noinline)) void scribble(long* value) { store_deep_inside(value); }

__attribute__((noinline)) void scribble_through_libc(void* to, const void* from, unsigned long size_bytes)
{
    memmove(to, from, size_bytes);
    __asm__ volatile("" : : "r"(to) : "memory");
}
