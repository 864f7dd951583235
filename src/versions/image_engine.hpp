#pragma once
// ImageEngine: what the engines of page versions do alike. The program works on a shadow of the image; the version table says where each
// page's durable copy lies; a checkpoint thread of the engine's own writes what changed. How the engine finds written pages, and when it
// takes a checkpoint, is its own.

#include <memory>
#include <optional>
#include <string_view>

#include "os/futex.hpp"
#include "os/userfaultfd.hpp"
#include "runtime/engine.hpp"
#include "runtime/epoch_clock.hpp"
#include "runtime/shadow.hpp"
#include "versions/loader.hpp"
#include "versions/location_allocator.hpp"
#include "versions/recovered_state.hpp"
#include "versions/version_table.hpp"

namespace stillpoint::versions {

class ImageEngine : public Engine {
public:
    Result<void> run() override;
    [[nodiscard]] Result<void> stop(bool clean) override;
    void before_fork() noexcept override;
    void detach_after_fork() noexcept override;

    [[nodiscard]] std::byte* image_base() const noexcept override { return shadow_.base(); }
    [[nodiscard]] std::uint64_t image_bytes() const noexcept override { return shadow_.bytes(); }
    [[nodiscard]] const PoolFacts& pool_facts() const noexcept override { return pool_->facts(); }
    [[nodiscard]] std::uint64_t epoch() const noexcept override { return clock_.running(); }
    [[nodiscard]] std::uint64_t durable_epoch() const noexcept override { return clock_.durable(); }
    [[nodiscard]] Result<void> wait_durable(std::uint64_t epoch, std::uint64_t deadline_ns) override;
    [[nodiscard]] Result<void> checkpoint_now() override;
    [[nodiscard]] bool absorb_lost_page(void* address) noexcept override;

protected:
    /// For messages: what it calls a checkpoint, and what a thread may stay inside.
    struct Words {
        std::string_view checkpoint;
        std::string_view section;
    };
    explicit ImageEngine(const Words& words) noexcept : words_(words) {}

    // The steps that an engine does in its own way.
    [[nodiscard]] virtual Result<void> start_checkpoints() = 0;
    /// Takes a last checkpoint if `clean`, and ends what start_checkpoints() began. True: the last checkpoint was taken.
    [[nodiscard]] virtual bool end_checkpoints(bool clean) noexcept = 0;
    virtual void request_checkpoint() noexcept = 0;
    /// A segment that the pool has grown by. The medium's lock is held.
    virtual void announce_segment(const Segment& segment) noexcept = 0;
    /// The image in DRAM gets `bytes` bytes, more than it has: for grow_image(), under a lock of its own. Errors: no_memory.
    [[nodiscard]] virtual Result<void> enlarge_image(std::uint64_t bytes);
    /// Called in a child made by fork, after the loader and before the medium.
    virtual void detach_parts_after_fork() noexcept = 0;

    // Parts of start(), in this order, once pool_ is set.
    /// For engines whose segments all have the shape that `format` says. Errors: pool_corrupt.
    [[nodiscard]] Result<void> check_segments(const EngineFormat& format) const;
    /// Finds the durable epoch, rebuilds table and free locations, sets the clock. Errors: as recover_state(); no_memory.
    [[nodiscard]] Result<RecoveryReport> recover_table(Deltas* deltas = nullptr);
    /// Sets report.lazy by the option `recovery`; `auto_is_lazy`: auto takes it too, where the kernel serves first touches,
    /// of system calls too. Errors: unsupported.
    [[nodiscard]] Result<void> choose_loading(std::string_view choice, bool auto_is_lazy, RecoveryReport& report);
    /// Reads all pages that have a durable copy; if `lazy`, only prepares to. Errors: as Loader's.
    [[nodiscard]] Result<void> load_pages(bool lazy, std::uint64_t* content_hashes = nullptr, DeltaReplay* replay = nullptr);
    /// After load_pages() with `lazy`: pages are loaded at their first touch from here on, and read ahead in the background.
    [[nodiscard]] Result<void> serve_first_touches();
    /// Returns when every page is in memory, and no userfaultfd of the loader is registered any more.
    void finish_serving() noexcept;
    /// The figures that are visible from here on.
    void publish_start() const noexcept;

    /// Makes the pool hold that many bytes of the image, with the medium's lock held. Returns how many it holds. Errors: as Pool::grow().
    [[nodiscard]] Result<std::uint64_t> grow_pool(std::uint64_t wanted, const EngineFormat& format);
    [[nodiscard]] Result<void> check_may_grow() const;
    /// Engine::grow() for engines whose image in DRAM may grow beside all that they do. Errors: as Pool::grow(); no_memory.
    [[nodiscard]] Result<std::uint64_t> grow_image(std::uint64_t wanted, const EngineFormat& format);

    std::unique_ptr<Pool> pool_;
    Shadow shadow_;
    VersionTable table_;
    LocationAllocator locations_;
    std::optional<os::Userfaultfd> serving_;  ///< of pages that are loaded when first touched, unless a tracker serves them
    /// The engine's destructor stops it: the loader's threads use what the engine serves first touches with.
    Loader loader_;
    EpochClock clock_;
    os::FutexLock medium_lock_;  ///< checkpoint thread against a growing pool
    std::uint64_t pages_end_ = 0;  ///< one past the last image page with a durable copy

private:
    os::FutexLock growing_lock_;
    Words words_;
    bool after_crash_ = false;
    bool detached_ = false;
};

}  // namespace stillpoint::versions
