#pragma once
// Pool: one file that holds the image (the durable memory) of one program for one engine.
//
// File layout (docs/internals/format/pool.md has every byte; superblock_layout.hpp the structures):
//   superblock copy 0 | superblock copy 1 | engine area | segment 0 | segment 1 | ...
// The engine area and the inside of segments belong to the engine. Growth appends a segment.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "core/units.hpp"
#include "media/medium.hpp"
#include "pool/commit_layout.hpp"
#include "pool/uuid.hpp"

namespace stillpoint {

/// A run of image pages and the part of the file that keeps them.
struct Segment {
    std::uint64_t first_image_page;
    std::uint64_t image_pages;
    std::uint64_t first_file_page;
    std::uint64_t file_pages;
};

/// Pages [begin, end) of the file.
struct FilePageRange {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;

    [[nodiscard]] constexpr bool is_empty() const noexcept { return begin == end; }
    [[nodiscard]] constexpr FileRange bytes() const noexcept { return {begin * page_bytes, end * page_bytes}; }
};

/// In ascending order; those at the end may be empty.
using TwoFilePageRanges = std::array<FilePageRange, 2>;

/// The engine's description of its own areas of the file.
struct EngineFormat {
    std::string_view name;               ///< at most 15 bytes
    std::uint32_t layout_version;
    std::uint64_t area_pages;            ///< fixed engine area after the superblocks
    /// File pages that a segment of `image_pages` needs.
    std::uint64_t (*segment_file_pages)(std::uint64_t image_pages);
    /// The first segment begins at a multiple of this; what lies before it stays unused. For engines that map the file.
    std::uint64_t first_segment_alignment_pages = 1;
    /// Pages of a segment for which no room is taken when it is made: the engine takes it (Medium::allocate) before it writes there. Those
    /// of a segment that is not the first lie at its end. nullptr: none.
    TwoFilePageRanges (*pages_without_room)(const Segment& segment, std::uint64_t image_bytes_max, Room room) noexcept = nullptr;
    /// File pages that the first segment needs, where those are more. nullptr: as every segment.
    std::uint64_t (*first_segment_file_pages)(std::uint64_t image_pages, std::uint64_t image_bytes_max) = nullptr;

    [[nodiscard]] std::uint64_t file_pages_for(std::uint64_t first_image_page, std::uint64_t image_pages,
                                               std::uint64_t image_bytes_max) const
    {
        return first_image_page == 0 && first_segment_file_pages != nullptr ? first_segment_file_pages(image_pages, image_bytes_max)
                                                                            : segment_file_pages(image_pages);
    }

    [[nodiscard]] TwoFilePageRanges without_room(const Segment& segment, std::uint64_t image_bytes_max, Room room) const noexcept
    {
        return pages_without_room == nullptr ? TwoFilePageRanges{} : pages_without_room(segment, image_bytes_max, room);
    }

    [[nodiscard]] std::uint64_t first_segment_page(std::uint64_t area_end_page) const noexcept
    {
        return round_up(area_end_page, first_segment_alignment_pages);
    }
};

/// The contents of the superblock, validated.
struct PoolFacts {
    Uuid uuid;
    std::uint32_t format_version;
    std::string engine_name;
    std::uint32_t engine_layout_version;
    Durability durability;
    std::uint64_t feature_bits;
    std::uintptr_t base_address;
    std::uint64_t image_bytes;  ///< present size of the durable memory
    std::uint64_t image_bytes_max;  ///< it never grows beyond this
    std::uint64_t image_bytes_first_max;  ///< the maximum at creation, from which the places of tables follow
    std::uint64_t generation;  ///< how many times the pool was opened for writing
    std::uint64_t file_bytes;
    std::uint64_t engine_area_first_page;
    std::uint64_t engine_area_pages;
    std::uint64_t created_unix_seconds;
    bool superblock_damaged;  ///< one of the two copies was found bad by open()
    bool superblock_repaired;  ///< and it was rewritten (not by a read-only open)
};

namespace layout {
struct Superblock;
}

/// Threads: facts() and segments() may be read by any thread while grow() runs elsewhere only
///   through a lock of the caller's; the engine has one.
class Pool {
public:
    struct CreateOptions {
        EngineFormat format;
        std::uint64_t image_bytes;  ///< multiple of page_bytes, at least image_bytes_min
        std::uint64_t image_bytes_max;  ///< >= image_bytes, at most window_bytes
        std::uintptr_t base_address = window_base;
        /// Writes the first bytes of the image, which are durable before the file is a pool. nullptr: the image is zero.
        Result<void> (*write_image)(Pool& pool) = nullptr;
    };

    static constexpr std::uint64_t image_bytes_min = 4 * mib;
    static constexpr std::size_t segments_max = 64;

    /// File bytes that create() needs: what the medium must be created with.
    [[nodiscard]] static Result<std::uint64_t> file_bytes_for(const CreateOptions& options);

    /// Bytes inside the file that need no room when it is created: MediumOptions::without_room, and without_room_in_memory.
    [[nodiscard]] static TwoFileRanges bytes_without_room(const CreateOptions& options, Room room);

    /// Formats a new medium. When it returns a Pool, a crash at any later instruction leaves a
    /// file that open() accepts; before that, either a whole, empty pool or one that open() rejects as
    /// not_a_pool ("never finished"): superblocks are written last, after a sync of everything
    /// else. The engine area is zeroed here; segments are zero because the medium allocates
    /// them so. The pool gets the medium's durability. Cost: 3 syncs.
    /// Errors: invalid_argument (also: the medium is smaller than file_bytes_for()), no_space, io.
    [[nodiscard]] static Result<Pool> create(std::unique_ptr<Medium> medium, const CreateOptions& options);

    /// The file holds nothing but what create() has left before it was cut off: it is empty, has the marker of an unfinished creation, or
    /// zeroes alone. Such a file may be given to create() again. Errors: io.
    [[nodiscard]] static Result<bool> is_unfinished(const Medium& medium);

    /// Reads and validates both superblocks, takes the valid one with the larger sequence number, rewrites a
    /// bad copy, and (unless `read_only`) increments the generation durably.
    /// Errors: not_a_pool, pool_version, pool_engine (expected.name is not empty and differs),
    ///   pool_corrupt (both copies bad, or fields that contradict each other or the file),
    ///   pool_truncated, pool_read_only, io.
    /// Also sets the medium's durability to the pool's. Cost: 3 syncs, none where `read_only`.
    /// `record_later`: writes nothing; facts() has the new generation already. For a caller that may
    /// yet refuse the pool, which must then be as it was.
    [[nodiscard]] static Result<Pool> open(std::unique_ptr<Medium> medium, const EngineFormat& expected, bool read_only = false,
                                           bool record_later = false);

    /// Checks `expected` as open() does; for a caller that learns from facts() whose pool it is. Errors: pool_engine, pool_version,
    /// pool_corrupt.
    [[nodiscard]] Result<void> check_engine(const EngineFormat& expected) const;

    /// Writes what open() with `record_later` did not: before anything of this generation is made
    /// durable or reported. Appends the segments that were planned. Does nothing the second time. Cost: 3 syncs.
    /// Errors: no_space, io.
    [[nodiscard]] Result<void> record_opening();

    /// Appends a segment so that the image has at least `image_bytes` bytes, and more by the
    /// policy of growth.hpp where maximum and disk allow. Durable on return; a crash inside
    /// leaves the old size or the new one. No malloc but the medium's in resize(). Cost: 2 syncs and the resize.
    /// Errors: pool_full (the maximum, or no segment left), no_space, io, pool_read_only (opened
    ///   so, or frozen by an earlier error). Nothing changes on an error, but after a failed
    ///   write or sync the pool is frozen.
    /// Before record_opening() nothing is written: the segment is planned, without what the policy adds, and record_opening() appends it.
    [[nodiscard]] Result<void> grow(std::uint64_t image_bytes, const EngineFormat& format);

    /// Raises the maximum; the next start gives the heap tables of that size (heap/image_heap.hpp). Durable on return; a crash inside
    /// leaves the old maximum or the new one. Older libraries refuse the pool from then on. Cost: 2 syncs, and that of record_opening().
    /// Errors: invalid_argument (it is not larger, leaves the window of addresses, or needs more segments than there are), pool_read_only,
    ///   io.
    [[nodiscard]] Result<void> raise_maximum(std::uint64_t image_bytes_max);

    [[nodiscard]] const PoolFacts& facts() const noexcept { return facts_; }
    [[nodiscard]] std::span<const Segment> segments() const noexcept { return {segments_.data(), segment_count_}; }
    [[nodiscard]] Medium& medium() const noexcept { return *medium_; }
    /// Opened for reading only: the generation is the one that the last writer had.
    [[nodiscard]] bool read_only() const noexcept { return read_only_; }

    /// Commit records of this epoch and later ones count as if they were not there: to see what an older epoch would be.
    void leave_out_epochs_from(std::uint64_t epoch) noexcept { epochs_end_ = epoch; }
    [[nodiscard]] std::uint64_t epochs_end() const noexcept { return epochs_end_; }
    /// The record that was stored last in the pair of that parity; all zero: none in this run. For commit_record.cpp.
    [[nodiscard]] CommitRecord& stored_record(std::uint64_t parity) noexcept { return stored_records_[parity]; }

private:
    struct SuperblockDeleter {
        void operator()(layout::Superblock* superblock) const noexcept;
    };
    using SuperblockPointer = std::unique_ptr<layout::Superblock, SuperblockDeleter>;

    /// A new pool has this one. Errors: invalid_argument.
    [[nodiscard]] static Result<Segment> first_segment(const CreateOptions& options);

    Pool() = default;
    [[nodiscard]] static SuperblockPointer new_superblock();
    [[nodiscard]] Result<void> format_medium(const CreateOptions& options);
    [[nodiscard]] Result<void> plan_segment(std::uint64_t new_image_bytes, const EngineFormat& format);
    [[nodiscard]] Result<void> append_planned_segments();
    [[nodiscard]] Result<void> append_segment(std::uint64_t new_image_bytes, const EngineFormat& format);
    [[nodiscard]] Result<void> zero_leftover(std::uint64_t begin, std::uint64_t end);
    [[nodiscard]] Result<void> write_superblocks();
    [[nodiscard]] Result<void> write_found_superblock_again();
    void take_facts();

    std::unique_ptr<Medium> medium_;
    /// As on the medium, so that what this library does not know is kept when it is rewritten.
    /// Page aligned: a write's source.
    SuperblockPointer superblock_;
    PoolFacts facts_{};
    std::array<Segment, segments_max> segments_{};
    std::size_t segment_count_ = 0;
    std::uint64_t epochs_end_ = UINT64_MAX;
    std::array<CommitRecord, 2> stored_records_{};
    std::size_t first_copy_ = 1;  ///< of the next update: never the only copy in force
    bool read_only_ = false;
    bool opening_unrecorded_ = false;  ///< the generation in memory is one more than the medium's
    bool frozen_ = false;  ///< a write or sync of superblocks failed: what is durable is not known
};

}  // namespace stillpoint
