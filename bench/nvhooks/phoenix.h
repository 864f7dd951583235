#ifndef BENCH_NVHOOKS_PHOENIX_H
#define BENCH_NVHOOKS_PHOENIX_H
/* Two programs after Phoenix's histogram and string match: code that never touches durable memory, and that an instrumenting
 * compiler cannot know to. Everything that they write is memory from malloc, reached through pointers. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { phoenix_counts = 3 * 256, phoenix_word_bytes = 64 };

/* Counts the values of each channel of pixels of three bytes: counts[channel * 256 + value]. */
void phoenix_histogram(const unsigned char* pixels, size_t bytes, uint64_t* counts);

/* How many of the words in `text` (a newline after each) encipher to one of four known ones. `scratch`: phoenix_word_bytes. */
uint64_t phoenix_string_match(const char* text, size_t bytes, char* scratch);

#ifdef __cplusplus
}
#endif
#endif
