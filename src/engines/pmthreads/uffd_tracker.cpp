#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/units.hpp"
#include "engines/pmthreads/hot_chunks.hpp"
#include "engines/pmthreads/tracker.hpp"

namespace stillpoint::pmthreads {

namespace {

class UffdTracker final : public Tracker {
public:
    UffdTracker(os::Userfaultfd uffd, os::PagemapScanner scanner) noexcept : uffd_(std::move(uffd)), scanner_(std::move(scanner)) {}
    [[nodiscard]] Result<void> reserve(std::uint64_t image_bytes_max) { return hot_.reserve(image_bytes_max); }

    [[nodiscard]] std::string_view name() const noexcept override { return "uffd"; }

    [[nodiscard]] Result<void> add_range(std::byte* begin, std::size_t size, std::size_t served_bytes) override
    {
        if (base_ == 0) {
            base_ = reinterpret_cast<std::uintptr_t>(begin);
        }
        hot_.cover(reinterpret_cast<std::uintptr_t>(begin) + size - base_);
        if (served_bytes != 0) {
            if (auto done = uffd_.register_range(begin, served_bytes, true); !done) {
                return done;
            }
        }
        if (served_bytes != size) {
            if (auto done = uffd_.register_range(begin + served_bytes, size - served_bytes, false); !done) {
                return done;
            }
        }
        return arm(reinterpret_cast<std::uintptr_t>(begin), size);
    }

    [[nodiscard]] std::uintptr_t collect(std::uintptr_t begin, std::uintptr_t end, ScanMode scan_mode, WrittenRun* runs,
                                         std::size_t capacity, std::size_t& count) noexcept override
    {
        count = 0;
        if (!hot_.any()) {
            return scan(begin, end, true, runs, capacity, count);
        }
        std::uintptr_t at = begin;
        while (at < end && count < capacity) {
            const std::uintptr_t hot_end = end_of_hot(at, end);
            if (hot_end != at) {
                if (scan_mode == ScanMode::stop) {
                    runs[count++] = {at, hot_end, false};
                }
                at = hot_end;
                continue;
            }
            const bool certain = !hot_.is_settling(chunk_at(at));
            at = scan(at, end_of_cold(at, end), certain, runs, capacity, count);
            if (at == 0) {
                return 0;
            }
        }
        return at;
    }
    void note_unchanged(std::uint64_t image_page) noexcept override { hot_.note_unchanged(image_page); }
    void end_epoch() noexcept override { hot_.end_epoch(); }
    [[nodiscard]] bool has_unarmed_pages() const noexcept override { return hot_.any(); }

    [[nodiscard]] bool handle_fault(void* /*address*/) noexcept override { return false; }
    [[nodiscard]] bool needs_fault_handler() const noexcept override { return false; }
    void prepare_kernel_write(void* /*address*/, std::size_t /*size*/) noexcept override {}
    [[nodiscard]] os::Userfaultfd* userfaultfd() noexcept override { return &uffd_; }
    // The kernel drops the registration of the child's copy by itself.
    void detach_after_fork() noexcept override { uffd_.close(); }

private:
    [[nodiscard]] std::uint64_t chunk_at(std::uintptr_t address) const noexcept { return (address - base_) / HotChunks::chunk_bytes; }
    [[nodiscard]] std::uintptr_t end_of_hot(std::uintptr_t at, std::uintptr_t end) const noexcept
    {
        while (at < end && hot_.is_hot(chunk_at(at))) {
            at = std::min(end, base_ + (chunk_at(at) + 1) * HotChunks::chunk_bytes);
        }
        return at;
    }
    /// End of a run of armed memory, or of settling memory.
    [[nodiscard]] std::uintptr_t end_of_cold(std::uintptr_t at, std::uintptr_t end) const noexcept
    {
        const bool settling = hot_.is_settling(chunk_at(at));
        while (at < end && !hot_.is_hot(chunk_at(at)) && hot_.is_settling(chunk_at(at)) == settling) {
            at = std::min(end, base_ + (chunk_at(at) + 1) * HotChunks::chunk_bytes);
        }
        return at;
    }

    /// Appends to `runs`; returns where the walk stopped.
    [[nodiscard]] std::uintptr_t scan(std::uintptr_t begin, std::uintptr_t end, bool certain, WrittenRun* runs, std::size_t capacity,
                                      std::size_t& count) noexcept
    {
        constexpr std::size_t found_max = 256;
        os::PageRun found[found_max];
        std::size_t found_count = 0;
        const std::uintptr_t stopped = scanner_.collect_written(begin, end, found, std::min(found_max, capacity - count), found_count);
        for (std::size_t i = 0; i < found_count; ++i) {
            runs[count++] = {found[i].begin, found[i].end, certain};
            hot_.note_written((found[i].begin - base_) / page_bytes, (found[i].end - found[i].begin) / page_bytes);
        }
        return stopped;
    }

    /// The kernel reports an absent page that was never armed as written.
    [[nodiscard]] Result<void> arm(std::uintptr_t begin, std::size_t size) noexcept
    {
        os::PageRun runs[64];
        std::size_t count = 0;
        for (std::uintptr_t at = begin; at < begin + size;) {
            at = scanner_.collect_written(at, begin + size, runs, 64, count);
            if (at == 0) {
                return fail(SP_E_UNSUPPORTED, errno, "PAGEMAP_SCAN does not work here ({}); use the tracker mprotect",
                            std::strerror(errno));
            }
        }
        return {};
    }

    os::Userfaultfd uffd_;
    os::PagemapScanner scanner_;
    HotChunks hot_;
    std::uintptr_t base_ = 0;
};

}  // namespace

Result<std::unique_ptr<Tracker>> make_uffd_tracker(std::uint64_t image_bytes_max)
{
    auto uffd = os::Userfaultfd::open();
    if (!uffd) {
        return pass_on(uffd.error());
    }
    auto scanner = os::PagemapScanner::open();
    if (!scanner) {
        return pass_on(scanner.error());
    }
    auto tracker = std::make_unique<UffdTracker>(std::move(*uffd), std::move(*scanner));
    if (auto reserved = tracker->reserve(image_bytes_max); !reserved) {
        return pass_on(reserved.error());
    }
    return tracker;
}

Result<std::unique_ptr<Tracker>> make_tracker(std::string_view choice, std::uint64_t image_bytes_max, bool verify_marks)
{
    if (choice == "mprotect") {
        return make_mprotect_tracker(image_bytes_max);
    }
    if (choice == "hooks") {
        auto marks = make_hooks_tracker(image_bytes_max);
        return marks && verify_marks ? make_verifying_tracker(std::move(*marks), image_bytes_max) : std::move(marks);
    }
    if (choice != "auto" && choice != "uffd") {
        return fail(SP_E_INVALID_ARGUMENT, 0, "unknown tracker \"{}\"; pmthreads has auto, uffd, mprotect and hooks", choice);
    }
    auto uffd = make_uffd_tracker(image_bytes_max);
    if (uffd || choice == "uffd") {
        return uffd;
    }
    return make_mprotect_tracker(image_bytes_max);
}

}  // namespace stillpoint::pmthreads
