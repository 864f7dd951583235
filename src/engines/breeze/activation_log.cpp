#include "engines/breeze/activation_log.hpp"

#include <cstring>

#include "arch/checksum.hpp"
#include "core/canary.hpp"

namespace stillpoint::breeze {

namespace {

constexpr std::uint64_t activation_seed = 0x4252454541435449;

}  // namespace

Result<void> ActivationLog::prepare(PoolMemory& memory, const Geometry& geometry, std::uint64_t key, unsigned number)
{
    memory_ = &memory;
    header_ = &memory.at<LogHeader>(geometry.log_headers_offset + number * sizeof(LogHeader));
    bytes_ = &memory.at<std::byte>(geometry.activations_offset + number * geometry.activation_bytes);
    capacity_ = geometry.activation_bytes;
    seed_ = mix64(key ^ activation_seed, number);
    return waiting_.reserve(records_max(), "the activation records of a pool");
}

std::uint64_t ActivationLog::checksum_of(const ActivationRecord& record) const noexcept
{
    return checksum64(&record.transaction, bytes_of(record.count) - sizeof record.checksum, seed_);
}

bool ActivationLog::append(std::uint64_t transaction, std::span<const PointerChange> changes) noexcept
{
    const std::uint64_t bytes = bytes_of(changes.size());
    std::uint64_t place = 0;
    {
        const std::lock_guard hold(lock_);
        if (count_ == 0) {
            place = bytes <= capacity_ - head_ ? head_ : 0;
            tail_ = place;
        } else if (head_ > tail_ && bytes <= capacity_ - head_) {
            place = head_;
        } else if (head_ > tail_ ? bytes < tail_ : bytes < tail_ - head_) {
            place = head_ > tail_ ? 0 : head_;
        } else {
            return false;
        }
        appended_ = place;
    }
    ActivationRecord& record = at(place);
    record.transaction = transaction;
    record.count = changes.size();
    std::memcpy(&record + 1, changes.data(), changes.size_bytes());
    record.checksum = checksum_of(record);
    if (!is_removed(Canary::activation_record)) {
        memory_->write_back(&record, bytes);
    }
    return true;
}

void ActivationLog::committed(std::uint64_t transaction) noexcept
{
    const std::lock_guard hold(lock_);
    head_ = appended_ + bytes_of(at(appended_).count);
    ++count_;
    waiting_.push_back({transaction, appended_});
}

void ActivationLog::take(ReservedList<CommittedRecord>& records) noexcept
{
    const std::lock_guard hold(lock_);
    for (const CommittedRecord& record : waiting_) {
        records.push_back(record);
    }
    waiting_.clear();
}

std::span<const PointerChange> ActivationLog::changes(const CommittedRecord& record) const noexcept
{
    const ActivationRecord& found = at(record.place);
    return {reinterpret_cast<const PointerChange*>(&found + 1), found.count};
}

std::uint64_t ActivationLog::end_of(const CommittedRecord& record) const noexcept
{
    return record.place + bytes_of(at(record.place).count);
}

void ActivationLog::applied(const CommittedRecord& record) noexcept
{
    const std::uint64_t end = end_of(record);
    const std::lock_guard hold(lock_);
    tail_ = end;
    --count_;
}

std::uint64_t ActivationLog::transaction_at(std::uint64_t place, std::uint64_t after) const noexcept
{
    if (place > capacity_ || capacity_ - place < sizeof(ActivationRecord)) {
        return 0;
    }
    const ActivationRecord& record = at(place);
    if (record.transaction <= after || record.transaction > header_->finished + 1 ||
        record.count > (capacity_ - place - sizeof record) / sizeof(PointerChange) || checksum_of(record) != record.checksum) {
        return 0;
    }
    return record.transaction;
}

void ActivationLog::recover() noexcept
{
    std::uint64_t newest = header_->applied;
    std::uint64_t place = header_->applied_end % sizeof(std::uint64_t) == 0 ? header_->applied_end : 0;
    head_ = place <= capacity_ ? place : 0;
    for (;;) {
        // Older records lie at `place`, and newer ones from the ring's beginning on; after a ring was empty it is the other way round.
        const std::uint64_t here = transaction_at(place, newest);
        const std::uint64_t at_begin = transaction_at(0, newest);
        if (here == 0 && at_begin == 0) {
            return;
        }
        if (here == 0 || (at_begin != 0 && at_begin < here)) {
            place = 0;
        }
        ActivationRecord& record = at(place);
        if (record.transaction > header_->finished) {
            if (!is_removed(Canary::activation_void)) {
                memory_->persist_word(record.transaction, 0);
            }
            return;
        }
        newest = record.transaction;
        if (waiting_.empty()) {
            tail_ = place;
        }
        waiting_.push_back({newest, place});
        ++count_;
        place += bytes_of(record.count);
        head_ = place;
    }
}

}  // namespace stillpoint::breeze
