#pragma once
// UndoLog: the old values of bytes that a transaction has written, so that it can be rolled back as a whole or to one point.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stillpoint::itm {

class UndoLog {
public:
    enum class Kind : std::uint32_t {
        memory,    ///< was written in place
        own,       ///< was written in place by code that the compiler has not instrumented: memory that no other thread knows
        buffered,  ///< was written by the engine, and was this before
    };
    struct Entry {
        std::byte* place;
        std::uint64_t at;  ///< of the old bytes in bytes()
        std::uint32_t size;
        Kind kind;
    };

    /// Keeps what `place` holds.
    void keep(void* place, std::size_t size, Kind kind);
    /// Keeps `old` as what `place` held.
    void keep_value(void* place, const void* old, std::size_t size, Kind kind);

    [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
    [[nodiscard]] const Entry& operator[](std::size_t number) const noexcept { return entries_[number]; }
    [[nodiscard]] const std::byte* old_bytes(const Entry& entry) const noexcept { return bytes_.data() + entry.at; }
    /// Forgets the entries from `size` on.
    void shrink(std::size_t size) noexcept;

private:
    std::vector<Entry> entries_;
    std::vector<std::byte> bytes_;
};

}  // namespace stillpoint::itm
