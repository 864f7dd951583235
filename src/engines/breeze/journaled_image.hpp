#pragma once
// The image of a pool on a file: private memory, whose words become durable by a journal. What a mapped pool writes back line by line is
// noted here, word by word, as it is at that moment; and everything that was noted becomes durable together, by one record that all
// waiting threads share. So a file holds, after each record, what the memory of a mapped pool might hold after a crash at that moment, and
// one recovery serves both.
//
// Pages of the file are brought up to date, and the journal begun again, when it is large (journal.hpp).

#include <cstdint>
#include <optional>
#include <span>

#include "core/result.hpp"
#include "engines/breeze/journal.hpp"
#include "engines/breeze/reserved_list.hpp"
#include "os/futex.hpp"
#include "os/reserved_array.hpp"
#include "pool/pool.hpp"

namespace stillpoint::breeze {

/// Words of a cache line that a thread has stored, and that no other thread stores to meanwhile: a bit for each.
struct StoredWords {
    std::uintptr_t line;
    std::uint8_t words;
};

class JournaledImage {
public:
    /// Reads what the file has, with its journal. `round_bytes`: see Journal::replay(). Errors: pool_corrupt, io, no_memory.
    [[nodiscard]] Result<void> read(Pool& pool, std::uint64_t round_bytes);
    /// The image as it was read.
    [[nodiscard]] const std::byte* content() const noexcept { return stable_.data(); }
    /// Puts what was read to where the image lies from here on, in fresh memory.
    void place_at(std::byte* image) noexcept;

    /// Any thread.
    void note(std::span<const StoredWords> stored) noexcept;
    /// Everything that was noted before is durable on return. Any thread. Errors: io, no_space: nothing becomes durable any more.
    [[nodiscard]] Result<void> make_durable() noexcept;
    /// Pages are up to date, durably, and the journal is empty. Errors: io, no_space.
    [[nodiscard]] Result<void> close() noexcept;

private:
    static constexpr std::size_t words_of_line = cache_line_bytes / sizeof(std::uint64_t);
    struct NotedLine {
        std::uint64_t number;
        std::uint64_t words;  ///< that were noted: a bit for each
        std::uint64_t values[words_of_line];
    };

    [[nodiscard]] NotedLine& noted_line(std::uint64_t number) noexcept;
    // With commit_lock_ held.
    /// Moves what was noted into the stable copy and into the journal's next record. The first line of a page in an epoch brings the
    /// whole page: a crash while the page is written may leave garbage in all of it. Empty: the journal has no room, and nothing is moved.
    [[nodiscard]] std::optional<Journal::Entries> capture() noexcept;
    void forget_fresh_pages(std::uint64_t first) noexcept;
    [[nodiscard]] Result<void> write_pages(bool is_clean) noexcept;
    [[nodiscard]] Result<void> write_record() noexcept;
    [[nodiscard]] Result<void> commit() noexcept;
    [[nodiscard]] Result<void> fail_for_good(Result<void> result) noexcept;

    Medium* medium_ = nullptr;
    std::byte* image_ = nullptr;
    std::uint64_t image_bytes_ = 0;
    std::uint64_t image_file_offset_ = 0;

    os::FutexLock notes_lock_;  ///< inside commit_lock_
    os::ReservedArray<std::uint32_t> place_of_line_;  ///< in noted_, where it has the line
    ReservedList<NotedLine> noted_;
    std::uint64_t notes_ = 0;  ///< calls of note()

    os::FutexLock commit_lock_;
    Journal journal_;
    std::uint64_t notes_captured_ = 0;
    std::uint64_t notes_durable_ = 0;
    os::ReservedArray<std::byte> stable_;  ///< the image as the journal and the pages have it
    os::ReservedBitmap dirty_;  ///< pages that the journal has, all of each, in this epoch
    os::ReservedBitmap fresh_;  ///< those that a capture has found
    ReservedList<std::uint64_t> dirty_pages_;
    ReservedList<std::uint64_t> recovered_pages_;
    os::ReservedBitmap loaded_;  ///< pages that are not zero, when the image is placed
    bool failed_ = false;
    Failure failure_;
};

}  // namespace stillpoint::breeze
