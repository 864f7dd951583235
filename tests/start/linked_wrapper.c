/* A launcher that is linked with the library, as one of the same project may be, uses no durable memory, and becomes the
 * program that its arguments name. With "fork" first, a child looks on and ends before that. */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stillpoint/stillpoint.h"

int main(int argc, char** argv)
{
    int first = 1;
    if (argc > 1 && strcmp(argv[1], "fork") == 0) {
        first = 2;
        if (fork() == 0) {
            _exit(sp_version() == NULL);
        }
        wait(NULL);
    }
    usleep(150000); /* longer than an interval */
    return argc > first ? execv(argv[first], argv + first) : sp_version() == NULL;
}
