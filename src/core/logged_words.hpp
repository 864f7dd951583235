#pragma once
// Logged variables: a value, the values that it had when the last two epochs that wrote it began, and the epoch that wrote it last, all in
// one cache line, so that recovery can roll it back without any order of writes but that of the line's own stores:
//     value | value when an even epoch began | value when an odd epoch began | spare | epoch word (8 bytes)
// The heap keeps its durable tables in such words where the engine asks for it (TableFormat::logged), and knows those of the program by the
// layouts of their types; recovery takes every kind of them back. An engine that keeps memory so tells here which epoch runs.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/sync.hpp"

namespace stillpoint::logged {

/// Kinds are the powers of two that a value has bytes: 1 to 16. Their numbers, and what total_bytes() says, lie in pool files.
inline constexpr unsigned kinds = 5;

constexpr std::size_t value_bytes(unsigned kind) noexcept { return std::size_t{1} << kind; }
/// Size of the whole variable, and its alignment.
constexpr std::size_t total_bytes(unsigned kind) noexcept { return kind <= 1 ? 16 : kind <= 3 ? 32 : 64; }

/// A logged variable of 8 bytes: the library's own.
struct alignas(32) Word {
    std::uint64_t value;
    std::uint64_t backup[2];  ///< the value when the last even epoch that wrote it began, and the last odd one
    std::uint64_t epoch_word;
};
inline constexpr unsigned kind_of_word = 3;
static_assert(sizeof(Word) == total_bytes(kind_of_word) && sizeof Word::value == value_bytes(kind_of_word));

/// The newest durable epoch, for callers that must not reuse what an older state still needs.
[[gnu::visibility("hidden")]] extern constinit std::atomic<std::uint64_t> durable_epoch;

/// Twice the running epoch, plus 1, as it compares with epoch words; 1: no such engine runs. Changes only while no thread is inside a FASE.
[[gnu::visibility("hidden")]] extern constinit std::atomic<std::uint64_t> running_word;
[[nodiscard]] inline std::uint64_t running() noexcept { return running_word.load(std::memory_order_relaxed); }

/// Keeps the value with which the epoch began, unless that is done. Any thread at any time: several may touch one word.
[[gnu::cold]] void keep_backup(Word& word) noexcept;

inline void touch(Word& word) noexcept
{
    // Acquire: a thread that sees this epoch in the word may store the value, and the backup is then complete.
    if ((sync::AtomicRef<std::uint64_t>(word.epoch_word).load(std::memory_order_acquire) | 1) != running()) [[unlikely]] {
        keep_backup(word);
    }
}

/// The caller alone writes the word.
inline void store(Word& word, std::uint64_t value) noexcept
{
    touch(word);
    sync::AtomicRef<std::uint64_t>(word.value).store(value, std::memory_order_relaxed);
}
/// Others may set and clear other bits at the same time.
inline void set_bits(Word& word, std::uint64_t bits) noexcept
{
    touch(word);
    sync::AtomicRef<std::uint64_t>(word.value).fetch_or(bits, std::memory_order_relaxed);
}
inline void clear_bits(Word& word, std::uint64_t bits) noexcept
{
    touch(word);
    sync::AtomicRef<std::uint64_t>(word.value).fetch_and(~bits, std::memory_order_relaxed);
}
[[nodiscard]] inline std::uint64_t load(const Word& word) noexcept
{
    return sync::AtomicRef<std::uint64_t>(const_cast<Word&>(word).value).load(std::memory_order_relaxed);
}
/// The word's value when the running epoch began; only after touch() in this epoch.
[[nodiscard]] inline std::uint64_t at_epoch_start(const Word& word) noexcept { return word.backup[(running() >> 1) & 1]; }

/// Recovery: takes the variable of `kind` at `variable` back to the end of epoch `durable`. True if it was written later.
/// Re-runnable: a crash in the middle, with the line in any state that its stores had, leaves the same to be rolled back.
bool roll_back(std::byte* variable, unsigned kind, std::uint64_t durable) noexcept;
/// The value that roll_back() would return; nothing is written.
[[nodiscard]] bool must_be_rolled_back(const std::byte* variable, unsigned kind, std::uint64_t durable) noexcept;

}  // namespace stillpoint::logged
