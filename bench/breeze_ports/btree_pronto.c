/* The tree of btree.c in memory that pronto keeps; pronto_store.cpp makes its functions the operations of a durable object. */

#include "pronto_store.h"

#include "btree.c"

void* kept_structure(void) { return forest; }
void find_kept_structure(void* kept)
{
    make_locks();
    forest = kept;
}
