#pragma once
// The journal of a pool on a file: records of changed pages and lines, in two halves that are used in turn.
//
// The commit record (pool/commit_record.hpp) has the epoch in force. Records of that epoch count, in its half, on top of the pages of the
// file; no other record does. A half is written to again when the epoch of the other one is in force, durably. An epoch begins
//   - when the pages are up to date, durably: then it has no record yet, and the journal is as good as empty; or
//   - at opening, with a record of all pages that the epoch before had changed: nothing that the opening reads is written to.
// docs/internals/decisions/breeze-journal-of-lines.md says why this is enough.

#include <cstdint>

#include "core/result.hpp"
#include "engines/breeze/breeze_layout.hpp"
#include "engines/breeze/reserved_list.hpp"
#include "os/reserved_array.hpp"
#include "pool/pool.hpp"

namespace stillpoint::breeze {

inline constexpr std::uint64_t lines_of_page = page_bytes / cache_line_bytes;

/// One thread at a time.
class Journal {
public:
    struct Entries {
        std::uint64_t pages = 0;
        std::uint64_t lines = 0;
        [[nodiscard]] bool empty() const noexcept { return pages + lines == 0; }
    };

    /// Puts what the journal has into `image`, which has the pages, and the numbers of those changed pages into `changed`. Writes
    /// nothing: the next record must have all these pages, and has them durably with the epoch that it begins. Once the journal has
    /// `round_bytes` it is due to begin again; 0: as many as is good. Errors: pool_corrupt, io, no_memory.
    [[nodiscard]] Result<void> replay(Pool& pool, std::byte* image, ReservedList<std::uint64_t>& changed, std::uint64_t round_bytes);

    /// Where the pages of the next record go, and after them its lines.
    [[nodiscard]] JournalPage* pages() noexcept { return reinterpret_cast<JournalPage*>(staging_.data() + sizeof(JournalRecord)); }
    [[nodiscard]] bool has_room(const Entries& entries) const noexcept
    {
        return journal_record_bytes(entries.pages, entries.lines) <= half_bytes_ - used_;
    }
    /// The record is durable on return. There is room for it. Errors: io, no_space: the journal must not be used any more.
    [[nodiscard]] Result<void> append(const Entries& entries) noexcept;
    /// The pages are written, and better than the journal from here on, durably: the next epoch begins. `is_clean`: at an orderly end.
    /// Errors as append().
    [[nodiscard]] Result<void> begin_epoch(std::uint64_t pages_written, bool is_clean) noexcept;
    [[nodiscard]] bool is_due() const noexcept { return used_ > round_bytes_; }

private:
    enum class Found { whole, none };

    [[nodiscard]] std::uint64_t checksum_of(const JournalRecord& record) const noexcept;
    [[nodiscard]] std::uint64_t offset_of(std::uint64_t place) const noexcept;
    [[nodiscard]] JournalRecord& record() noexcept { return *reinterpret_cast<JournalRecord*>(staging_.data()); }
    /// The record of the epoch that begins at that place of its half, into the staging memory.
    [[nodiscard]] Result<Found> read_record(std::uint64_t place);
    [[nodiscard]] Result<void> apply(std::byte* image, os::ReservedBitmap& is_changed, ReservedList<std::uint64_t>& changed);
    /// Whether a record that comes after a missing one is there: then the missing one was not just being written.
    [[nodiscard]] Result<void> check_end(std::uint64_t place, std::uint64_t sequence);
    [[nodiscard]] Result<void> replay_epoch(std::byte* image, ReservedList<std::uint64_t>& changed, std::uint64_t first_checksum);
    [[nodiscard]] Result<void> put_in_force(std::uint64_t first_checksum, std::uint64_t pages, bool is_clean) noexcept;

    Pool* pool_ = nullptr;
    std::uint64_t image_pages_ = 0;
    std::uint64_t first_offset_ = 0;  ///< of the first half in the file
    std::uint64_t half_bytes_ = 0;
    std::uint64_t round_bytes_ = 0;
    std::uint64_t seed_ = 0;
    os::ReservedArray<std::byte> staging_;  ///< a record
    std::uint64_t epoch_ = 0;  ///< that the next record has
    bool is_in_force_ = false;  ///< the epoch is; else its first record puts it in force
    std::uint64_t used_ = 0;
    std::uint64_t sequence_ = 0;
};

}  // namespace stillpoint::breeze
