#pragma once
// The words of the transactional memory ABI [Intel Transactional Memory Compiler and Runtime ABI 1.1, §5], as GCC's -fgnu-tm emits them.

#include <cstddef>
#include <cstdint>

/// The functions of the ABI, and no others, are visible outside of the library.
#define STILLPOINT_ITM_API extern "C" __attribute__((visibility("default")))

namespace stillpoint::itm {

/// The properties of a transaction that the compiler knows.
enum Property : std::uint32_t {
    has_instrumented_code = 0x0001,
    has_uninstrumented_code = 0x0002,
    has_no_abort = 0x0008,
    goes_irrevocable = 0x0040,  ///< on every path
    is_read_only = 0x4000,
    returns_errors = 0x80000000,  ///< not of the ABI: the beginning returns once more where the transaction cannot be committed
};

/// The ways in which the program goes on after _ITM_beginTransaction, which returns once for each attempt, and once more where the
/// transaction is cancelled.
enum Action : std::uint32_t {
    run_instrumented_code = 0x01,
    run_uninstrumented_code = 0x02,
    save_live_variables = 0x04,
    restore_live_variables = 0x08,
    skip_transaction = 0x10,
};

/// Why _ITM_abortTransaction is called.
enum AbortReason : std::uint32_t {
    user_abort = 0x01,
    user_retry = 0x02,
    outer_abort = 0x10,  ///< with user_abort: of the outermost transaction
};

/// The answer of _ITM_inTransaction.
enum HowExecuting : std::uint32_t {
    outside = 0,
    retryable = 1,
    irrevocable = 2,
};

/// Version 0.90, which GCC names.
constexpr int abi_version = 90;

/// The id of no transaction: ids of transactions are larger.
constexpr std::uint32_t no_transaction_id = 1;

}  // namespace stillpoint::itm
