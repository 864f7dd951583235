#include <cerrno>
#include <cstring>

#include "engines/pmthreads/tracker.hpp"

namespace stillpoint::pmthreads {

namespace {

class UffdTracker final : public Tracker {
public:
    UffdTracker(os::Userfaultfd uffd, os::PagemapScanner scanner) noexcept
        : uffd_(std::move(uffd)), scanner_(std::move(scanner))
    {
    }

    [[nodiscard]] std::string_view name() const noexcept override { return "uffd"; }

    [[nodiscard]] Result<void> add_range(std::byte* begin, std::size_t size,
                                         std::size_t served_bytes) override
    {
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

    [[nodiscard]] std::uintptr_t collect(std::uintptr_t begin, std::uintptr_t end, os::PageRun* runs,
                                         std::size_t capacity, std::size_t& count) noexcept override
    {
        return scanner_.collect_written(begin, end, runs, capacity, count);
    }

    [[nodiscard]] bool handle_fault(void* /*address*/) noexcept override { return false; }
    [[nodiscard]] bool needs_fault_handler() const noexcept override { return false; }
    void prepare_kernel_write(void* /*address*/, std::size_t /*size*/) noexcept override {}
    [[nodiscard]] os::Userfaultfd* userfaultfd() noexcept override { return &uffd_; }
    // The kernel drops the registration of the child's copy by itself.
    void detach_after_fork() noexcept override { uffd_.close(); }

private:
    /// The kernel reports an absent page that was never armed as written.
    [[nodiscard]] Result<void> arm(std::uintptr_t begin, std::size_t size) noexcept
    {
        os::PageRun runs[64];
        std::size_t count = 0;
        for (std::uintptr_t at = begin; at < begin + size;) {
            at = scanner_.collect_written(at, begin + size, runs, 64, count);
            if (at == 0) {
                return fail(SP_E_UNSUPPORTED, errno,
                            "PAGEMAP_SCAN does not work here ({}); use the tracker mprotect",
                            std::strerror(errno));
            }
        }
        return {};
    }

    os::Userfaultfd uffd_;
    os::PagemapScanner scanner_;
};

}  // namespace

Result<std::unique_ptr<Tracker>> make_uffd_tracker()
{
    auto uffd = os::Userfaultfd::open();
    if (!uffd) {
        return pass_on(uffd.error());
    }
    auto scanner = os::PagemapScanner::open();
    if (!scanner) {
        return pass_on(scanner.error());
    }
    return std::make_unique<UffdTracker>(std::move(*uffd), std::move(*scanner));
}

Result<std::unique_ptr<Tracker>> make_tracker(std::string_view choice,
                                              std::uint64_t image_bytes_max)
{
    if (choice == "mprotect") {
        return make_mprotect_tracker(image_bytes_max);
    }
    if (choice != "auto" && choice != "uffd") {
        return fail(SP_E_INVALID_ARGUMENT, 0,
                    "unknown tracker \"{}\"; pmthreads has auto, uffd and mprotect", choice);
    }
    auto uffd = make_uffd_tracker();
    if (uffd || choice == "uffd") {
        return uffd;
    }
    return make_mprotect_tracker(image_bytes_max);
}

}  // namespace stillpoint::pmthreads
