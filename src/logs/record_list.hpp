#pragma once
// A list of records for code that must not call malloc.

#include <span>

#include "logs/log_bytes.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::logs {

/// Threads: one at a time.
class RecordList {
public:
    /// Errors: no_memory (no address space).
    [[nodiscard]] Result<void> reserve(std::uint64_t records, const char* purpose) { return records_.reserve(records, purpose); }

    /// False: it is full.
    [[nodiscard]] bool append(const RecordRef& record) noexcept
    {
        if (count_ == records_.capacity()) {
            return false;
        }
        records_[count_++] = record;
        return true;
    }
    void clear() noexcept { count_ = 0; }
    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] std::span<const RecordRef> records() const noexcept { return {records_.data(), count_}; }
    /// Room for `records`, which the caller fills; nothing if there is not so much.
    [[nodiscard]] std::span<RecordRef> resize(std::uint64_t records) noexcept
    {
        count_ = records <= records_.capacity() ? records : 0;
        return {records_.data(), count_};
    }

private:
    os::ReservedArray<RecordRef> records_;
    std::uint64_t count_ = 0;
};

}  // namespace stillpoint::logs
