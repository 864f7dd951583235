#include "worker.hpp"

#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/resource.h>
#include <sysexits.h>
#include <time.h>

#include "memory.hpp"

namespace bench {

void out_of_memory()
{
    std::fputs("bench: no memory for the workload's data\n", stderr);
    std::_Exit(EX_OSERR);
}

std::uint64_t monotonic_ns() noexcept
{
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t process_cpu_ns() noexcept
{
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto ns = [](const timeval& time) {
        return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(time.tv_usec) * 1000u;
    };
    return ns(used.ru_utime) + ns(used.ru_stime);
}

SliceThreads::SliceThreads(Workload& workload, unsigned count) : workload_(workload)
{
    for (unsigned thread = 0; thread < count; ++thread) {
        threads_.emplace_back([this, thread] { thread_main(thread); });
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

SliceThreads::Slice SliceThreads::run(std::uint64_t slice_ns)
{
    std::unique_lock locked(lock_);
    const std::uint64_t begin_ns = monotonic_ns();
    deadline_ns_ = begin_ns + slice_ns;
    operations_ = 0;
    working_ = static_cast<unsigned>(threads_.size());
    ++slice_number_;
    changed_.notify_all();
    changed_.wait(locked, [this] { return working_ == 0; });
    return {operations_, monotonic_ns() - begin_ns};
}

void SliceThreads::thread_main(unsigned thread)
{
    Random random(thread + 1);
    std::uint64_t seen_slice = 0;
    std::unique_lock locked(lock_);
    while (true) {
        changed_.wait(locked, [&] { return end_ || slice_number_ != seen_slice; });
        if (end_) {
            return;
        }
        seen_slice = slice_number_;
        const std::uint64_t deadline_ns = deadline_ns_;
        locked.unlock();
        std::uint64_t done = 0;
        while (monotonic_ns() < deadline_ns) {
            done += workload_.perform(thread, random);
        }
        locked.lock();
        operations_ += done;
        --working_;
        if (working_ == 0) {
            changed_.notify_all();
        }
    }
}

int serve(Workload& workload, unsigned threads)
{
    SliceThreads slices(workload, threads);
    workload.settle();
    std::puts("ready");
    std::fflush(stdout);
    char line[64];
    while (std::fgets(line, sizeof line, stdin) != nullptr) {
        std::uint64_t slice_ns = 0;
        if (std::sscanf(line, "run %" SCNu64, &slice_ns) != 1) {
            break;
        }
        const std::uint64_t cpu_before = process_cpu_ns();
        const SliceThreads::Slice slice = slices.run(slice_ns);
        const std::uint64_t cpu_after = process_cpu_ns();
        workload.settle();
        std::printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", slice.operations, slice.wall_ns,
                    cpu_after - cpu_before, process_cpu_ns() - cpu_after);
        std::fflush(stdout);
    }
    return EXIT_SUCCESS;
}

bool parse(const char* text, std::uint64_t minimum, std::uint64_t maximum, std::uint64_t& out)
{
    const char* end = text + std::strlen(text);
    const auto parsed = std::from_chars(text, end, out);
    return parsed.ec == std::errc() && parsed.ptr == end && out >= minimum && out <= maximum;
}

}  // namespace bench
