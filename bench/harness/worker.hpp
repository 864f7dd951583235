#pragma once
// One measured process of a benchmark with a driver of its own (stop_time, quiescence, nvhooks): does a workload in slices,
// when it is told to. What `stillpoint bench` measures has its own worker: bench/worker.
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

#include <cstdint>
#include <vector>

#include "clock.hpp"
#include "ending.hpp"
#include "random.hpp"
#include "slice_threads.hpp"

namespace bench {

/// What the worker drives. perform() does some operations as thread `thread` and returns how many; it is called in a
/// loop by each thread, and takes some microseconds.
class TurnWorkload {
public:
    virtual ~TurnWorkload() = default;
    virtual std::uint64_t perform(unsigned thread, Random& random) = 0;
    /// Waits until what was written is durable.
    virtual void settle() = 0;
};

/// Threads that let a workload take turns until a slice is over.
class TurnThreads {
public:
    TurnThreads(TurnWorkload& workload, unsigned threads);
    SliceThreads::Slice run(std::uint64_t slice_ns) { return threads_.run(slice_ns, work_); }

private:
    std::vector<Random> random_;
    SliceThreads::Work work_;
    SliceThreads threads_;
};

/// Reads commands until `end` or the end of input. Returns the process's exit code.
int serve(TurnWorkload& workload, unsigned threads);

/// A whole number from the command line; false where it is none, or out of bounds.
bool parse(const char* text, std::uint64_t minimum, std::uint64_t maximum, std::uint64_t& out);

}  // namespace bench
