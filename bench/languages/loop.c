/* loop SECONDS PER_SECTION: adds one to numbers of a durable array, and prints the additions a second. */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "stillpoint/stillpoint.h"

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char** argv)
{
    const double seconds = argc > 1 ? atof(argv[1]) : 1;
    const long per_section = argc > 2 ? atol(argv[2]) : 1;
    volatile long* const numbers = sp_root("numbers", 1000 * sizeof(long));
    if (numbers == NULL) {
        return fprintf(stderr, "%s\n", sp_last_error()), 1;
    }
    const double begin = now_s();
    unsigned long done = 0;
    while (now_s() - begin < seconds) {
        for (int i = 0; i < 100; ++i) {
            sp_fase_begin();
            for (long j = 0; j < per_section; ++j) {
                numbers[done++ % 1000]++;
            }
            sp_fase_end();
        }
    }
    printf("%.0f\n", (double)done / (now_s() - begin));
    return 0;
}
