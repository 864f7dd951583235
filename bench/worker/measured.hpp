#pragma once
// Drives one workload or job: slices, latencies, and the life that a kill ends.

#include <cstdint>
#include <string>
#include <vector>

#include "../harness/latency_histogram.hpp"
#include "../harness/slice_threads.hpp"
#include "../harness/answer.hpp"
#include "counters.hpp"
#include "workload.hpp"

namespace bench {

class Measured {
public:
    Measured(Work work, const Shape& shape);

    /// Builds or finds the data, and does one operation: says when it began and ended (monotonic ns).
    void start(Answer& answer);
    /// Works for about `slice_ns`; a job is never cut: at least one is done.
    void slice(std::uint64_t slice_ns, Answer& answer);
    /// A slice with the time of every operation, and with the phases of its transactions. A job's operation is the whole job.
    void timed_slice(std::uint64_t slice_ns, Answer& answer);
    /// Exactly `operations` of one thread, settled after each part of `parts`: its counts are the same in every run whose engine
    /// takes no checkpoint by itself.
    void exact(std::uint64_t operations, std::uint64_t parts, Answer& answer);
    /// Works until it is killed, at most `limit_ns`; a job that goes on after a crash is done once, another one again and again. For each
    /// thread, the operations that were completed and noted durably go to a 64-bit word of the file at `path`, 64 bytes apart: it survives
    /// the process, not the machine.
    void work_until_killed(const std::string& path, std::uint64_t limit_ns, Answer& answer);
    [[nodiscard]] bool is_job() const noexcept { return work_.job != nullptr; }
    /// Tells each thread's durable note.
    void noted(Answer& answer);
    [[nodiscard]] std::string fault() { return fault_; }
    void check();

private:
    struct alignas(64) Thread {
        Context context;
        LatencyHistogram latencies;
    };

    /// A slice in which each thread does `turns`, with all that is told of a slice.
    void run_operations(std::uint64_t slice_ns, const SliceThreads::Work& turns, Answer& answer);
    /// Meanwhile the stops are examined.
    SliceThreads::Slice run_looking(std::uint64_t slice_ns, const SliceThreads::Work& work);
    /// `work`, which outlives the result, and then a rest.
    [[nodiscard]] static SliceThreads::Work resting_behind(const SliceThreads::Work& work);
    [[nodiscard]] SliceThreads::Work part_of_the_job();
    void run_jobs(std::uint64_t slice_ns, Answer& answer, LatencyHistogram* latencies);
    void begin_slice();
    void end_slice(std::uint64_t operations, std::uint64_t wall_ns, std::uint64_t cpu_ns, Answer& answer);
    void settle();
    [[nodiscard]] std::uint64_t changed_bytes() const;

    Work work_;
    Shape shape_;
    std::vector<Thread> threads_;
    SliceThreads slices_;
    StopTimes stops_;
    Counters before_;
    std::uint64_t changed_before_ = 0;
    std::string fault_;
    bool job_goes_on_ = false;  ///< the next job is the one that a crash interrupted
};

}  // namespace bench
