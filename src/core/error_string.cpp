#include "stillpoint/error.h"

extern "C" __attribute__((visibility("default"))) const char* sp_error_string(int code)
{
    switch (code) {
    case SP_OK: return "success";
    case SP_E_INVALID_ARGUMENT: return "an argument is invalid";
    case SP_E_NOT_OPEN: return "no pool is open: the program runs volatile";
    case SP_E_ALREADY_OPEN: return "this process has a pool open already";
    case SP_E_POOL_MISSING: return "the pool file does not exist";
    case SP_E_POOL_EXISTS: return "the pool file exists already";
    case SP_E_NOT_A_POOL: return "the file is not a Stillpoint pool";
    case SP_E_POOL_TRUNCATED: return "the pool file is shorter than its superblock says";
    case SP_E_POOL_VERSION: return "the pool was written in a format version that this library cannot read";
    case SP_E_POOL_ENGINE: return "the pool belongs to another engine";
    case SP_E_POOL_CORRUPT: return "the pool is damaged: a checksum or an invariant does not hold";
    case SP_E_POOL_LOCKED: return "another process has the pool open";
    case SP_E_POOL_READ_ONLY: return "the pool cannot be written";
    case SP_E_WINDOW_TAKEN: return "the pool's addresses are in use in this process";
    case SP_E_NO_SPACE: return "no space left on the disk";
    case SP_E_IO: return "the system refused a read, write or sync";
    case SP_E_NO_MEMORY: return "out of memory";
    case SP_E_POOL_FULL: return "the pool has reached its maximum size";
    case SP_E_UNSUPPORTED: return "this CPU, kernel or file system does not support the request";
    case SP_E_HANDLE_MISSING: return "no durable object has that name";
    case SP_E_HANDLE_SIZE: return "the named object has another size";
    case SP_E_DIRECTORY_FULL: return "the directory of handles is full";
    case SP_E_INSIDE_FASE: return "the call would wait for the caller's own failure-atomic section";
    case SP_E_TIMED_OUT: return "the deadline passed first";
    case SP_E_DETACHED: return "a child made by fork has no pool";
    case SP_E_GLOBALS_CHANGED: return "the program's durable globals differ from those in the pool";
    case SP_E_PROGRAM_REFUSED: return "the program cannot be run durably";
    case SP_E_NOT_DURABLE_ADDRESS: return "the address is not in durable memory";
    case SP_E_OBJECT_TYPE: return "the object in the pool has another type, or a method of it was changed";
    case SP_E_OBJECT_REFUSED: return "an operation failed on the object: open the pool again to use it";
    case SP_E_NOT_DETERMINISTIC: return "replaying an operation gave a different state";
    case SP_E_CONFLICT: return "another transaction was in the way: run this one again";
    case SP_E_TRANSACTION_TOO_LARGE: return "the transaction writes more than the pool's log can hold";
    case SP_E_NO_TRANSACTION: return "the calling thread is not inside that transaction";
    case SP_E_ABORTED: return "the program has rolled the transaction back";
    case SP_E_LAYOUT: return "the pool's data have another layout than the program";
    case SP_E_DIVERGED: return "the pool and its replica have diverged";
    default: return "unknown error code";
    }
}
