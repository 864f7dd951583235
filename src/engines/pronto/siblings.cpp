#include "engines/pronto/siblings.hpp"

#include <algorithm>
#include <mutex>
#include <sched.h>

#include "arch/spin.hpp"
#include "core/canary.hpp"
#include "engines/pronto/entry_writer.hpp"
#include "os/clock.hpp"

namespace stillpoint::pronto {

namespace {

/// How long a sibling looks for work before it sleeps: longer than an operation of a thread that does nothing else.
constexpr std::uint64_t spin_ns = 20'000;
/// So many looks for a job's end, each a pause or a turn for others, take longer than any sibling that runs.
constexpr unsigned late_rounds = 64;
/// Pauses between two turns for others: a pause may leave a virtual machine.
constexpr unsigned pauses = 8;

unsigned count_cpus() noexcept
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<unsigned>(CPU_COUNT(&set)) : 1;
}

}  // namespace

void Siblings::prepare(Medium& medium, Use use) noexcept
{
    medium_ = &medium;
    cpus_ = count_cpus();
    use_ = use == Use::measured && cpus_ < 2 ? Use::never : use;
}

bool Siblings::should_hand_over(ThreadLog& thread, bool& measured) noexcept
{
    measured = false;
    if (use_ != Use::measured) {
        return use_ == Use::always;
    }
    // Where the program's threads have the CPUs to themselves a sibling would only take turns with them.
    return thread_log_count() < cpus_ && thread.choice.choose(measured);
}

bool Siblings::start_threads() noexcept
{
    const std::lock_guard guard(start_lock_);
    if (count_.load(std::memory_order_relaxed) != 0) {
        return true;
    }
    const unsigned wanted = std::clamp(cpus_ / 2, 1u, siblings_max);
    unsigned started = 0;
    for (; started < wanted; ++started) {
        Sibling& sibling = siblings_[started];
        sibling.team = this;
        sibling.number = started;
        if (!sibling.thread.start("sp-log-sibling", &run, &sibling)) {
            break;
        }
    }
    if (started == 0) {
        unavailable_.store(true, std::memory_order_relaxed);
        return false;
    }
    count_.store(started, std::memory_order_release);
    return true;
}

unsigned Siblings::sibling_of(const ThreadLog& thread) const noexcept
{
    return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(&thread) / sizeof(ThreadLog)) % count_.load(std::memory_order_acquire);
}

bool Siblings::hand_over(ThreadLog& thread) noexcept
{
    if (unavailable_.load(std::memory_order_relaxed) || (count_.load(std::memory_order_acquire) == 0 && !start_threads())) {
        return false;
    }
    thread.job.state.store(SiblingJob::ready, std::memory_order_seq_cst);
    Sibling& sibling = siblings_[sibling_of(thread)];
    if (sibling.parked.load(std::memory_order_seq_cst) != 0 && sibling.parked.exchange(0, std::memory_order_acq_rel) != 0) {
        thread.choice.note_late();  // To wake it takes longer than to store what it would have stored.
        os::futex_wake(sibling.parked, 1);
    }
    return true;
}

bool Siblings::await(SiblingJob& job) noexcept
{
    unsigned round = 0;
    for (; job.state.load(std::memory_order_acquire) != SiblingJob::done; ++round) {
        // The sibling may have been displaced by this very thread.
        if (round % pauses == pauses - 1) {
            sched_yield();
        } else {
            arch::spin_pause();
        }
    }
    job.state.store(SiblingJob::idle, std::memory_order_relaxed);
    return round >= late_rounds;
}

void Siblings::store_rest(Medium& medium, SiblingJob& job) noexcept
{
    job.hash = arguments_hash(job.arguments, job.argument_bytes, job.log_key, job.place);
    const std::uint64_t rest = rest_bytes_for(job.argument_bytes);
    if (rest != 0) {
        medium.append_lines(job.file_offset + cache_line_bytes, job.arguments + inline_argument_bytes, rest);
    }
}

bool Siblings::do_jobs(unsigned number) noexcept
{
    bool found = false;
    for (ThreadLog* thread = first_thread_log(); thread != nullptr; thread = thread->next) {
        SiblingJob& job = thread->job;
        if (sibling_of(*thread) == number && job.state.load(std::memory_order_seq_cst) == SiblingJob::ready) {
            store_rest(*medium_, job);
            if (!is_removed(Canary::sibling_fence)) {
                medium_->fence();  // Here: a fence covers its own thread.
            }
            job.state.store(SiblingJob::done, std::memory_order_release);
            found = true;
        }
    }
    return found;
}

void Siblings::run(void* self)
{
    auto& sibling = *static_cast<Sibling*>(self);
    {
        // Until all are started it is not known which threads are whose.
        const std::lock_guard until_counted(sibling.team->start_lock_);
    }
    sibling.team->loop(sibling);
}

void Siblings::loop(Sibling& self) noexcept
{
    std::uint64_t idle_since_ns = os::monotonic_ns();
    while (!stopping_.load(std::memory_order_acquire)) {
        if (do_jobs(self.number)) {
            idle_since_ns = os::monotonic_ns();
        } else if (os::monotonic_ns() - idle_since_ns < spin_ns) {
            arch::spin_pause();
        } else {
            self.parked.store(1, std::memory_order_seq_cst);
            if (!do_jobs(self.number) && !stopping_.load(std::memory_order_acquire)) {
                os::futex_wait(self.parked, 1);
            }
            self.parked.store(0, std::memory_order_seq_cst);
            idle_since_ns = os::monotonic_ns();
        }
    }
}

void Siblings::stop() noexcept
{
    stopping_.store(true, std::memory_order_release);
    for (Sibling& sibling : siblings_) {
        if (sibling.thread.running()) {
            sibling.parked.store(0, std::memory_order_seq_cst);
            os::futex_wake(sibling.parked);
            sibling.thread.join();
        }
    }
    count_.store(0, std::memory_order_release);
}

void Siblings::detach_after_fork() noexcept
{
    for (Sibling& sibling : siblings_) {
        sibling.thread.forget();
    }
    count_.store(0, std::memory_order_release);
    unavailable_.store(true, std::memory_order_relaxed);
}

}  // namespace stillpoint::pronto
