#include "phoenix.h"

#include <string.h>

void phoenix_histogram(const unsigned char* pixels, size_t bytes, uint64_t* counts)
{
    for (size_t at = 0; at + 2 < bytes; at += 3) {
        counts[pixels[at]] += 1;
        counts[256 + pixels[at + 1]] += 1;
        counts[512 + pixels[at + 2]] += 1;
    }
}

static void encipher(const char* word, size_t length, char* enciphered)
{
    for (size_t i = 0; i < length; ++i) {
        enciphered[i] = (char)(word[i] + 5);
    }
    enciphered[length] = '\0';
}

uint64_t phoenix_string_match(const char* text, size_t bytes, char* scratch)
{
    static const char* const known[] = {"mjqqt", "|twqi", "ijjfyjw", "xynqqutnsy"};
    uint64_t found = 0;
    size_t begin = 0;
    for (size_t at = 0; at < bytes; ++at) {
        if (text[at] != '\n') {
            continue;
        }
        const size_t length = at - begin;
        if (length > 0 && length < phoenix_word_bytes) {
            encipher(text + begin, length, scratch);
            for (size_t k = 0; k < sizeof known / sizeof *known; ++k) {
                found += strcmp(scratch, known[k]) == 0;
            }
        }
        begin = at + 1;
    }
    return found;
}
