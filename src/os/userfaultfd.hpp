#pragma once
// userfaultfd: asynchronous write protection (Linux >= 6.7) and missing-page faults.

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/result.hpp"

namespace stillpoint::os {

/// One userfaultfd. For tracking it has asynchronous write protection: the kernel resolves a write fault by
/// itself and remembers the page as written, for PAGEMAP_SCAN to find. For serving only it reports absent pages,
/// which older kernels do too.
class Userfaultfd {
public:
    enum class Scope {
        user_and_kernel,  ///< a system call that touches a missing page waits for the handler too
        user_only,        ///< such a call fails with EFAULT; all that an unprivileged process may have
    };

    enum class Purpose { tracking, serving_only };

    /// Errors: unsupported, saying which of the kernel's parts is missing or not permitted.
    [[nodiscard]] static Result<Userfaultfd> open(Purpose purpose = Purpose::tracking);

    Userfaultfd(Userfaultfd&& other) noexcept
        : descriptor_(std::exchange(other.descriptor_, -1)), wake_descriptor_(std::exchange(other.wake_descriptor_, -1)),
          scope_(other.scope_), purpose_(other.purpose_)
    {
    }
    Userfaultfd& operator=(Userfaultfd&& other) noexcept
    {
        std::swap(descriptor_, other.descriptor_);
        std::swap(wake_descriptor_, other.wake_descriptor_);
        std::swap(scope_, other.scope_);
        std::swap(purpose_, other.purpose_);
        return *this;
    }
    ~Userfaultfd();

    [[nodiscard]] Scope scope() const noexcept { return scope_; }

    /// Tracks writes to a range, if that is the purpose; with `missing`, faults on absent pages come to
    /// wait_for_fault().
    /// Errors: unsupported.
    [[nodiscard]] Result<void> register_range(const std::byte* begin, std::size_t size, bool missing);

    /// The value that wait_for_fault() returns once the descriptor was closed by other code.
    static constexpr std::uintptr_t lost = UINTPTR_MAX;
    /// Waits for the next missing-page fault and returns its address; 0 after wake_waiter(); or `lost`. A
    /// page may be reported twice.
    [[nodiscard]] std::uintptr_t wait_for_fault() noexcept;
    /// Makes wait_for_fault() return 0, now or the next time it is called.
    void wake_waiter() noexcept;

    /// Places copies of whole pages, write-protected where writes are tracked (so they count as clean), and wakes the threads that wait
    /// for them. Pages that are there already stay as they are. Any number of threads.
    /// Cost: a system call, and 0.4 us a page.
    void place_pages(std::byte* destination, const std::byte* source, std::size_t size) noexcept;

    void close() noexcept;

private:
    Userfaultfd(int descriptor, int wake_descriptor, Scope scope, Purpose purpose) noexcept
        : descriptor_(descriptor), wake_descriptor_(wake_descriptor), scope_(scope), purpose_(purpose)
    {
    }

    int descriptor_ = -1;
    int wake_descriptor_ = -1;  ///< an eventfd
    Scope scope_ = Scope::user_only;
    Purpose purpose_ = Purpose::tracking;
};

/// A run of pages, by address.
struct PageRun {
    std::uintptr_t begin;
    std::uintptr_t end;
};

/// PAGEMAP_SCAN of this process: finds pages written since they were last write-protected and
/// protects them again, in one walk.
class PagemapScanner {
public:
    /// Errors: unsupported.
    [[nodiscard]] static Result<PagemapScanner> open();
    PagemapScanner(PagemapScanner&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    PagemapScanner& operator=(PagemapScanner&& other) noexcept
    {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    ~PagemapScanner();

    /// Fills `runs` (at most `capacity`) from the written pages in [begin, end) and protects them
    /// again. Returns where the walk stopped: call again from there while it is below `end`.
    /// 0: the kernel refused (errno).
    /// Cost: about 2 ns for each clean page walked, 50 ns for each written one.
    [[nodiscard]] std::uintptr_t collect_written(std::uintptr_t begin, std::uintptr_t end, PageRun* runs, std::size_t capacity,
                                                 std::size_t& count) const noexcept;

private:
    explicit PagemapScanner(int descriptor) noexcept : descriptor_(descriptor) {}
    int descriptor_ = -1;
};

}  // namespace stillpoint::os
