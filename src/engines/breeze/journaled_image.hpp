#pragma once
// The image of a pool on a file: private memory, whose lines become durable by a journal. What a mapped pool writes back line by line is
// noted here, and everything that was noted becomes durable together, by one write and one sync that all waiting threads share. So a file
// holds, after each record, what the memory of a mapped pool might hold after a crash at that moment, and one recovery serves both.
//
// docs/internals/format/breeze.md has the bytes. Pages are brought up to date, and the journal begun again, when it is large.

#include <cstdint>
#include <span>

#include "core/result.hpp"
#include "engines/breeze/reserved_list.hpp"
#include "os/futex.hpp"
#include "os/reserved_array.hpp"
#include "pool/pool.hpp"

namespace stillpoint::breeze {

class JournaledImage {
public:
    /// Brings the pages of the file up to date with what a crash has left in the journal. Errors: pool_corrupt, io, no_space, no_memory.
    [[nodiscard]] static Result<void> replay(const Pool& pool);

    /// Loads the pages into `image`. After replay(). Errors: io, no_memory.
    [[nodiscard]] Result<void> load(const Pool& pool, std::byte* image);
    /// Lines that were stored to. Any thread.
    void note(std::span<const std::uintptr_t> line_addresses) noexcept;
    /// Everything that was noted before is durable on return. Any thread. Errors: io, no_space: nothing becomes durable any more.
    [[nodiscard]] Result<void> make_durable() noexcept;
    /// Pages are up to date, durably, and the journal is empty. Errors: io, no_space.
    [[nodiscard]] Result<void> close() noexcept;

private:
    // With commit_lock_ held.
    /// The lines that were noted, in the staging memory and in the stable copy; the first line of a page since pages were brought up to
    /// date brings the whole page: a crash while the page is written may leave garbage in all of it. Returns the bytes of the record.
    [[nodiscard]] std::uint64_t capture() noexcept;
    [[nodiscard]] Result<void> make_room() noexcept;
    [[nodiscard]] Result<void> write_record(std::uint64_t bytes) noexcept;
    [[nodiscard]] Result<void> write_pages() noexcept;
    [[nodiscard]] Result<void> commit() noexcept;

    Medium* medium_ = nullptr;
    std::byte* image_ = nullptr;
    std::uint64_t image_bytes_ = 0;
    std::uint64_t image_file_offset_ = 0;
    std::uint64_t journal_file_offset_ = 0;
    std::uint64_t journal_bytes_ = 0;

    os::FutexLock notes_lock_;  ///< inside commit_lock_
    os::ReservedBitmap noted_;  ///< lines
    ReservedList<std::uint64_t> lines_;
    std::uint64_t notes_ = 0;  ///< calls of note()

    os::FutexLock commit_lock_;
    std::uint64_t notes_captured_ = 0;
    std::uint64_t notes_durable_ = 0;
    os::ReservedArray<std::byte> stable_;  ///< the image as the journal and the pages have it
    os::ReservedArray<std::byte> staging_;  ///< a record
    os::ReservedBitmap dirty_;  ///< pages that only the journal has
    ReservedList<std::uint64_t> dirty_pages_;
    std::uint64_t journal_used_ = 0;
    std::uint64_t epoch_ = 1;
    std::uint64_t sequence_ = 0;
    bool failed_ = false;
    Failure failure_;
};

}  // namespace stillpoint::breeze
