#include "media/replica/replica_stream.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "os/clock.hpp"

namespace stillpoint {

namespace {

/// Entries beside those that the smallest writes need.
constexpr std::uint64_t spare_entries = 4096;
/// An entry has at most so much, so that the taker begins before a large batch has ended.
constexpr std::uint64_t entry_bytes_max = 256 * kib;
/// The taker is woken after so much of a batch.
constexpr std::uint64_t wake_bytes = mib;

}  // namespace

Result<void> ReplicaStream::reserve(std::uint64_t capacity_bytes)
{
    capacity_ = round_up(std::max(capacity_bytes, 4 * entry_bytes_max), page_bytes);
    if (auto reserved = memory_.reserve(capacity_, "what the replica has not got yet"); !reserved) {
        return reserved;
    }
    return entries_.reserve(capacity_ / page_bytes + spare_entries, "the list of what the replica has not got yet");
}

bool ReplicaStream::wait_for_room(std::uint64_t bytes) noexcept
{
    for (;;) {
        const std::uint32_t seen = confirmations_.load(std::memory_order_acquire);
        const bool has_entry = end_.load(std::memory_order_relaxed) - confirmed() < entries_.capacity();
        if (is_closed()) {
            return false;
        }
        if (has_entry && capacity_ - bytes_waiting() >= bytes) {
            return true;
        }
        wake();
        os::futex_wait(confirmations_, seen);
    }
}

void ReplicaStream::push(const ReplicaEntry& entry, std::uint64_t newest_epoch) noexcept
{
    const std::uint64_t position = end_.load(std::memory_order_relaxed);
    {
        const std::lock_guard guard(lock_);
        if (position > confirmed()) {
            if (ReplicaEntry& before = entries_[(position - 1) % entries_.capacity()]; before.newest_epoch == 0) {
                before.newest_epoch = newest_epoch;
            }
        } else {
            confirmed_epoch_.store(std::max(newest_epoch, confirmed_epoch()), std::memory_order_release);
        }
        entries_[position % entries_.capacity()] = entry;
        end_.store(position + 1, std::memory_order_release);
    }
    appended_.fetch_add(1, std::memory_order_release);
}

void ReplicaStream::append_writes(std::span<const BlockWrite> batch, std::uint64_t newest_epoch) noexcept
{
    std::uint64_t bytes_since_wake = 0;
    for (const BlockWrite& write : batch) {
        for (std::uint64_t done = 0; done < write.size;) {
            std::uint64_t place = data_end_.load(std::memory_order_relaxed) % capacity_;
            const std::uint64_t size = std::min({write.size - done, entry_bytes_max, capacity_ - place});
            if (!wait_for_room(size)) {
                return;
            }
            std::memcpy(memory_.data() + place, write.data + done, size);
            data_end_.fetch_add(size, std::memory_order_release);
            push({ReplicaCall::write, write.offset + done, size, place, os::monotonic_ns(), 0}, newest_epoch);
            done += size;
        }
        if ((bytes_since_wake += write.size) >= wake_bytes) {
            bytes_since_wake = 0;
            os::futex_wake(appended_);
        }
    }
    os::futex_wake(appended_);
}

void ReplicaStream::append(ReplicaCall call, std::uint64_t newest_epoch, std::uint64_t size_bytes, std::uint64_t begin) noexcept
{
    if (wait_for_room(0)) {
        push({call, size_bytes, 0, begin, os::monotonic_ns(), 0}, newest_epoch);
        os::futex_wake(appended_);
    }
}

std::span<const ReplicaEntry> ReplicaStream::next(std::size_t entries_max) const noexcept
{
    const std::uint64_t place = taken_ % entries_.capacity();
    const std::uint64_t there = std::min({end() - taken_, entries_.capacity() - place, std::uint64_t{entries_max}});
    const std::span entries(entries_.data() + place, there);
    const auto first_other = std::ranges::find_if(entries, [](const ReplicaEntry& entry) { return entry.call != ReplicaCall::write; });
    const auto writes = static_cast<std::size_t>(first_other - entries.begin());
    return entries.first(writes != 0 || entries.empty() ? writes : 1);
}

bool ReplicaStream::wants_confirmation() const noexcept
{
    const std::uint64_t first = confirmed();
    return taken_ - first > entries_.capacity() / 2 || (taken_ != first && bytes_waiting() > capacity_ / 2);
}

void ReplicaStream::confirm_taken() noexcept
{
    {
        const std::lock_guard guard(lock_);
        std::uint64_t bytes = 0;
        std::uint64_t epoch = confirmed_epoch();
        for (std::uint64_t position = confirmed(); position < taken_; ++position) {
            const ReplicaEntry& entry = entries_[position % entries_.capacity()];
            bytes += entry.size;
            // All before the last sync is durable; the epoch that an entry names was durable before the next one was appended.
            epoch = std::max(epoch, entry.newest_epoch);
        }
        confirmed_epoch_.store(epoch, std::memory_order_release);
        data_confirmed_.fetch_add(bytes, std::memory_order_release);
        confirmed_.store(taken_, std::memory_order_release);
    }
    confirmations_.fetch_add(1, std::memory_order_release);
    os::futex_wake(confirmations_);
}

void ReplicaStream::wait_for_entries(std::uint64_t deadline_ns) const noexcept
{
    const std::uint32_t seen = appended_.load(std::memory_order_acquire);
    if (end() == taken_ && !is_closed()) {
        os::futex_wait(appended_, seen, deadline_ns);
    }
}

std::uint64_t ReplicaStream::oldest_ns() const noexcept
{
    const std::lock_guard guard(lock_);
    const std::uint64_t first = confirmed();
    return first == end() ? 0 : entries_[first % entries_.capacity()].pushed_ns;
}

bool ReplicaStream::wait_confirmed(std::uint64_t position, std::uint64_t deadline_ns) const noexcept
{
    for (;;) {
        const std::uint32_t seen = confirmations_.load(std::memory_order_acquire);
        if (confirmed() >= position) {
            return true;
        }
        if (is_closed() || os::monotonic_ns() >= deadline_ns) {
            return false;
        }
        os::futex_wait(confirmations_, seen, deadline_ns);
    }
}

void ReplicaStream::wake() noexcept
{
    appended_.fetch_add(1, std::memory_order_release);
    os::futex_wake(appended_);
}

void ReplicaStream::close() noexcept
{
    is_closed_.store(true, std::memory_order_release);
    wake();
    confirmations_.fetch_add(1, std::memory_order_release);
    os::futex_wake(confirmations_);
}

}  // namespace stillpoint
