#pragma once
// Loader: brings the consistent copies of a recovered image into the shadow [PMThreads §4.3].
//
// The paper maps each copy privately. Copies that alternate between two places page by page
// would need a mapping each, more than the kernel allows for a large heap. So: lazy loading
// serves the first touch of a page through userfaultfd, while a background thread reads the file
// in its own order; eager loading reads everything before the program runs. Both verify each page.

#include <atomic>
#include <cstdint>

#include "core/findings.hpp"
#include "core/result.hpp"
#include "runtime/shadow.hpp"
#include "versions/version_table.hpp"
#include "os/reserved_array.hpp"
#include "os/service_thread.hpp"
#include "os/userfaultfd.hpp"

namespace stillpoint::versions {

/// It works on a copy of the consistent slots: a page that is not loaded yet is not dirty, so its slot
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
    };

    Loader() = default;
    Loader(const Loader&) = delete;
    Loader& operator=(const Loader&) = delete;
    ~Loader() { stop(); }

    [[nodiscard]] Result<void> prepare(const Source& source);

    /// Reads all pages into memory that is accessible and not tracked.
    /// Errors: pool_corrupt (page and file offset), pool_truncated, io.
    [[nodiscard]] Result<void> load_all(std::byte* destination,
                                        void (*progress)(std::uint64_t done, std::uint64_t total) = nullptr,
                                        Findings* findings = nullptr);

    /// Serves first touches from now on, and reads ahead in the background. `uffd` reports absent
    /// pages of [destination, + pages_end pages) already. Errors: no_memory.
    [[nodiscard]] Result<void> start_lazy(std::byte* destination, os::Userfaultfd& uffd);

    /// Returns once every page is in memory: before fork, since a child has no loader.
    void finish_loading() noexcept;
    void stop() noexcept;
    void detach_after_fork() noexcept;

    [[nodiscard]] std::uint64_t pages_loaded() const noexcept
    {
        return loaded_count_.load(std::memory_order_relaxed);
    }

private:
    static constexpr std::uint64_t cluster_pages = 16;   ///< loaded round a fault
    static constexpr std::uint64_t batch_pages = 256;    ///< read at once in the background

    struct Located {
        std::uint32_t location;
        std::uint32_t image_page;
    };

    static void serve_faults(void* self);
    static void read_ahead(void* self);
    /// The copies in the order of the file.
    [[nodiscard]] std::uint64_t sort_by_location();
    /// How many of the sorted copies from `next` on lie next to each other: one read, at most a batch.
    [[nodiscard]] std::uint64_t run_from(std::uint64_t next, std::uint64_t total) const noexcept;
    /// Reads and verifies `count` copies that lie next to each other in the file.
    [[nodiscard]] Result<void> read_run(const Located* run, std::uint64_t count, std::byte* buffer) const;
    [[nodiscard]] Result<void> verify(std::uint64_t image_page, const std::byte* bytes) const;
    std::uint64_t load_neighbours(std::uint64_t first, std::uint64_t count, std::byte* buffer);
    void load_cluster(std::uint64_t image_page, std::byte* buffer);
    void place(std::uint64_t image_page, const std::byte* bytes) noexcept;
    [[nodiscard]] bool is_loaded(std::uint64_t image_page) const noexcept;
    void end_process_unless_loaded(const Failure& failure, std::uint64_t image_page) const noexcept;

    Source source_{};
    os::ReservedArray<VersionSlot> slots_;  ///< by image page
    std::byte* destination_ = nullptr;
    os::Userfaultfd* uffd_ = nullptr;
    mutable os::ReservedArray<std::uint64_t> loaded_;  ///< a bit for each page
    os::ReservedArray<Located> order_;
    os::ReservedArray<std::byte> fault_buffer_;
    os::ReservedArray<std::byte> batch_buffer_;
    os::ServiceThread fault_thread_;
    os::ServiceThread read_ahead_thread_;
    std::atomic<std::uint64_t> loaded_count_{0};
    std::atomic<std::uint32_t> complete_{0};
    std::atomic<bool> stopping_{false};
};

}  // namespace stillpoint::versions
