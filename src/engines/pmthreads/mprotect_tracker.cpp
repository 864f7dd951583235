// The tracker of the published PMThreads-P: pages are read-only until first written; the fault
// is taken as SIGSEGV [PMThreads §3.2]. Slower than userfaultfd (6 to 12 us a fault), and works everywhere.

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <sys/mman.h>

#include "core/units.hpp"
#include "engines/pmthreads/tracker.hpp"
#include "os/own_mappings.hpp"
#include "os/reserved_array.hpp"
#include "os/thread_calls.hpp"
#include "runtime/kernel_writes.hpp"
#include "runtime/protected_pages.hpp"

namespace stillpoint::pmthreads {

namespace {

class MprotectTracker final : public Tracker {
public:
    [[nodiscard]] Result<void> reserve(std::uint64_t image_bytes_max)
    {
        pages_max_ = image_bytes_max / page_bytes;
        return written_.reserve(pages_max_ / 64 + 1, "the map of written pages");
    }

    [[nodiscard]] std::string_view name() const noexcept override { return "mprotect"; }

    [[nodiscard]] Result<void> add_range(std::byte* begin, std::size_t size, std::size_t /*served_bytes*/) override
    {
        return pages_.add(begin, size);
    }

    /// The bit is taken before the page is protected: a write in between faults only after the
    /// protection, and its handler sets the bit again.
    [[nodiscard]] std::uintptr_t collect(std::uintptr_t begin, std::uintptr_t end, ScanMode scan_mode, WrittenRun* runs,
                                         std::size_t capacity, std::size_t& count) noexcept override
    {
        count = 0;
        // A page that is open and not marked yet may have been written by another thread's FASE, though the thread
        // in the handler is outside one and is not waited for. A handler waits for no thread.
        while (scan_mode == ScanMode::stop && opening_.load(std::memory_order_acquire) != 0) {
            os::yield_cpu();
        }
        std::uint64_t page = pages_.index_of(begin);
        const std::uint64_t end_page = pages_.index_of(end);
        while (page < end_page) {
            const std::uint64_t first = next_written(page, end_page);
            if (first >= end_page) {
                break;
            }
            if (count == capacity) {
                return pages_.address_of(first);
            }
            const kernel_writes::Protecting protecting;
            const auto [busy, busy_end] = in_flight(first, end_page);
            if (busy == first) {
                // The kernel would answer EFAULT. The marks stay until the call has returned.
                page = end_of_written(first, busy_end);
                if (scan_mode == ScanMode::stop) {
                    runs[count++] = {pages_.address_of(first), pages_.address_of(page), false};
                }
                continue;
            }
            std::uint64_t last = first;
            while (last < busy && take(last)) {
                ++last;
            }
            if (last == first) {
                page = first + 1;
                continue;
            }
            if (!protect(first, last - first, PROT_READ)) {
                if (errno != ENOMEM) {
                    return 0;
                }
                // No mapping is left to split off: the pages stay writable, so each later call
                // must find them again.
                mark(first, last - first);
            }
            runs[count++] = {pages_.address_of(first), pages_.address_of(last), true};
            page = last;
        }
        return end;
    }

    [[nodiscard]] bool handle_fault(void* address) noexcept override
    {
        const auto page = pages_.find(address);
        return page && open_page(*page);
    }

    [[nodiscard]] bool needs_fault_handler() const noexcept override { return true; }

    void prepare_kernel_write(void* address, std::size_t size) noexcept override
    {
        const auto touched = pages_.touched(address, size);
        if (touched.first == touched.end || open_run(touched.first, touched.end)) {
            return;
        }
        for (auto page = touched.first; page < touched.end; ++page) {
            open_page(page);
        }
    }

    void detach_after_fork() noexcept override
    {
        opening_.store(0, std::memory_order_relaxed);  // The threads that opened pages do not exist here.
        pages_.make_all_writable();
    }

private:
    using Word = std::uint64_t;

    /// Writable first, marked second: if the mark came first, a collect between the two would take
    /// the mark and protect the page, and this would then open it with no mark left.
    ///
    /// Each run of writable pages is a mapping, and a process has 65530 of them by default: where
    /// one more is refused a larger run is opened, until it meets its neighbours.
    bool open_page(std::uint64_t page) noexcept
    {
        const int saved_errno = errno;
        const std::uint64_t end_page = pages_.count();
        bool opened = false;
        opening_.fetch_add(1, std::memory_order_seq_cst);
        for (std::uint64_t run = 1; !opened; run *= 8) {
            const std::uint64_t first = page / run * run;
            const std::uint64_t count = std::min(run, end_page - first);
            opened = protect(first, count, PROT_READ | PROT_WRITE);
            if (opened) {
                mark(first, count);
            } else if (errno != ENOMEM || run >= end_page) {
                break;
            }
        }
        opening_.fetch_sub(1, std::memory_order_release);
        errno = saved_errno;
        return opened;
    }

    /// False: it takes more mappings than there are, or less than the whole.
    bool open_run(std::uint64_t first, std::uint64_t end) noexcept
    {
        const int saved_errno = errno;
        opening_.fetch_add(1, std::memory_order_seq_cst);
        const bool opened = protect(first, end - first, PROT_READ | PROT_WRITE);
        if (opened) {
            mark(first, end - first);
        }
        opening_.fetch_sub(1, std::memory_order_release);
        errno = saved_errno;
        return opened;
    }

    [[nodiscard]] bool protect(std::uint64_t first, std::uint64_t count, int protection) const noexcept
    {
        return os::protect_own(reinterpret_cast<void*>(pages_.address_of(first)), count * page_bytes, protection) == 0;
    }

    void mark(std::uint64_t first, std::uint64_t count) noexcept
    {
        for (std::uint64_t page = first; page < first + count; ++page) {
            std::atomic_ref<Word>(written_[page / 64]).fetch_or(Word{1} << (page % 64), std::memory_order_seq_cst);
        }
    }

    bool take(std::uint64_t page) noexcept
    {
        const Word bit = Word{1} << (page % 64);
        return (std::atomic_ref<Word>(written_[page / 64]).fetch_and(~bit, std::memory_order_seq_cst) & bit) != 0;
    }

    [[nodiscard]] std::uint64_t next_written(std::uint64_t page, std::uint64_t end_page) noexcept
    {
        while (page < end_page) {
            const Word here = std::atomic_ref<Word>(written_[page / 64]).load(std::memory_order_acquire) >> (page % 64);
            if (here != 0) {
                return page + static_cast<unsigned>(__builtin_ctzll(here));
            }
            page = (page / 64 + 1) * 64;
        }
        return end_page;
    }

    /// One past the marked pages that follow `page`, which is marked.
    [[nodiscard]] std::uint64_t end_of_written(std::uint64_t page, std::uint64_t end_page) noexcept
    {
        while (page < end_page && next_written(page, page + 1) == page) {
            ++page;
        }
        return page;
    }

    /// The first part of [first, end) into which the kernel may be storing.
    [[nodiscard]] ProtectedPages::Run in_flight(std::uint64_t first, std::uint64_t end) const noexcept
    {
        const auto run = kernel_writes::first_in_flight(pages_.address_of(first), pages_.address_of(end));
        return {pages_.index_of(run.begin), pages_.index_of(run.end)};
    }

    os::ReservedArray<Word> written_;
    std::uint64_t pages_max_ = 0;
    ProtectedPages pages_;
    std::atomic<std::uint32_t> opening_{0};  ///< threads between opening a page and marking it
};

}  // namespace

Result<std::unique_ptr<Tracker>> make_mprotect_tracker(std::uint64_t image_bytes_max)
{
    auto tracker = std::make_unique<MprotectTracker>();
    if (auto reserved = tracker->reserve(image_bytes_max); !reserved) {
        return pass_on(reserved.error());
    }
    return tracker;
}

}  // namespace stillpoint::pmthreads
