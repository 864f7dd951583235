#include "slice_threads.hpp"

#include <chrono>
#include <pthread.h>
#include <sched.h>

#include "clock.hpp"

namespace bench {

namespace {

/// The calling thread stays on the `number`-th CPU that it may use, modulo how many there are.
void pin(unsigned number)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        return;
    }
    unsigned skip = number % static_cast<unsigned>(CPU_COUNT(&allowed));
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &allowed) && skip-- == 0) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            pthread_setaffinity_np(pthread_self(), sizeof one, &one);
            return;
        }
    }
}

}  // namespace

SliceThreads::SliceThreads(unsigned count, bool is_pinned)
{
    for (unsigned thread = 0; thread < count; ++thread) {
        threads_.emplace_back([this, thread, is_pinned] { thread_main(thread, is_pinned); });
    }
}

SliceThreads::~SliceThreads()
{
    {
        const std::lock_guard locked(lock_);
        end_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) {
        thread.join();
    }
}

SliceThreads::Slice SliceThreads::run(std::uint64_t slice_ns, const Work& work, std::uint64_t look_ns, const std::function<void()>& look)
{
    std::unique_lock locked(lock_);
    const std::uint64_t begin_ns = monotonic_ns();
    deadline_ns_ = begin_ns + slice_ns;
    operations_ = 0;
    work_ = &work;
    working_ = count();
    ++slice_number_;
    changed_.notify_all();
    const auto has_ended = [this] { return working_ == 0; };
    if (look_ns == 0) {
        changed_.wait(locked, has_ended);
    } else {
        while (!changed_.wait_for(locked, std::chrono::nanoseconds(look_ns), has_ended)) {
            look();
        }
    }
    return {operations_, monotonic_ns() - begin_ns};
}

void SliceThreads::thread_main(unsigned thread, bool is_pinned)
{
    if (is_pinned) {
        pin(thread);
    }
    std::uint64_t seen_slice = 0;
    std::unique_lock locked(lock_);
    while (true) {
        changed_.wait(locked, [&] { return end_ || slice_number_ != seen_slice; });
        if (end_) {
            return;
        }
        seen_slice = slice_number_;
        const std::uint64_t deadline_ns = deadline_ns_;
        const Work& work = *work_;
        locked.unlock();
        const std::uint64_t done = work(thread, deadline_ns);
        locked.lock();
        operations_ += done;
        if (--working_ == 0) {
            changed_.notify_all();
        }
    }
}

}  // namespace bench
