// verify_marks: the tracker hooks, and beside it pages that are protected until their first write, as the tracker mprotect
// has them. The first write to a page since it was captured faults: its bytes are kept, and the writer. A
// stop compares the lines that have no mark, of pages that were written, with those bytes. A difference is a store without
// a mark: it is captured anyway, since all pages are captured whole, and counted, and its writer named once.
//
// The limit: an unmarked store to a page that is captured ahead, for another mark, before the stop. Nothing is lost then; the page is
// armed again, and the next such store shows.

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <string_view>
#include <sys/mman.h>

#include "core/store_marks.hpp"
#include "core/units.hpp"
#include "engines/pmthreads/hot_chunks.hpp"
#include "engines/pmthreads/own_statistics.hpp"
#include "engines/pmthreads/tracker.hpp"
#include "os/code_location.hpp"
#include "os/futex.hpp"
#include "os/log.hpp"
#include "os/own_mappings.hpp"
#include "os/reserved_array.hpp"
#include "os/thread_calls.hpp"
#include "runtime/code_callers.hpp"
#include "runtime/durable_place.hpp"
#include "runtime/fault_handler.hpp"
#include "runtime/kernel_writes.hpp"
#include "runtime/protected_pages.hpp"
#include "runtime/statistics.hpp"
#include "runtime/sync_objects.hpp"

namespace stillpoint::pmthreads {

namespace {

/// State of a page. A page leaves `armed` in the fault of one thread, which others wait for.
enum State : std::uint8_t { armed = 0, opening = 1, open = 2 };

struct Finding {
    std::uintptr_t first_byte;
    std::uintptr_t end;
    Callers writer;  ///< nullptr: the kernel, in a system call
};

class VerifyingTracker final : public Tracker {
public:
    explicit VerifyingTracker(std::unique_ptr<Tracker> marks) noexcept : marks_(std::move(marks)) {}

    [[nodiscard]] Result<void> reserve(std::uint64_t image_bytes_max)
    {
        const std::uint64_t pages_max = image_bytes_max / page_bytes;
        if (auto done = states_.reserve(pages_max, "verify_marks"); !done) {
            return done;
        }
        if (auto done = writers_.reserve(pages_max, "verify_marks"); !done) {
            return done;
        }
        if (auto done = marked_lines_.reserve(pages_max, "verify_marks"); !done) {
            return done;
        }
        prepare_callers();
        return before_.reserve(image_bytes_max, "verify_marks");
    }

    [[nodiscard]] std::string_view name() const noexcept override { return "hooks, verifying marks"; }

    [[nodiscard]] Result<void> add_range(std::byte* begin, std::size_t size, std::size_t /*served_bytes*/) override
    {
        if (auto done = marks_->add_range(begin, size, 0); !done) {
            return done;
        }
        store_marks::taken_tag.store(store_marks::tag_of_none, std::memory_order_relaxed);
        return pages_.add(begin, size);
    }

    [[nodiscard]] std::uintptr_t collect(std::uintptr_t begin, std::uintptr_t end, ScanMode scan_mode, WrittenRun* runs,
                                         std::size_t capacity, std::size_t& count) noexcept override
    {
        if (scan_mode == ScanMode::stop) {
            return verify(begin, end, runs, capacity, count);
        }
        const std::uintptr_t stopped = marks_->collect(begin, end, scan_mode, runs, capacity, count);
        for (std::size_t i = 0; i < count; ++i) {
            for (std::uint64_t page = pages_.index_of(runs[i].begin); page < pages_.index_of(runs[i].end); ++page) {
                note_marked_lines(page);
            }
            arm(runs[i].begin, runs[i].end);
        }
        return stopped;
    }

    /// Unmarked stores alone make no look find anything: a stop must.
    [[nodiscard]] bool has_unarmed_pages() const noexcept override
    {
        return marks_->has_unarmed_pages() || open_pages_.load(std::memory_order_relaxed) != 0;
    }

    /// Outside the stop, where names can be looked up.
    void end_epoch() noexcept override
    {
        if (mappings_ran_out_.load(std::memory_order_relaxed) && !std::exchange(mappings_ran_out_told_, true)) {
            os::log(os::Severity::warning,
                    "verify_marks: the kernel gives this process no more mappings, so some stores are not verified: raise "
                    "vm.max_map_count");
        }
        for (std::size_t i = 0; i < finding_count_; ++i) {
            report(findings_[i]);
        }
        finding_count_ = 0;
    }

    [[nodiscard]] bool handle_fault(void* address) noexcept override
    {
        const auto page = pages_.find(address);
        return page && open_page(*page, faulting_instruction());
    }
    [[nodiscard]] bool needs_fault_handler() const noexcept override { return true; }

    void prepare_kernel_write(void* address, std::size_t size) noexcept override
    {
        const auto touched = pages_.touched(address, size);
        for (auto page = touched.first; page < touched.end; ++page) {
            open_page(page, nullptr);
        }
    }

    void detach_after_fork() noexcept override
    {
        marks_->detach_after_fork();
        pages_.make_all_writable();
    }

private:
    using AtomicState = std::atomic_ref<std::uint8_t>;
    using AtomicLines = std::atomic_ref<std::uint64_t>;

    void note_marked_lines(std::uint64_t page) noexcept
    {
        AtomicLines(marked_lines_[page]).fetch_or(marks_->take_found_lines(page), std::memory_order_relaxed);
    }

    static bool protect(std::uintptr_t begin, std::uintptr_t end, int protection) noexcept
    {
        return os::protect_own(reinterpret_cast<void*>(begin), end - begin, protection) == 0;
    }
    [[nodiscard]] const std::byte* bytes_of(std::uint64_t page) const noexcept
    {
        return reinterpret_cast<const std::byte*>(pages_.address_of(page));
    }

    /// Async-signal-safe.
    bool open_page(std::uint64_t page, const void* instruction) noexcept
    {
        const int saved_errno = errno;
        const AtomicState state(states_[page]);
        std::uint8_t seen = armed;
        if (state.compare_exchange_strong(seen, opening, std::memory_order_acq_rel)) {
            AtomicLines(marked_lines_[page]).store(0, std::memory_order_relaxed);
            std::memcpy(before_.data() + page * page_bytes, bytes_of(page), page_bytes);
            writers_[page] = callers_from(instruction);
            open_pages_.fetch_add(1, std::memory_order_relaxed);
            make_writable(page);
            state.store(open, std::memory_order_release);
        } else if (seen == open) {
            make_writable(page);  // Armed and opened again, in between.
        } else {
            os::yield_cpu();  // Another thread opens it; this one faults again until it has.
        }
        errno = saved_errno;
        return true;
    }

    void make_writable(std::uint64_t page) noexcept
    {
        if (!protect(pages_.address_of(page), pages_.address_of(page + 1), PROT_READ | PROT_WRITE)) {
            mappings_ran_out_.store(true, std::memory_order_relaxed);
            pages_.make_all_writable();
        }
    }

    /// The next write to a page that is open faults. A store in between is in the copy that the caller makes next.
    bool set_armed(std::uint64_t page) noexcept
    {
        std::uint8_t seen = open;
        const bool was_open = AtomicState(states_[page]).compare_exchange_strong(seen, armed, std::memory_order_acq_rel);
        if (was_open) {
            open_pages_.fetch_sub(1, std::memory_order_relaxed);
        }
        return was_open;
    }
    /// Pages into which a system call may be storing stay as they are: the kernel would answer EFAULT.
    void arm(std::uintptr_t begin, std::uintptr_t end) noexcept
    {
        const kernel_writes::Protecting protecting;
        for (std::uintptr_t at = begin; at < end;) {
            const auto busy = kernel_writes::first_in_flight(at, end);
            for (std::uint64_t page = pages_.index_of(at); page < pages_.index_of(busy.begin); ++page) {
                set_armed(page);
            }
            if (at != busy.begin) {
                protect(at, busy.begin, PROT_READ);
            }
            at = busy.end;
        }
    }

    /// A call that has not returned has marked nothing yet.
    [[nodiscard]] bool in_flight(std::uint64_t page) const noexcept
    {
        return kernel_writes::first_in_flight(pages_.address_of(page), pages_.address_of(page + 1)).begin == pages_.address_of(page);
    }

    /// In a stop: what is marked, and what is written and is not. A chunk at a time, so that its runs have room.
    [[nodiscard]] std::uintptr_t verify(std::uintptr_t begin, std::uintptr_t end, WrittenRun* runs, std::size_t capacity,
                                        std::size_t& count) noexcept
    {
        count = 0;
        for (std::uintptr_t at = begin; at < end; at += HotChunks::chunk_bytes) {
            if (capacity - count < HotChunks::chunk_pages / 2) {
                end = at;
                break;
            }
            add_runs(at, written_in_chunk(at, std::min(end, at + HotChunks::chunk_bytes)), runs, count);
        }
        arm(begin, end);  // One mapping again.
        return end;
    }

    /// A bit for each page.
    [[nodiscard]] std::uint64_t written_in_chunk(std::uintptr_t begin, std::uintptr_t end) noexcept
    {
        static_assert(HotChunks::chunk_pages == 64);
        WrittenRun marked[HotChunks::chunk_pages];
        std::size_t marked_count = 0;
        // There is room for every run of a chunk.
        [[maybe_unused]] const auto stopped = marks_->collect(begin, end, ScanMode::stop, marked, HotChunks::chunk_pages, marked_count);
        std::uint64_t written = 0;
        for (std::size_t i = 0; i < marked_count; ++i) {
            for (std::uintptr_t page = marked[i].begin; page < marked[i].end; page += page_bytes) {
                written |= std::uint64_t{1} << ((page - begin) / page_bytes);
            }
        }
        const std::uint64_t first = pages_.index_of(begin);
        for (std::uint64_t i = 0; i < (end - begin) / page_bytes; ++i) {
            const std::uint64_t bit = std::uint64_t{1} << i;
            if (AtomicState(states_[first + i]).load(std::memory_order_acquire) != open) {
                continue;
            }
            if ((written & bit) != 0) {
                note_marked_lines(first + i);
            }
            if (!in_flight(first + i) && differs(first + i, AtomicLines(marked_lines_[first + i]).load(std::memory_order_relaxed))) {
                written |= bit;
            }
        }
        return written;
    }

    /// The bytes of its other lines are not those they were when the page was armed. Keeps what there is to report.
    [[nodiscard]] bool differs(std::uint64_t page, std::uint64_t marked_lines) noexcept
    {
        const std::byte* const now = bytes_of(page);
        const std::byte* const before = before_.data() + page * page_bytes;
        std::uintptr_t first = 0;
        std::uintptr_t end = 0;
        for (std::size_t at = 0; at < page_bytes; ++at) {
            const bool is_marked = ((marked_lines >> (at / cache_line_bytes)) & 1U) != 0;
            if (now[at] != before[at] && !is_marked && !is_reset_by_recovery(pages_.address_of(page) + at)) {
                first = first == 0 ? pages_.address_of(page) + at : first;
                end = pages_.address_of(page) + at + 1;
            }
        }
        if (first == 0) {
            return false;
        }
        own_statistic(OwnStatistic::unmarked_pages).fetch_add(1, std::memory_order_relaxed);
        const std::lock_guard guard(findings_lock_);
        if (finding_count_ < findings_.size()) {
            findings_[finding_count_++] = {first, end, writers_[page]};
        }
        return true;
    }

    static void add_runs(std::uintptr_t begin, std::uint64_t pages, WrittenRun* runs, std::size_t& count) noexcept
    {
        for (; pages != 0; pages &= pages - 1) {
            const std::uintptr_t page = begin + static_cast<unsigned>(__builtin_ctzll(pages)) * page_bytes;
            if (count != 0 && runs[count - 1].end == page) {
                runs[count - 1].end += page_bytes;
            } else {
                runs[count++] = {page, page + page_bytes, true};
            }
        }
    }

    void report(const Finding& finding) noexcept
    {
        const os::CodeLocation first = os::locate_code(finding.writer[0]);
        const os::CodeLocation blamed = blamed_code(finding.writer);
        const std::uintptr_t key = blamed.function_begin != 0 ? blamed.function_begin : reinterpret_cast<std::uintptr_t>(finding.writer[0]);
        const auto told_end = told_.begin() + static_cast<std::ptrdiff_t>(told_count_);
        if (std::find(told_.begin(), told_end, key) != told_end || told_count_ == told_.size()) {
            return;
        }
        told_[told_count_++] = key;
        print(finding, first, blamed);
    }

    void print(const Finding& finding, const os::CodeLocation& first, const os::CodeLocation& blamed) const noexcept
    {
        char where[160];
        const DurablePlace place = find_durable_place(reinterpret_cast<const void*>(finding.first_byte));
        const auto where_end = place.block_bytes == 0 ? fmt::format_to_n(where, sizeof where, "outside every block")
                               : place.handle[0] == '\0'
                                   ? fmt::format_to_n(where, sizeof where, "{} bytes into a block of {}", place.block_offset,
                                                      place.block_bytes)
                                   : fmt::format_to_n(where, sizeof where, "{} bytes into \"{}\"", place.block_offset, place.handle);
        os::log(os::Severity::warning,
                "verify_marks: {} stored to durable memory and marked nothing: {:#x} to {:#x}, {} (image page {}). It is kept, but "
                "without verify_marks it would be lost: compile that code with `stillpoint cc`, describe it to the compiler, or call "
                "sp_mark_written(). Each function is named once",
                finding.writer[0] == nullptr ? std::string_view{"a system call"} : CodeText(first, blamed).view(), finding.first_byte,
                finding.end, std::string_view{where, static_cast<std::size_t>(where_end.out - where)}, pages_.index_of(finding.first_byte));
    }

    std::unique_ptr<Tracker> marks_;
    os::ReservedArray<std::uint8_t> states_;  ///< by image page
    os::ReservedArray<Callers> writers_;       ///< by image page, of pages that are open
    /// By image page: lines that had marks since the page was opened. A page stays open in a look if a thread is opening it just then, and
    /// others may have stored to it already.
    os::ReservedArray<std::uint64_t> marked_lines_;
    os::ReservedArray<std::byte> before_;  ///< the image's bytes, of pages that are open
    ProtectedPages pages_;
    std::atomic<std::uint64_t> open_pages_{0};
    std::atomic<bool> mappings_ran_out_{false};
    bool mappings_ran_out_told_ = false;

    os::FutexLock findings_lock_;
    std::array<Finding, 64> findings_{};
    std::size_t finding_count_ = 0;
    std::array<std::uintptr_t, 256> told_{};  ///< functions that were named
    std::size_t told_count_ = 0;
};

}  // namespace

Result<std::unique_ptr<Tracker>> make_verifying_tracker(std::unique_ptr<Tracker> marks, std::uint64_t image_bytes_max)
{
    auto tracker = std::make_unique<VerifyingTracker>(std::move(marks));
    if (auto reserved = tracker->reserve(image_bytes_max); !reserved) {
        return pass_on(reserved.error());
    }
    return tracker;
}

}  // namespace stillpoint::pmthreads
