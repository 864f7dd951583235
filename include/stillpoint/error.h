#ifndef STILLPOINT_ERROR_H
#define STILLPOINT_ERROR_H
/* Error codes of the whole project: the C API returns them, and C++ code inside
 * the library carries them in stillpoint::Failure. Values never change meaning. */

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sp_error {
    SP_OK = 0,
    SP_E_INVALID_ARGUMENT = 1,   /* an argument breaks a rule stated at the function */
    SP_E_NOT_OPEN = 2,           /* this process has no pool (it runs volatile) */
    SP_E_ALREADY_OPEN = 3,       /* this process already has a pool */
    SP_E_POOL_MISSING = 4,       /* no file of that name */
    SP_E_POOL_EXISTS = 5,        /* create refused: the file exists */
    SP_E_NOT_A_POOL = 6,         /* the file has no pool magic */
    SP_E_POOL_TRUNCATED = 7,     /* the file is shorter than its superblock says */
    SP_E_POOL_VERSION = 8,       /* written by a newer, or an unsupported, format version */
    SP_E_POOL_ENGINE = 9,        /* the pool belongs to another engine */
    SP_E_POOL_CORRUPT = 10,      /* a checksum or an invariant does not hold */
    SP_E_POOL_LOCKED = 11,       /* another process has the pool open */
    SP_E_POOL_READ_ONLY = 12,    /* no permission to write, frozen after an I/O error, or damaged=read-only */
    SP_E_WINDOW_TAKEN = 13,      /* the pool's address range is in use in this process */
    SP_E_NO_SPACE = 14,          /* the disk is full */
    SP_E_IO = 15,                /* the system refused a read, write or sync; see errno */
    SP_E_NO_MEMORY = 16,         /* no DRAM */
    SP_E_POOL_FULL = 17,         /* the pool has reached its stated maximum size */
    SP_E_UNSUPPORTED = 18,       /* this CPU, kernel or file system lacks what was forced */
    SP_E_HANDLE_MISSING = 19,    /* no durable object of that name */
    SP_E_HANDLE_SIZE = 20,       /* the named object has another size */
    SP_E_DIRECTORY_FULL = 21,    /* no free entry in the handle directory */
    SP_E_INSIDE_FASE = 22,       /* the call would wait for the caller's own FASE */
    SP_E_TIMED_OUT = 23,         /* the deadline passed first */
    SP_E_DETACHED = 24,          /* a child made by fork has no pool */
    SP_E_GLOBALS_CHANGED = 25,   /* SP_PERSISTENT variables differ from those in the pool */
    SP_E_PROGRAM_REFUSED = 26,   /* static, set-uid or not an executable: cannot be run durably */
    SP_E_NOT_DURABLE_ADDRESS = 27, /* the pointer is not inside durable memory */
    SP_E_OBJECT_TYPE = 28,       /* the object in the pool has another type, or a method of it was changed */
    SP_E_OBJECT_REFUSED = 29,    /* the object may not be used until the pool is opened again: an operation failed on it */
    SP_E_NOT_DETERMINISTIC = 30, /* replaying an operation gave a different state */
    SP_E_CONFLICT = 31,          /* another transaction was in the way: everything is rolled back; run it again */
    SP_E_TRANSACTION_TOO_LARGE = 32, /* the transaction writes more than the pool's log can hold */
    SP_E_NO_TRANSACTION = 33,    /* the calling thread has not begun the transaction, or has ended it */
    SP_E_ABORTED = 34,           /* the transaction was rolled back because the program asked for it */
    SP_E_LAYOUT = 35,            /* the pool's data have another layout than the program (SP_LAYOUT), and no step leads to it */
    SP_E_DIVERGED = 36           /* a pool and its replica (option replica) each have what the other lacks */
} sp_error;

/* One sentence, without a newline, that says what `code` means. Never NULL; unknown codes
 * get a sentence of their own. The text is static: any thread, any time. */
const char* sp_error_string(int code);

#ifdef __cplusplus
}
#endif
#endif
