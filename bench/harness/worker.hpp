#pragma once
// One measured process: does a workload in slices, when it is told to.
//
// The driver (bench/paired.py) keeps several such processes, one for each configuration, because a process has one
// pool; it lets them work in turn, so that every configuration meets the same drift of the machine. Commands come
// on standard input, answers go to standard output, a line each:
//
//   ready                                      once, when the data are built
//   run SLICE_NS     ->  OPERATIONS WALL_NS CPU_NS SETTLE_CPU_NS
//   end              ->  exits
//
// CPU time is that of the whole process, so the checkpoint thread's counts too; what it still has to write when the
// slice is over is waited for and counted as SETTLE_CPU_NS.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "random.hpp"

namespace bench {

/// What the worker drives. perform() does some operations as thread `thread` and returns how many; it is called in a
/// loop by each thread, and takes some microseconds.
class Workload {
public:
    virtual ~Workload() = default;
    virtual std::uint64_t perform(unsigned thread, Random& random) = 0;
    /// Waits until what was written is durable.
    virtual void settle() = 0;
};

/// Threads that sleep between slices.
class SliceThreads {
public:
    SliceThreads(Workload& workload, unsigned count);
    ~SliceThreads();
    SliceThreads(const SliceThreads&) = delete;
    SliceThreads& operator=(const SliceThreads&) = delete;

    struct Slice {
        std::uint64_t operations;
        std::uint64_t wall_ns;
    };
    /// Lets all threads work for `slice_ns`; returns when all have stopped.
    Slice run(std::uint64_t slice_ns);

private:
    void thread_main(unsigned thread);

    Workload& workload_;
    std::mutex lock_;
    std::condition_variable changed_;
    std::uint64_t slice_number_ = 0;  ///< guarded by lock_, as are the next four
    std::uint64_t deadline_ns_ = 0;
    std::uint64_t operations_ = 0;
    unsigned working_ = 0;
    bool end_ = false;
    std::vector<std::thread> threads_;
};

/// Reads commands until `end` or the end of input. Returns the process's exit code.
int serve(Workload& workload, unsigned threads);

[[nodiscard]] std::uint64_t monotonic_ns() noexcept;
/// CPU time of this process, all threads, user and system.
[[nodiscard]] std::uint64_t process_cpu_ns() noexcept;

/// A whole number from the command line; false where it is none, or out of bounds.
bool parse(const char* text, std::uint64_t minimum, std::uint64_t maximum, std::uint64_t& out);

}  // namespace bench
