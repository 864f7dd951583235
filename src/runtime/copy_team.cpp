#include "runtime/copy_team.hpp"

#include <algorithm>
#include <cstring>
#include <sched.h>
#include <unistd.h>

#include "core/units.hpp"
#include "os/futex.hpp"

namespace stillpoint {

Result<void> CopyTeam::start()
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const auto wanted = static_cast<unsigned>(std::clamp<long>(cores - 1, 0, assistants_max));
    while (assistant_count_ < wanted) {
        if (auto started = assistants_[assistant_count_].start("sp-copy", &assist, this); !started) {
            return started;
        }
        ++assistant_count_;
    }
    return {};
}

void CopyTeam::stop() noexcept
{
    stopping_.store(true, std::memory_order_release);
    job_.fetch_add(1, std::memory_order_acq_rel);
    os::futex_wake(job_);
    for (auto& assistant : assistants_) {
        assistant.join();
    }
    assistant_count_ = 0;
}

void CopyTeam::detach_after_fork() noexcept
{
    for (auto& assistant : assistants_) {
        assistant.forget();
    }
    assistant_count_ = 0;
}

void CopyTeam::take_shares(std::uint32_t job) noexcept
{
    std::uint64_t next = next_.load(std::memory_order_acquire);
    while (next >> 32 == job) {
        const std::uint64_t begin = next & UINT32_MAX;
        const Work work = work_.load(std::memory_order_acquire);
        void* const context = context_.load(std::memory_order_acquire);
        const std::uint64_t count = count_.load(std::memory_order_acquire);
        if (begin >= count) {
            return;
        }
        const std::uint64_t end = std::min(begin + at_a_time_.load(std::memory_order_acquire), count);
        // Success means that the job has shares left, so that what was read above is its own.
        if (!next_.compare_exchange_weak(next, next - begin + end, std::memory_order_acq_rel, std::memory_order_acquire)) {
            continue;
        }
        work(context, begin, end);
        next = next_.load(std::memory_order_acquire);
    }
}

void CopyTeam::share(std::uint64_t count, std::uint64_t at_a_time, Work work, void* context) noexcept
{
    if (assistant_count_ == 0) {
        work(context, 0, count);
        return;
    }
    work_.store(work, std::memory_order_release);
    context_.store(context, std::memory_order_release);
    count_.store(count, std::memory_order_release);
    at_a_time_.store(at_a_time, std::memory_order_release);
    const std::uint32_t job = job_.load(std::memory_order_relaxed) + 1;
    next_.store(std::uint64_t{job} << 32, std::memory_order_seq_cst);
    job_.store(job, std::memory_order_release);
    os::futex_wake(job_);
    take_shares(job);
    // All shares are taken; an assistant that took one has counted itself before.
    while (working_.load(std::memory_order_seq_cst) != 0) {
        sched_yield();
    }
}

void CopyTeam::copy(const PageCopy* pages, std::uint64_t count) noexcept
{
    constexpr std::uint64_t alone_up_to = 256;
    constexpr std::uint64_t pages_at_a_time = 32;
    struct Copies {
        const PageCopy* pages;
        const arch::Native* arch;
    };
    // Past the caches, which would not hold them: the old bytes of a destination need not be read.
    const Work copy_shared = [](void* context, std::uint64_t begin, std::uint64_t end) {
        const auto& copies = *static_cast<const Copies*>(context);
        for (std::uint64_t i = begin; i < end; ++i) {
            copies.arch->copy_nontemporal(copies.pages[i].destination, copies.pages[i].source, page_bytes);
        }
        copies.arch->fence();
    };
    if (count > alone_up_to) {
        Copies copies{pages, &arch_};
        share(count, pages_at_a_time, copy_shared, &copies);
        return;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
        std::memcpy(pages[i].destination, pages[i].source, page_bytes);
    }
}

void CopyTeam::assist(void* self)
{
    auto& team = *static_cast<CopyTeam*>(self);
    std::uint32_t seen = 0;
    while (true) {
        while (team.job_.load(std::memory_order_acquire) == seen) {
            os::futex_wait(team.job_, seen);
        }
        seen = team.job_.load(std::memory_order_acquire);
        if (team.stopping_.load(std::memory_order_acquire)) {
            return;
        }
        team.working_.fetch_add(1, std::memory_order_seq_cst);
        team.take_shares(seen);
        team.working_.fetch_sub(1, std::memory_order_seq_cst);
    }
}

}  // namespace stillpoint
