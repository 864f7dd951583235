#include "engines/spht/executors/norec.hpp"

#include "engines/spht/executors/version_locks.hpp"
#include "engines/spht/transactional_memory.hpp"

namespace stillpoint::spht {

Result<void> Norec::reserve()
{
    constexpr std::uint64_t reads_max = std::uint64_t{1} << 26;
    if (auto done = reads_.reserve(reads_max, "what a transaction reads"); !done) {
        return done;
    }
    return Transaction::reserve();
}

void Norec::enter() noexcept
{
    enter_gate();
    read_count_ = 0;
    static_cast<void>(reads_hold());
}

/// Moves the transaction to the present sequence, if all that it has read is still so.
bool Norec::reads_hold() noexcept
{
    for (unsigned turns = 0;;) {
        const std::uint64_t now = clock_.sequence.load(std::memory_order_acquire);
        if (now % 2 != 0) {
            logs::wait_turn(turns);
            continue;
        }
        for (std::uint64_t i = 0; i < read_count_; ++i) {
            if (__atomic_load_n(reads_[i].word, __ATOMIC_RELAXED) != reads_[i].value) {
                return false;
            }
        }
        const Timestamp newest_durable = clock_.newest_durable.load(std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_acquire);
        if (clock_.sequence.load(std::memory_order_relaxed) == now) {
            snapshot_ = now;
            newest_durable_ = newest_durable;
            return true;
        }
    }
}

/// The usual case alone, without a call: the word was not written, and no transaction has committed since the last look.
int Norec::read(const std::uint64_t* word, std::uint64_t& value) noexcept
{
    if (!doomed_ && !may_have_written(word)) [[likely]] {
        const std::uint64_t found = __atomic_load_n(word, __ATOMIC_RELAXED);
        std::atomic_thread_fence(std::memory_order_acquire);
        if (clock_.sequence.load(std::memory_order_relaxed) == snapshot_ && read_count_ < reads_.capacity()) [[likely]] {
            reads_[read_count_++] = {word, found};
            value = found;
            return SP_OK;
        }
    }
    return read_with_care(word, value) ? SP_OK : SP_E_CONFLICT;
}

bool Norec::read_with_care(const std::uint64_t* word, std::uint64_t& value) noexcept
{
    value = 0;
    if (doomed_) {
        return false;
    }
    const WriteSet::Entry* const written = find_written(word);
    if (written != nullptr && written->mask == ~std::uint64_t{0}) {
        value = written->value;
        return true;
    }
    std::uint64_t found = __atomic_load_n(word, __ATOMIC_RELAXED);
    std::atomic_thread_fence(std::memory_order_acquire);
    while (clock_.sequence.load(std::memory_order_relaxed) != snapshot_) [[unlikely]] {
        if (!reads_hold()) {
            return doom();
        }
        found = __atomic_load_n(word, __ATOMIC_RELAXED);
        std::atomic_thread_fence(std::memory_order_acquire);
    }
    if (read_count_ == reads_.capacity()) [[unlikely]] {
        too_large_ = true;
        return doom();
    }
    reads_[read_count_++] = {word, found};
    value = written == nullptr ? found : written->over(found);
    return true;
}

Timestamp Norec::acquire(bool is_durable) noexcept
{
    std::uint64_t seen = snapshot_;
    while (!clock_.sequence.compare_exchange_strong(seen, snapshot_ + 1, std::memory_order_acq_rel, std::memory_order_relaxed)) {
        if (!reads_hold()) {
            return 0;
        }
        seen = snapshot_;
    }
    holds_sequence_ = true;
    for (std::uint64_t i = 0; i < freed_count_; ++i) {
        if (memory_.heap()->find_block(freed_[i]).begin != freed_[i]) {  // Another transaction has freed it.
            return 0;
        }
    }
    return choose_timestamp(is_durable);
}

Timestamp Norec::choose_timestamp(bool is_durable) const noexcept
{
    return timestamp_after(clock_.newest.load(std::memory_order_relaxed), is_durable);
}

void Norec::publish(Timestamp timestamp) noexcept
{
    write_back();
    clock_.newest.store(timestamp, std::memory_order_relaxed);
    if (VersionLocks::is_awaited(timestamp)) {
        clock_.newest_durable.store(timestamp, std::memory_order_relaxed);
    }
    clock_.sequence.store(snapshot_ + 2, std::memory_order_release);
    holds_sequence_ = false;
}

void Norec::release() noexcept
{
    if (holds_sequence_) {
        clock_.sequence.store(snapshot_, std::memory_order_release);
        holds_sequence_ = false;
    }
}

}  // namespace stillpoint::spht
