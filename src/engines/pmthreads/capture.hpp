#pragma once
// Capture: the pages of one epoch, copied as they were in one quiescent state.
//
// Where the tracker knows lines, and the pool has a delta log, a page of which few lines were written gives those lines; other pages are
// copied whole.
//
// Pre-copy, as virtual machines migrate: while the program runs, written pages are armed again
// and copied; the stop then copies only what was written meanwhile. A copy that is not written
// again is equivalent to one made in the stop. Pages beyond the staging memory have no copy: they
// are written to the medium straight from the shadow.
//
// A copy keeps its slot of the staging memory after its epoch, as long as no other page needs it. Where the tracker knows lines, a page
// that is written whole in a later epoch then gets only those lines copied that were written since.

#include <array>
#include <cstdint>
#include <span>

#include "core/result.hpp"
#include "runtime/copy_team.hpp"
#include "engines/pmthreads/pacer.hpp"
#include "engines/pmthreads/recent_peak.hpp"
#include "runtime/shadow.hpp"
#include "engines/pmthreads/tracker.hpp"
#include "os/async_requests.hpp"
#include "os/reserved_array.hpp"
#include "versions/delta_log.hpp"
#include "versions/epoch_writer.hpp"

namespace stillpoint::pmthreads {

/// Besides what the tracker finds, every page that system calls have stored to since the last collect is taken; in a
/// stop also those that calls in flight may be storing to. Of requests that no call waits for (io_uring, kernel AIO) nothing is
/// announced: while some may be going on, pages that were found written are *carried*, since a device may be storing to them still:
/// each stop takes them again, until no request was going on between finding and copying. What is registered with a ring is
/// taken in every stop.
///
/// Threads: the checkpoint thread only.
class Capture {
public:
    /// `log`: where lines go; nullptr: pages are written whole. `table`: a page without a copy is.
    [[nodiscard]] Result<void> reserve(std::uint64_t image_pages_max, std::uint64_t staging_pages, const versions::DeltaLog* log,
                                       const versions::VersionTable* table);

    /// The next collect() takes the page whole, written or not.
    void want_whole(std::uint64_t image_page) noexcept { wanted_[wanted_count_++] = static_cast<std::uint32_t>(image_page); }

    /// Finds the pages written since the last call and copies them. Returns how many were found,
    /// or a failure (the kernel refused the scan).
    /// `team` copies in a stop; otherwise it is nullptr, and `pacer` is told of each page that the calling thread copies.
    /// Pages without staging memory are appended to unstaged().
    [[nodiscard]] Result<std::uint64_t> collect(Tracker& tracker, const Shadow& shadow, ScanMode scan_mode, CopyTeam* team,
                                                Pacer* pacer) noexcept;

    /// Pages of the epoch, whole and in part.
    [[nodiscard]] std::uint64_t found_pages() const noexcept { return page_count_ + pages_in_part_; }
    /// The lines of pages that are not copied whole, and of some that are; valid until clear().
    [[nodiscard]] versions::DeltaBatch deltas() const noexcept
    {
        return {{group_pages_.data(), group_count_}, {group_masks_.data(), group_count_}, lines_.data(), line_count_};
    }

    /// Pages that the last collect() was the first in this epoch to take whole, and that have lines in deltas(): their copies must be
    /// written, even if they are as the pages' older copies, since the lines are not.
    [[nodiscard]] std::span<const std::uint32_t> made_whole() const noexcept { return {made_whole_.data(), made_whole_count_}; }

    /// Image pages that are copied whole, in the order in which they were first found. Those with is_staged(i), staged_count() in all, have
    /// their copies in staged(i).
    [[nodiscard]] std::uint64_t page_count() const noexcept { return page_count_; }
    [[nodiscard]] std::uint64_t staged_count() const noexcept { return staged_count_; }
    [[nodiscard]] bool is_staged(std::uint64_t index) const noexcept { return pages_[index].slot != no_slot; }
    [[nodiscard]] std::uint64_t page(std::uint64_t index) const noexcept { return pages_[index].image_page; }
    /// False: the page may be as it was in the epoch before.
    [[nodiscard]] bool certainly_written(std::uint64_t index) const noexcept { return pages_[index].certain; }
    [[nodiscard]] const std::byte* staged(std::uint64_t index) const noexcept
    {
        return staging_.data() + std::uint64_t{pages_[index].slot} * page_bytes;
    }
    /// Lines in which a staged copy may differ from what it was at the last note_written().
    [[nodiscard]] std::uint64_t changed_lines(std::uint64_t index) const noexcept { return slot_changes_[pages_[index].slot]; }
    void note_written(std::uint64_t index) noexcept { slot_changes_[pages_[index].slot] = 0; }
    /// want_whole() was called for it.
    [[nodiscard]] bool is_wanted_whole(std::uint64_t index) const noexcept { return pages_[index].wanted_whole; }
    /// After the stop: these lines of a staged page, which has a copy, are to be written in its place. False: the log has no room for them.
    [[nodiscard]] bool give_lines(std::uint64_t index, std::uint64_t mask) noexcept;
    /// Copies a page that has no staging memory, to be written at once: there is room for so many.
    static constexpr std::uint64_t pages_aside = 256;
    [[nodiscard]] const std::byte* copy_aside(std::uint64_t slot, const std::byte* page) noexcept;
    /// Indexes of pages found by the last collect() that have no staging memory.
    [[nodiscard]] std::span<const std::uint32_t> unstaged() const noexcept { return {unstaged_.data(), unstaged_count_}; }

    /// Some pages may be stored to by requests that go on: only a stop can tell.
    [[nodiscard]] bool wants_stop() const noexcept { return carried_count_ != 0 || !requests_.registered().empty(); }
    /// After the stop, while the program runs: a ring that the stop did not know of may be storing to any page of this epoch.
    void end_stop(const Shadow& shadow) noexcept;
    void detach_after_fork() noexcept { requests_.close(); }

    /// A measure of the copying that the last collect() did: bytes, and as many again as a scattered line takes the time of.
    [[nodiscard]] std::uint64_t copied_bytes() const noexcept
    {
        return copy_count_ * page_bytes + patch_lines_ * patch_line_costs_bytes +
               (line_count_ - first_new_line_) * scattered_line_costs_bytes;
    }
    /// Likewise: as far as it copied what had been copied for the epoch before.
    [[nodiscard]] std::uint64_t copied_again_bytes() const noexcept
    {
        return whole_again_ * page_bytes + patches_again_ * patch_line_costs_bytes + lines_again_ * scattered_line_costs_bytes;
    }
    /// How many pages that the last collect() found were in the epoch before.
    [[nodiscard]] std::uint64_t found_again() const noexcept { return found_again_; }
    [[nodiscard]] std::uint64_t staging_bytes_peak() const noexcept { return staging_peak_ * page_bytes; }
    [[nodiscard]] std::uint64_t staged_bytes() const noexcept { return slot_count_ * page_bytes + line_count_ * cache_line_bytes; }

    /// Forgets the epoch. Staging memory that no epoch of the last seconds used goes back to the system.
    void clear(std::uint64_t now_ns) noexcept;
    /// In place of clear() where an interval had nothing to capture: staging memory goes back then, too.
    void rest(std::uint64_t now_ns) noexcept { return_unused(now_ns); }

private:
    struct Page {
        std::uint32_t image_page;
        bool certain;
        bool wanted_whole;
        bool is_patched;  ///< the collect that found it last copies only lines of it
        std::uint32_t found_in;  ///< number of the collect that found it last
        std::uint32_t slot;  ///< of its copy
    };
    static constexpr std::uint32_t no_slot = UINT32_MAX;
    /// Lines that were written since the page's copy was made: the rest of the copy is as the page.
    struct Patch {
        std::uint64_t lines;
        std::uint32_t image_page;
        std::uint32_t slot;
    };
    static constexpr std::uint64_t all_lines = versions::EpochWriter::all_lines;

    /// A part of the image that one thread looks through.
    struct Piece {
        os::ReservedArray<WrittenRun> runs;
        std::uint64_t run_count = 0;
        int error = 0;  ///< errno where the tracker could not look
    };
    struct Search {
        Capture* capture;
        Tracker* tracker;
        std::uintptr_t base;
        std::uint64_t pages;
        std::uint64_t pages_in_piece;
        ScanMode scan_mode;
        Pacer* pacer;  ///< nullptr in a stop
    };
    struct LinesCopy {
        Capture* capture;
        const Shadow* shadow;
    };
    static constexpr std::uint64_t pieces_max = 8;

    [[nodiscard]] std::byte* copy_in(std::uint32_t slot) noexcept { return staging_.data() + std::uint64_t{slot} * page_bytes; }
    /// For a page that is new in the epoch: the slot that it has, a fresh one, or one of a page that is not in the epoch. no_slot: there is
    /// none, or none is found at once.
    [[nodiscard]] std::uint32_t take_slot(std::uint64_t image_page) noexcept;
    /// The page that has the slot, if one has, has none from here on.
    void free_slot(std::uint64_t slot) noexcept;
    void return_unused(std::uint64_t now_ns) noexcept;
    static void search_pieces(void* search, std::uint64_t begin, std::uint64_t end);
    static void copy_groups(void* copying, std::uint64_t begin, std::uint64_t end);
    static void patch_copies(void* copying, std::uint64_t begin, std::uint64_t end);
    /// Some thousand lines: by the whole team in a stop, else with pauses.
    static void copy_lines_of(std::uint64_t count, CopyTeam::Work work, LinesCopy& copying, CopyTeam* team, Pacer* pacer) noexcept;
    /// The lines of a page that the tracker has found. False: this collect has the page already, or nothing is to be copied.
    bool add_lines(std::uint64_t image_page, std::uint64_t mask, const Shadow& shadow) noexcept;
    /// The lines, which are yet to be copied, are the last group. False: the log has no room for them.
    [[nodiscard]] bool add_group(std::uint64_t image_page, std::uint64_t mask) noexcept;
    [[nodiscard]] std::byte* lines_of_group(std::uint64_t group) noexcept
    {
        return lines_.data() + std::uint64_t{group_lines_[group]} * cache_line_bytes;
    }
    /// While the program runs: memory for the copies that a stop adds, of as many pages as the last look was the first to find.
    void make_room_for_copies(std::uint64_t new_pages, std::uint64_t image_pages, Pacer& pacer) noexcept;
    /// Likewise for lines: a stop would be given it page by page.
    void make_room_for_lines() noexcept;
    [[nodiscard]] Result<void> reserve_lines(std::uint64_t image_pages_max);
    [[nodiscard]] std::uint64_t add_runs(Tracker& tracker, const Search& search, const Piece& piece, const Shadow& shadow) noexcept;
    [[nodiscard]] std::uint64_t add_wanted(const Shadow& shadow) noexcept;
    void take_whole_pages(Tracker& tracker) noexcept;
    void copy_found(const Shadow& shadow, CopyTeam* team, Pacer* pacer) noexcept;
    /// `lines` were written, and no others, since the last collect. False: this collect has the page already.
    bool add(std::uint64_t image_page, bool certain, const Shadow& shadow, std::uint64_t lines = all_lines) noexcept;
    /// A page that the epoch has. False: there is nothing more to copy.
    bool add_again(Page& known, std::uint64_t lines) noexcept;
    /// The copy that has a slot gets these lines.
    void add_patch(std::uint64_t image_page, std::uint64_t lines) noexcept;
    /// Stores by the kernel, which trackers do not see as they arrive (kernel_writes.hpp).
    [[nodiscard]] std::uint64_t add_kernel_writes(const Shadow& shadow, ScanMode scan_mode) noexcept;
    /// Between finding and copying.
    [[nodiscard]] std::uint64_t add_async_writes(const Shadow& shadow, ScanMode scan_mode, std::uint64_t found) noexcept;
    [[nodiscard]] std::uint64_t add_carried(const Shadow& shadow) noexcept;
    template <class Visit>
    static void visit_pages(std::span<const os::AsyncRequests::Range> ranges, const Shadow& shadow, Visit&& visit) noexcept;
    [[nodiscard]] bool requests_go_on(const Shadow& shadow, ScanMode scan_mode, std::uint64_t found) noexcept;
    void carry_found(std::uint32_t since_collect) noexcept;
    void carry(std::uint64_t image_page) noexcept;
    void forget_carried(std::uint64_t older_than_ns) noexcept;

    os::ReservedArray<std::uint32_t> index_of_;  ///< by image page: 1 + index, 0 if not in the epoch
    os::ReservedArray<Page> pages_;
    std::array<Piece, pieces_max> pieces_;
    os::ReservedArray<std::uint32_t> unstaged_;
    os::ReservedArray<CopyTeam::PageCopy> copies_;
    os::ReservedArray<Patch> patches_;
    std::uint64_t patch_count_ = 0;
    std::uint64_t patch_lines_ = 0;
    os::ReservedArray<std::byte> staging_;
    os::ReservedArray<std::uint32_t> slot_of_;  ///< by image page: 1 + slot of a copy that is as the page was at the last look; 0: none
    os::ReservedArray<std::uint32_t> slot_pages_;  ///< by slot: 1 + image page, 0 if none
    os::ReservedArray<std::uint64_t> slot_changes_;  ///< by slot: changed_lines()
    bool keeps_copies_ = false;  ///< the tracker tells which lines were written since
    std::uint64_t slot_count_ = 0;  ///< slots that were ever taken, and have memory
    std::uint64_t slot_hand_ = 0;
    std::uint64_t staged_count_ = 0;
    const versions::DeltaLog* log_ = nullptr;
    const versions::VersionTable* table_ = nullptr;
    os::ReservedArray<std::uint64_t> lines_of_;  ///< by image page: lines of the epoch that were found
    os::ReservedArray<std::uint8_t> many_lines_;  ///< by image page: in the epoch before there were more than lines_of_page_max
    os::ReservedArray<std::uint32_t> group_pages_;  ///< lines that one collect found in one page are a group
    os::ReservedArray<std::uint64_t> group_masks_;
    os::ReservedArray<std::uint32_t> group_lines_;  ///< the number of its first line
    os::ReservedArray<std::byte> lines_;
    std::uint64_t lines_present_ = 0;  ///< so many have memory
    os::ReservedArray<std::uint32_t> made_whole_;
    std::uint64_t made_whole_count_ = 0;
    os::ReservedArray<std::uint32_t> wanted_;
    std::uint64_t wanted_count_ = 0;
    std::uint64_t group_count_ = 0;
    std::uint64_t line_count_ = 0;
    std::uint64_t pages_in_part_ = 0;
    static constexpr std::uint64_t scattered_line_costs_bytes = 256;
    static constexpr std::uint64_t patch_line_costs_bytes = 128;  ///< its page has others
    std::uint64_t first_new_group_ = 0;  ///< of the collect that goes on
    std::uint64_t first_new_line_ = 0;
    std::uint64_t whole_again_ = 0;  ///< pages
    std::uint64_t lines_again_ = 0;
    std::uint64_t patches_again_ = 0;  ///< lines
    std::uint64_t first_new_whole_ = 0;  ///< index of the first page that it takes whole
    os::ReservedArray<std::byte> aside_;
    std::uint64_t staging_pages_ = 0;
    os::AsyncRequests requests_;
    std::uint64_t looked_everywhere_ns_ = 0;
    bool pinned_told_ = false;
    os::ReservedArray<std::uint64_t> carried_since_ns_;  ///< by image page; 0: it is not carried
    os::ReservedArray<std::uint32_t> carried_;  ///< image pages
    std::uint64_t carried_count_ = 0;
    std::uint32_t collect_number_ = 0;
    std::uint64_t page_count_ = 0;
    std::uint64_t unstaged_count_ = 0;
    std::uint64_t copy_count_ = 0;
    std::uint64_t found_again_ = 0;
    std::uint64_t found_last_ = 0;  ///< pages that the last collect() found
    std::uint64_t staging_peak_ = 0;
    static constexpr std::uint64_t worth_returning_bytes = 4 * mib;
    std::uint64_t slots_present_ = 0;  ///< so many have memory
    RecentPeak slots_used_;
    RecentPeak lines_used_;
};

}  // namespace stillpoint::pmthreads
