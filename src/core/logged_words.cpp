#include "core/logged_words.hpp"

#include <cstring>

#include "core/canary.hpp"
#include "core/store_marks.hpp"

namespace stillpoint::logged {

constinit std::atomic<std::uint64_t> durable_epoch{0};
constinit std::atomic<std::uint64_t> running_word{1};

namespace {

/// First updates of words by several threads at once are rare: once for each word and epoch.
struct alignas(64) Lock {
    std::atomic<bool> taken{false};
};
constexpr std::size_t lock_count = 64;
constinit std::array<Lock, lock_count> locks{};

}  // namespace

void keep_backup(Word& word) noexcept
{
    Lock& lock = locks[reinterpret_cast<std::uintptr_t>(&word) / sizeof(Word) % lock_count];
    while (lock.taken.exchange(true, std::memory_order_acquire)) {
        while (lock.taken.load(std::memory_order_relaxed)) {
        }
    }
    const std::uint64_t epoch = running() >> 1;
    const std::uint64_t last = word.epoch_word >> 1;
    if (last != epoch) {
        word.backup[is_removed(Canary::second_backup) ? (last + 1 == epoch ? last & 1 : epoch & 1) : epoch & 1] = load(word);
        sync::AtomicRef<std::uint64_t>(word.epoch_word).store((epoch << 1) | std::uint64_t{last + 1 == epoch}, std::memory_order_release);
        if (!is_removed(Canary::note_first_update)) {
            note_store(&word, sizeof word);
        }
    }
    lock.taken.store(false, std::memory_order_release);
}

bool must_be_rolled_back(const std::byte* variable, unsigned kind, std::uint64_t durable) noexcept
{
    std::uint64_t word = 0;
    std::memcpy(&word, variable + total_bytes(kind) - sizeof word, sizeof word);
    return word >> 1 > durable && !is_removed(Canary::rollback);
}

bool roll_back(std::byte* variable, unsigned kind, std::uint64_t durable) noexcept
{
    std::byte* const word_at = variable + total_bytes(kind) - sizeof(std::uint64_t);
    std::uint64_t word = 0;
    std::memcpy(&word, word_at, sizeof word);
    std::uint64_t epoch = word >> 1;
    if (epoch <= durable || is_removed(Canary::rollback)) {
        return false;
    }
    if ((word & 1) != 0 && epoch - 1 > durable) {
        --epoch;  // Both epochs that were not durable have written it: the older backup is the one.
    }
    const std::size_t size = value_bytes(kind);
    std::memcpy(variable, variable + (1 + (epoch & 1)) * size, size);
    std::atomic_thread_fence(std::memory_order_release);
    const std::uint64_t settled = durable << 1;
    sync::AtomicRef<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(word_at)).store(settled, std::memory_order_relaxed);
    return true;
}

}  // namespace stillpoint::logged
