#pragma once
// The calling thread's transaction: the one place of it in thread-local storage.

#include <atomic>
#include <cstdint>

namespace stillpoint::spht {

class Transaction;

struct OwnTransaction {
    std::uint64_t memory_serial = 0;  ///< of the TransactionalMemory that the transaction belongs to; 0: none
    Transaction* transaction = nullptr;
    std::uint32_t number = 0;
};
/// initial-exec: one instruction, and never a call that may allocate.
extern constinit thread_local OwnTransaction own_transaction [[gnu::tls_model("initial-exec"), gnu::visibility("hidden")]];

/// Serial of the TransactionalMemory in which transactions may begin; 0: there is none.
extern constinit std::atomic<std::uint64_t> serial_in_use [[gnu::visibility("hidden")]];
/// The calling thread's transaction in it; nullptr: it has none yet.
[[nodiscard]] inline Transaction* own_in_use() noexcept
{
    const OwnTransaction& own = own_transaction;
    return own.memory_serial == serial_in_use.load(std::memory_order_acquire) ? own.transaction : nullptr;
}

}  // namespace stillpoint::spht
