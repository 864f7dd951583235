#include "program_arguments.h"

#include <stdlib.h>
#include <string.h>

struct arguments arguments = {.end = "return"};

bool parse_arguments(int argc, char** argv)
{
    for (int i = 1; i < argc; ++i) {
        const char* const word = argv[i];
        if (strcmp(word, "--verify") == 0) {
            arguments.verify_only = true;
        } else if (strcmp(word, "--complete") == 0) {
            arguments.is_complete = true;
        } else if (strcmp(word, "--fase") == 0) {
            arguments.fase = true;
        } else if (word[0] != '-') {
            arguments.notes = word;
        } else if (i + 1 == argc) {
            return false;
        } else if (strcmp(word, "--source") == 0) {
            arguments.source = argv[++i];
        } else if (strcmp(word, "--open") == 0 && i + 2 < argc) {
            arguments.pool = argv[++i];
            arguments.options = argv[++i];
        } else if (strcmp(word, "--run-ms") == 0) {
            arguments.run_ms = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(word, "--expect") == 0) {
            arguments.expect = argv[++i];
        } else if (strcmp(word, "--end") == 0) {
            arguments.end = argv[++i];
        } else if (strcmp(word, "--rounds") == 0) {
            arguments.rounds = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(word, "--random") == 0) {
            arguments.seed = strtoull(argv[++i], NULL, 10);
        } else {
            return false;
        }
    }
    return arguments.notes != NULL && arguments.source != NULL;
}
