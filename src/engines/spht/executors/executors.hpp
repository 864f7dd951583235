#pragma once
// The executors that a pool's transactions can have. All of a pool have the same.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/result.hpp"
#include "core/units.hpp"
#include "engines/spht/serial_gate.hpp"
#include "logs/commit_order.hpp"

namespace stillpoint::spht {

class Transaction;
class TransactionalMemory;

enum class Executor : std::uint8_t {
    software,   ///< Tl2
    norec,
    tinystm,    ///< EncounterTime
    hardware,   ///< Hardware, on the CPU's transactions
    simulated,  ///< Hardware, on a simulated machine
};

/// By the word of the option. Errors: unsupported.
[[nodiscard]] Result<Executor> choose_executor(std::string_view word);

/// Room for a transaction of any executor.
inline constexpr std::size_t transaction_bytes_max = 8 * kib;

struct TransactionParts {
    TransactionalMemory& memory;
    logs::CommitOrder::Slot& slot;
    SerialGate::Place& place;
    std::uint64_t number;  ///< of no other thread of the pool at this time; from 1 on
};
/// At `memory`, which has transaction_bytes_max bytes.
[[nodiscard]] Transaction* make_transaction(Executor executor, void* memory, const TransactionParts& parts) noexcept;

}  // namespace stillpoint::spht
