/* A program that knows nothing of the library: becomes the program that its arguments name, as version managers do. */
#include <unistd.h>

int main(int argc, char** argv) { return argc > 1 ? execv(argv[1], argv + 1) : 0; }
