/* Tokyo Cabinet's ordered database on memory (TCNDB), kept in a Stillpoint pool. The library is Debian's, unmodified: tcdurable.c gives the
 * program functions malloc() to free(), which the library calls too, and which allocate from the pool between tcdurable_begin() and
 * tcdurable_end().
 *
 * Compile tcdurable.c into the program, and link with stillpoint and tokyocabinet. The pool is open before the first call: `stillpoint
 * run`, or sp_open(). Every call of a TCNDB holds the database's own mutex, so each is one section: after a crash it is there as a whole or
 * not at all.
 *
 *     TCNDB* const database = tcdurable_open("prices");
 *     tcdurable_begin();
 *     tcndbput2(database, "tea", "3.50");
 *     tcdurable_end();
 */
#ifndef TCDURABLE_H
#define TCDURABLE_H

#include <tcutil.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Memory that this thread allocates from here on lies in the pool: before a call that stores in a database. What a look-up returns is the
 *  caller's, and is allocated outside. */
void tcdurable_begin(void);
void tcdurable_end(void);

/** The database of that name in the pool, found again or made. NULL: sp_last_error() says why: no pool is open, or it is full; errno
 *  ENAMETOOLONG: the name has more than 114 bytes. From one thread, before others use the database, which tcndbdel() does not close. */
TCNDB* tcdurable_open(const char* name);

#ifdef __cplusplus
}
#endif

#endif
