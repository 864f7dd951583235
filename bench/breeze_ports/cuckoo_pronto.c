/* The table of cuckoo.c in memory that pronto keeps; pronto_store.cpp makes its functions the operations of a durable object. */

#include "pronto_store.h"

#include "cuckoo.c"

void* kept_structure(void) { return map; }
void find_kept_structure(void* kept)
{
    make_locks();
    map = kept;
}
