#include "logs/replayer.hpp"

#include <algorithm>

#include "os/futex.hpp"

namespace stillpoint::logs {

Result<void> Replayer::start(std::uint64_t image_pages_max, const Options& options, const os::NumaNodes& nodes)
{
    if (options.replayers == 0 || options.replayers > replayers_max) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "{} replayers: there can be 1 to {}", options.replayers, replayers_max);
    }
    options_ = options;
    nodes_ = &nodes;
    stopping_.store(false, std::memory_order_relaxed);
    job_.store(0, std::memory_order_relaxed);
    if (auto done = pages_.reserve(image_pages_max, "the list of a replay's pages"); !done) {
        return done;
    }
    for (unsigned index = 0; index < options.replayers; ++index) {
        Worker& worker = workers_[index];
        worker.team = this;
        worker.index = index;
        if (auto done = worker.shards.reserve(image_pages_max); !done) {
            return done;
        }
        if (index == 0 && options.caller_takes_part) {
            continue;
        }
        if (auto started = worker.thread.start("sp-replay", &work, &worker); !started) {
            return started;
        }
    }
    return {};
}

void Replayer::stop() noexcept
{
    stopping_.store(true, std::memory_order_release);
    job_.fetch_add(1, std::memory_order_acq_rel);
    os::futex_wake(job_);
    for (Worker& worker : workers_) {
        worker.thread.join();
    }
}

void Replayer::detach_after_fork() noexcept
{
    for (Worker& worker : workers_) {
        worker.thread.forget();
    }
}

bool Replayer::replay(const LogBytes& bytes, std::span<const RecordRef> oldest_first, const ReplayTarget& target) noexcept
{
    bytes_ = &bytes;
    records_ = oldest_first;
    linked_ = nullptr;
    target_ = &target;
    return run_all(oldest_first.size());
}

bool Replayer::replay_linked(const LogBytes& bytes, const LinkedRecords& records, const ReplayTarget& target) noexcept
{
    bytes_ = &bytes;
    linked_ = &records;
    target_ = &target;
    return run_all(records.count);
}

bool Replayer::run_all(std::uint64_t records) noexcept
{
    // Waking a thread takes as long as some hundred records.
    constexpr std::uint64_t records_alone = 512;
    const bool alone = options_.caller_takes_part && records <= records_alone;
    const unsigned replayers = alone ? 1 : options_.replayers;
    const unsigned threads = alone ? 0 : options_.replayers - (options_.caller_takes_part ? 1 : 0);
    if (threads != 0) {
        working_.store(threads, std::memory_order_relaxed);
        job_.fetch_add(1, std::memory_order_release);
        os::futex_wake(job_);
    }
    if (options_.caller_takes_part) {
        run(workers_[0], replayers);
    }
    wait_for_threads();
    collect_pages(replayers);
    return std::all_of(workers_.begin(), workers_.begin() + replayers, [](const Worker& worker) { return worker.succeeded; });
}

void Replayer::run(Worker& worker, unsigned replayers) noexcept
{
    const Shards shards{worker.index, replayers};
    worker.succeeded = linked_ != nullptr ? worker.shards.run_linked(*bytes_, *linked_, *target_, shards)
                                          : worker.shards.run(*bytes_, records_, *target_, shards,
                                                              options_.filter_duplicates ? ReplayOrder::newest_first_without_copies
                                                                                         : ReplayOrder::oldest_first);
}

void Replayer::wait_for_threads() noexcept
{
    for (std::uint32_t working = working_.load(std::memory_order_acquire); working != 0;
         working = working_.load(std::memory_order_acquire)) {
        os::futex_wait(working_, working);
    }
}

void Replayer::collect_pages(unsigned replayers) noexcept
{
    page_count_ = 0;
    for (unsigned index = 0; index < replayers; ++index) {
        const std::span<const std::uint32_t> pages = workers_[index].shards.pages();
        std::copy(pages.begin(), pages.end(), pages_.data() + page_count_);
        page_count_ += pages.size();
    }
}

void Replayer::work(void* context)
{
    Worker& worker = *static_cast<Worker*>(context);
    Replayer& team = *worker.team;
    if (team.nodes_->count() > 1) {
        team.nodes_->run_near(worker.index % team.nodes_->count());
    }
    for (std::uint32_t seen = 0;; ++seen) {
        while (team.job_.load(std::memory_order_acquire) == seen) {
            os::futex_wait(team.job_, seen);
        }
        if (team.stopping_.load(std::memory_order_acquire)) {
            return;
        }
        team.run(worker, team.options_.replayers);
        if (team.working_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            os::futex_wake(team.working_);
        }
    }
}

}  // namespace stillpoint::logs
