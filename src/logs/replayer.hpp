#pragma once
// Parallel replay [SPHT §3.3]. The image is divided into shards of a page, strided over a fixed number of replayers. Each replayer walks
// the whole sequence of records and applies only the runs of its own shards, so none waits for another, and the order is kept.
//
// With filtering a replayer goes from the newest record to the oldest and stores each word once: a private bitmap has a bit for each
// 8 bytes of its shards. Bytes of a word that a run has only in part are stored if no newer run has stored them.

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "logs/shard_replay.hpp"
#include "os/numa.hpp"
#include "os/service_thread.hpp"

namespace stillpoint::logs {

/// Threads: start, replay and stop by one thread at a time.
class Replayer {
public:
    static constexpr unsigned replayers_max = 16;

    struct Options {
        unsigned replayers = 1;
        bool filter_duplicates = true;
        bool caller_takes_part = true;  ///< the thread that calls replay() is one of the replayers
    };

    Replayer() = default;
    Replayer(const Replayer&) = delete;
    Replayer& operator=(const Replayer&) = delete;
    ~Replayer() { stop(); }

    /// Starts the threads, near the nodes in turn. Replayer i has the pages i, i + replayers, … of the image, which lie near it if the
    /// image's pages are spread (NumaNodes::spread_pages), its address is a multiple of the nodes' number of pages, and so is `replayers`.
    /// `nodes` outlives the replayer. Errors: invalid_argument, no_memory.
    [[nodiscard]] Result<void> start(std::uint64_t image_pages_max, const Options& options, const os::NumaNodes& nodes);
    void stop() noexcept;
    /// In a child after fork: the threads do not exist there.
    void detach_after_fork() noexcept;

    /// Applies `oldest_first`, whose records are valid, with stores of whole words. No malloc. False: a page had no bytes, or lies after
    /// image_pages_max; then any part of the records is applied.
    [[nodiscard]] bool replay(const LogBytes& bytes, std::span<const RecordRef> oldest_first, const ReplayTarget& target) noexcept;

    /// Replays along links, without a list: each replayer follows them itself, oldest first with forward links, newest first and filtered
    /// with backward ones, whatever the options say. Only for logs of this process, since records are applied before all links are known to
    /// be right. False also if one is not; then a replay in the order of timestamps makes all of it good.
    [[nodiscard]] bool replay_linked(const LogBytes& bytes, const LinkedRecords& records, const ReplayTarget& target) noexcept;

    /// The pages that the last replay touched, each once, in no order. Until the next replay.
    [[nodiscard]] std::span<const std::uint32_t> pages() const noexcept { return {pages_.data(), page_count_}; }

private:
    struct alignas(cache_line_bytes) Worker {
        Replayer* team;
        unsigned index;
        bool succeeded;
        ShardReplay shards;
        os::ServiceThread thread;
    };

    static void work(void* worker);
    /// Has all replayers do the present job, or the caller alone if it has few records.
    [[nodiscard]] bool run_all(std::uint64_t records) noexcept;
    void run(Worker& worker, unsigned replayers) noexcept;
    void wait_for_threads() noexcept;
    void collect_pages(unsigned replayers) noexcept;

    Options options_;
    const os::NumaNodes* nodes_ = nullptr;
    std::array<Worker, replayers_max> workers_{};
    os::ReservedArray<std::uint32_t> pages_;
    std::uint64_t page_count_ = 0;
    // The present replay: written before job_ rises, read after.
    const LogBytes* bytes_ = nullptr;
    std::span<const RecordRef> records_;
    const LinkedRecords* linked_ = nullptr;  ///< in place of records_
    const ReplayTarget* target_ = nullptr;
    std::atomic<std::uint32_t> job_{0};  ///< counts the replays; a futex
    std::atomic<std::uint32_t> working_{0};  ///< threads that have not finished it; a futex
    std::atomic<bool> stopping_{false};
};

}  // namespace stillpoint::logs
