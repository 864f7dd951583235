#pragma once
// The pool of libpmemobj, and the transaction of each thread: what does not depend on a variable's type.
//
// Pointers are native, so the pool is always mapped where it was made: PMEM_MMAP_HINT, which libpmemobj reads when it is
// loaded, names the place (bench/driver/engines.py sets it), and open() verifies it.
// Functions end the program with a message where libpmemobj fails.

#include <cstddef>
#include <libpmemobj.h>

#include "../worker/shape.hpp"

namespace bench {

class PmemobjPool {
public:
    /// Creates the pool in shape.folder, or opens and recovers it.
    static void open(const Shape& shape);
    /// For tests, which open a pool several times. No transaction is running.
    static void close();

    /// A commit has returned only when its operation is durable, so there is nothing to wait for; but for one case. Where ranges
    /// are made durable by msync, a new pool is filled by a process without it, which ends here: it syncs the whole file and
    /// begins the program again, on the pool that is there now. The worker's first settle() is after its first operation.
    static void settle();

    /// At least 16-byte aligned. Outside an operation: a reservation, which this thread's next operation publishes, so
    /// that a crash before it leaks nothing.
    static void* allocate(std::size_t size_bytes);
    /// Up to 4096. libpmemobj's own classes align to 16; so a block that is large enough is taken, and the words before the
    /// aligned place say how far it lies from the block's beginning.
    static void* allocate_aligned(std::size_t alignment_bytes, std::size_t size_bytes);
    static void deallocate(void* block);
    /// An entry of the directory in the pool's root object; its memory is aligned to 64 bytes.
    static void* root(const char* name, std::size_t size_bytes);

    /// Snapshots the bytes into the undo log of the calling thread's transaction, which begins here if this is the
    /// operation's first write. Bytes that were announced before, or that the transaction allocated, are not copied again.
    static void announce(const void* first, std::size_t size_bytes)
    {
        if (!thread_.in_transaction) {
            begin();
        }
        if (pmemobj_tx_add_range_direct(first, size_bytes) != 0) {
            failed("cannot log a range");
        }
    }

    static void begin_operation()
    {
        if (thread_.in_operation) {
            nested();
        }
        thread_.in_operation = true;
    }
    /// All stores of the operation up to here are durable when this returns.
    static void commit()
    {
        if (thread_.in_transaction) {
            commit_transaction();
        }
    }
    static void end_operation()
    {
        commit();
        thread_.in_operation = false;
    }

    static void lock(PMEMmutex& mutex) { pmemobj_mutex_lock(pool_, &mutex); }
    static void unlock(PMEMmutex& mutex) { pmemobj_mutex_unlock(pool_, &mutex); }
    static void wait(PMEMcond& condition, PMEMmutex& mutex) { pmemobj_cond_wait(pool_, &condition, &mutex); }
    static void notify_all(PMEMcond& condition) { pmemobj_cond_broadcast(pool_, &condition); }

private:
    struct Thread {
        bool in_operation;
        bool in_transaction;
        bool has_reservations;
    };

    static void begin();
    static void commit_transaction();
    static void publish_reservations();
    static PMEMoid make_object(std::size_t size_bytes);
    [[noreturn]] static void failed(const char* what);
    [[noreturn]] static void nested();

    inline static PMEMobjpool* pool_ = nullptr;
    inline static thread_local constinit Thread thread_{};
};

}  // namespace bench
