#pragma once
// The calling thread's transaction: the one place of it in thread-local storage.

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

}  // namespace stillpoint::spht
