#pragma once
// Messages to the user: the ABI has no way to return an error.

namespace stillpoint::itm {

enum class Message {
    other_engine,      ///< the pool is of another engine
    plain_stores,  ///< stores of code that the compiler has not instrumented cannot be found
    not_durable,       ///< a commit is not durable
};

/// To stderr, once in a process; `reason`: the text that the C API gives, or nullptr.
void report_once(Message message, const char* reason) noexcept;
/// A commit has not become durable: `code` is an sp_error.
void note_failure(int code) noexcept;
/// The first failure of a commit; SP_OK: there was none.
[[nodiscard]] int first_failure() noexcept;
[[noreturn]] void end_process(const char* reason) noexcept;

}  // namespace stillpoint::itm
