#pragma once
// The least that an engine with an undo log does: keeps the old bytes of every store that is announced, and puts them back.

#include <cstddef>
#include <cstring>
#include <vector>

#include "core/store_marks.hpp"

namespace stillpoint::test {

/// One at a time, while it lives. Threads: one.
class UndoLog {
public:
    UndoLog()
    {
        current = this;
        store_marks::want_calls_before(&keep);
    }
    ~UndoLog()
    {
        store_marks::want_nothing();
        current = nullptr;
    }
    UndoLog(const UndoLog&) = delete;
    UndoLog& operator=(const UndoLog&) = delete;

    /// The newest first: a byte that was stored twice gets its first old value.
    void roll_back()
    {
        for (; !entries_.empty(); entries_.pop_back()) {
            std::memcpy(entries_.back().address, entries_.back().old_bytes.data(), entries_.back().old_bytes.size());
        }
    }
    [[nodiscard]] std::size_t entries() const { return entries_.size(); }

private:
    struct Entry {
        std::byte* address;
        std::vector<std::byte> old_bytes;
    };

    static void keep(const void* address, std::size_t size_bytes) noexcept
    {
        auto* const begin = static_cast<std::byte*>(const_cast<void*>(address));
        current->entries_.push_back({begin, {begin, begin + size_bytes}});
    }

    static inline UndoLog* current = nullptr;
    std::vector<Entry> entries_;
};

}  // namespace stillpoint::test
