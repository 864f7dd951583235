#pragma once
// Trackers: find the pages of the shadow that the program wrote [PMThreads §3.2].

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "core/result.hpp"
#include "os/userfaultfd.hpp"

namespace stillpoint::pmthreads {

/// A run of pages that were written, or may have been.
struct WrittenRun {
    std::uintptr_t begin;
    std::uintptr_t end;
    bool certain;  ///< false: the pages are not armed at all; compare before writing them out
};

/// When the tracker looks for written pages.
enum class ScanMode {
    background,  ///< the program runs and writes on
    stop,        ///< in a quiescent state: everything written since the last stop must be found
};

/// A page is *armed* while the next write to it will be noticed.
class Tracker {
public:
    virtual ~Tracker() = default;

    [[nodiscard]] virtual std::string_view name() const noexcept = 0;

    /// Begins to track [begin, begin + size) with every page armed: what was written before is not
    /// news. Absent pages of the first `served_bytes` are faults for userfaultfd()'s owner to
    /// serve; 0 where there is none. Errors: unsupported, no_memory.
    [[nodiscard]] virtual Result<void> add_range(std::byte* begin, std::size_t size, std::size_t served_bytes) = 0;

    /// Finds pages of [begin, end) that were written since they were armed, arms them again and
    /// fills `runs`. Returns where it stopped (the caller continues from there), 0 on failure with errno.
    /// Several threads may look through different ranges at once, each a multiple of 64 pages.
    /// Outside a quiescent state a page may be written again at once: it is then found by the
    /// next call. So: arm first, copy afterwards.
    [[nodiscard]] virtual std::uintptr_t collect(std::uintptr_t begin, std::uintptr_t end, ScanMode scan_mode, WrittenRun* runs,
                                                 std::size_t capacity, std::size_t& count) noexcept = 0;
    /// Whether it knows the lines that were written, too.
    [[nodiscard]] virtual bool has_lines() const noexcept { return false; }
    /// A bit for each line of the page, lowest first, that looks found since the last call. 0: the page was found, and nothing in it: its
    /// lines are found by the next look. Only where it has lines.
    [[nodiscard]] virtual std::uint64_t take_found_lines(std::uint64_t /*image_page*/) noexcept { return 0; }
    /// While the program runs, before the whole page is copied ahead, of which a look found some lines or none: locks in its other lines
    /// may be held just then. order_copies() follows, once for several pages, and then the copies.
    virtual void take_whole_page(std::uint64_t /*image_page*/) noexcept {}
    virtual void order_copies() noexcept {}
    /// In a stop: all that was found is the epoch's; what is copied ahead from now on is the next one's.
    virtual void epoch_captured() noexcept {}
    /// The page, found without certainty, was not written.
    virtual void note_unchanged(std::uint64_t /*image_page*/) noexcept {}
    /// An epoch was captured and compared: the tracker may change what it arms.
    virtual void end_epoch() noexcept {}
    /// True while some pages are not armed: only a stop tells whether they were written.
    [[nodiscard]] virtual bool has_unarmed_pages() const noexcept { return false; }

    /// True if it finds writes without the page tables: huge pages then cost it nothing.
    [[nodiscard]] virtual bool allows_huge_pages() const noexcept { return false; }

    /// True if the fault was a first write to an armed page; it may be retried now.
    /// Async-signal-safe.
    [[nodiscard]] virtual bool handle_fault(void* address) noexcept = 0;
    [[nodiscard]] virtual bool needs_fault_handler() const noexcept = 0;
    /// Marks [address, +size) written and writable, for a system call that is about to write it.
    virtual void prepare_kernel_write(void* address, std::size_t size) noexcept = 0;
    /// The userfaultfd where the tracker has one: missing pages of the same range must use it.
    [[nodiscard]] virtual os::Userfaultfd* userfaultfd() noexcept { return nullptr; }
    /// In a child after fork: writable memory, nothing tracked.
    virtual void detach_after_fork() noexcept = 0;
};

/// userfaultfd write protection in asynchronous mode + PAGEMAP_SCAN. Errors: unsupported.
[[nodiscard]] Result<std::unique_ptr<Tracker>> make_uffd_tracker(std::uint64_t image_bytes_max);
/// mprotect + SIGSEGV, the published PMThreads-P.
[[nodiscard]] Result<std::unique_ptr<Tracker>> make_mprotect_tracker(std::uint64_t image_bytes_max);

/// Marks that the program's own code sets in the card table: PMThreads-I [PMThreads §3.2].
[[nodiscard]] Result<std::unique_ptr<Tracker>> make_hooks_tracker(std::uint64_t image_bytes_max);

/// `marks`, and a cross-check of them with what is written: option verify_marks. Errors: no_memory.
[[nodiscard]] Result<std::unique_ptr<Tracker>> make_verifying_tracker(std::unique_ptr<Tracker> marks, std::uint64_t image_bytes_max);

/// "uffd", "mprotect", "hooks", or "auto": uffd where the kernel has it, never hooks, since it cannot be known here
/// that every store of the program is marked. Errors: unsupported (a forced
/// tracker that is not available), invalid_argument.
[[nodiscard]] Result<std::unique_ptr<Tracker>> make_tracker(std::string_view choice, std::uint64_t image_bytes_max, bool verify_marks);

}  // namespace stillpoint::pmthreads
