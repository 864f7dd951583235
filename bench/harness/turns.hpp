#pragma once
// A measured process whose threads take turns of one workload, in slices, when it is told to: the benchmarks of parts of the library,
// of the compiler's hooks and of Kyoto Cabinet. What `stillpoint bench` measures has its own worker: bench/worker.
//
//   (at the start)   what the program tells about itself, when the data are built
//   slice NS         -> operations, wall_ns, cpu_ns, settle_wall_ns, settle_cpu_ns, and what the workload adds

#include <cstdint>
#include <vector>

#include "clock.hpp"
#include "commands.hpp"
#include "ending.hpp"
#include "random.hpp"
#include "slice_threads.hpp"

namespace bench {

/// The work that the process drives. perform() does some operations as thread `thread` and returns how many; it is called in a
/// loop by each thread, and takes some microseconds.
class TurnWorkload {
public:
    virtual ~TurnWorkload() = default;
    virtual std::uint64_t perform(unsigned thread, Random& random) = 0;
    /// Waits until what was written is durable.
    virtual void settle() = 0;
    /// Further figures of the slice that has just ended.
    virtual void describe(Answer&) {}
};

/// Threads that let a workload take turns until a slice is over.
class TurnThreads {
public:
    TurnThreads(TurnWorkload& workload, unsigned threads);
    SliceThreads::Slice run(std::uint64_t slice_ns) { return threads_.run(slice_ns, work_); }
    /// A slice of that length, settled, with all that is told of one.
    void slice(std::uint64_t slice_ns, Answer& answer);

private:
    TurnWorkload& workload_;
    std::vector<Random> random_;
    SliceThreads::Work work_;
    SliceThreads threads_;
};

/// Obeys `slice` until the end of input.
void serve(TurnWorkload& workload, unsigned threads, const Answer& ready = {});

}  // namespace bench
