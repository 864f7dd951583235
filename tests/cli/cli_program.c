/* A program without any library of ours: what `run` must refuse when it is linked statically. */
#include <stdio.h>

int main(void)
{
    puts("ran");
    return 0;
}
