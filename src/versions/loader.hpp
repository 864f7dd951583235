#pragma once
// Loader: brings the consistent copies of a recovered image into the shadow [PMThreads §4.3].
//
// The paper maps each copy privately. Copies that alternate between two places page by page
// would need a mapping each, more than the kernel allows for a large heap. So: lazy loading
// serves the first touch of a page through userfaultfd, while background threads read the file
// in its own order; eager loading reads everything before the program runs. Both verify each page.

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "core/findings.hpp"
#include "core/result.hpp"
#include "os/futex.hpp"
#include "runtime/shadow.hpp"
#include "versions/delta_replay.hpp"
#include "versions/version_table.hpp"
#include "os/reserved_array.hpp"
#include "os/service_thread.hpp"
#include "os/userfaultfd.hpp"

namespace stillpoint::versions {

/// The loader works on a copy of the consistent slots: a page that is not loaded yet is not dirty, so its slot
/// stays what it was, while the checkpoint thread switches those of others.
/// Threads: start and stop by the owner; the rest is internal. A damaged or unreadable page found while
/// the program runs ends the process with a message: the program must not see it.
class Loader {
public:
    struct Source {
        const VersionTable* table;
        const Medium* medium;
        std::uint64_t pages_end;  ///< one past the last image page that has a copy
        /// By image page: where it is 0 the content hash of what is loaded is put. May be nullptr.
        std::uint64_t* content_hashes = nullptr;
        /// Lines to lay over the copies. nullptr: there are none.
        DeltaReplay* replay = nullptr;
    };

    Loader() = default;
    Loader(const Loader&) = delete;
    Loader& operator=(const Loader&) = delete;
    ~Loader() { stop(); }

    [[nodiscard]] Result<void> prepare(const Source& source);

    /// Reads all pages into memory that is accessible and not tracked.
    /// Errors: pool_corrupt (page and file offset), pool_truncated, io.
    [[nodiscard]] Result<void> load_all(std::byte* destination, void (*progress)(std::uint64_t done, std::uint64_t total) = nullptr,
                                        Findings* findings = nullptr);

    /// Serves first touches from now on, and reads ahead in the background. `uffd` reports absent
    /// pages of [destination, + pages_end pages) already. Errors: no_memory.
    [[nodiscard]] Result<void> start_lazy(std::byte* destination, os::Userfaultfd& uffd);

    /// Returns once every page is in memory: before fork, since a child has no loader.
    void finish_loading() noexcept;
    void stop() noexcept;
    void detach_after_fork() noexcept;

    [[nodiscard]] std::uint64_t pages_loaded() const noexcept { return loaded_count_.load(std::memory_order_relaxed); }

private:
    static constexpr std::size_t threads_max = 8;
    static constexpr std::uint64_t pages_of_a_thread = 2048;  ///< at least; fewer are not worth a thread
    static constexpr std::uint64_t cluster_pages = 16;        ///< loaded round a fault
    static constexpr std::uint64_t window_pages_max = 512;    ///< likewise, where a thread goes through memory in order
    static constexpr std::uint64_t batch_pages = 256;         ///< read at once from block media
    static constexpr std::uint64_t batch_pages_mapped = 64;   ///< read at once where reading is copying: what a CPU's cache takes

    struct LocatedPage {
        std::uint32_t location;
        std::uint32_t image_page;
    };

    /// A thread that loads a share of the copies.
    struct Reader {
        Loader* loader = nullptr;
        os::ServiceThread thread;
        os::ReservedArray<std::byte> buffer;
    };

    static void serve_faults(void* self);
    static void begin_read_ahead(void* reader);
    static void read_ahead(void* reader);
    static void copy_share_beside(void* reader);
    void sort_copies();
    [[nodiscard]] bool is_read_with(const LocatedPage& copy, const LocatedPage& next) const noexcept;
    /// The next copies that are read together, at most a batch; none: all are taken.
    [[nodiscard]] std::span<const LocatedPage> take_run() noexcept;
    [[nodiscard]] Result<void> read_run(std::span<const LocatedPage> run, std::byte* buffer) const;
    /// Compares the copy's checksum, and lays later lines over it.
    [[nodiscard]] Result<void> verify(std::uint64_t image_page, std::byte* bytes) const;
    void copy_share(Reader& reader, void (*progress)(std::uint64_t done, std::uint64_t total), Findings* findings);
    [[nodiscard]] Result<void> copy_runs(Reader& reader, void (*progress)(std::uint64_t done, std::uint64_t total), Findings* findings);
    void load_run(std::span<const LocatedPage> run, std::byte* buffer) noexcept;
    void load_unclaimed(std::span<const LocatedPage> run, std::byte* buffer) noexcept;
    void load_page(std::uint64_t image_page, std::byte* buffer) noexcept;
    void load_neighbours(std::uint64_t first, std::uint64_t end, std::byte* buffer) noexcept;
    void serve_fault(std::uint64_t image_page, std::byte* buffer) noexcept;
    void end_read_ahead(Reader& reader) noexcept;
    void release_tables() noexcept;
    std::uint64_t place_zeroes(std::uint64_t first, std::uint64_t end) noexcept;
    void place(std::uint64_t first, std::uint64_t count, const std::byte* bytes) noexcept;
    [[nodiscard]] bool is_loaded(std::uint64_t image_page) const noexcept;
    /// False: another thread has claimed it.
    [[nodiscard]] bool claim(std::uint64_t image_page) noexcept;
    void end_process_unless_loaded(const Failure& failure, std::uint64_t image_page) const noexcept;

    Source source_{};
    os::ReservedArray<VersionSlot> slots_;  ///< by image page
    std::byte* destination_ = nullptr;
    os::Userfaultfd* uffd_ = nullptr;
    mutable os::ReservedArray<std::uint64_t> loaded_;  ///< a bit for each page
    os::ReservedArray<std::uint64_t> claimed_;         ///< likewise: a thread is loading it, or has
    os::ReservedArray<LocatedPage> order_;
    os::FutexLock order_lock_;  ///< of the next three
    std::uint64_t order_count_ = 0;
    std::uint64_t order_next_ = 0;
    Result<void> outcome_;  ///< of eager loading
    std::array<Reader, threads_max> readers_;
    std::size_t reader_count_ = 0;  ///< the first ones are used
    std::atomic<std::uint32_t> readers_at_work_{0};
    os::ReservedArray<std::byte> fault_buffer_;
    os::ReservedArray<std::byte> zeroes_;  ///< never written
    os::ServiceThread fault_thread_;
    // The page that the fault thread has last loaded.
    std::uint64_t fault_before_ = 0;
    std::uint64_t window_ = cluster_pages;
    std::uint64_t window_end_ = 0;
    std::atomic<std::uint64_t> loaded_count_{0};
    std::atomic<std::uint32_t> complete_{0};
    std::atomic<bool> stopping_{false};
};

}  // namespace stillpoint::versions
