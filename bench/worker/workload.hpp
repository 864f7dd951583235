#pragma once
// The two kinds of work that a measured process does: operations without end, and jobs that end with a result.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "../harness/random.hpp"
#include "shape.hpp"

namespace bench {

/// One thread's state across slices.
struct Context {
    unsigned thread = 0;
    Random random;
    /// Bytes of keys and values that the workload has asked to be changed: its own count, the same for every engine.
    std::uint64_t changed_bytes = 0;
};

/// Operations at random, as many as there is time for.
class Workload {
public:
    virtual ~Workload() = default;
    /// Fills the structure, unless a restart has brought it back filled. Called once, by one thread.
    virtual void load() = 0;
    /// `count` operations as one of the threads.
    virtual void perform(Context& context, unsigned count) = 0;
    /// How many operations are done between two looks at the clock: together some microseconds, and in no case much of a slice.
    [[nodiscard]] virtual unsigned operations_per_turn() const noexcept { return 64; }
    /// The error in the data, in a sentence; empty: nothing. No thread is working.
    [[nodiscard]] virtual std::string fault() { return {}; }
    virtual void settle() = 0;
    /// A durable count of a thread's own operations, kept in the same memory or store by an operation of its own: what is
    /// lost in a crash is the difference to what the thread was told.
    virtual void note_progress(unsigned thread, std::uint64_t operations) = 0;
    [[nodiscard]] virtual std::uint64_t noted_progress(unsigned thread) = 0;
};

/// A program that computes a result: all threads work on one job, and its result is checked.
class Job {
public:
    virtual ~Job() = default;
    /// Makes or reads the input, unless a restart has brought it back. Called once, by one thread; not timed.
    virtual void load() = 0;
    /// Clears the result of the job before. By one thread; not timed. Not called when the first job after a restart goes on
    /// with an interrupted one.
    virtual void prepare() = 0;
    /// Thread `context.thread`'s part of the job. All threads call it once for each job; what they share they synchronise.
    virtual void work(Context& context) = 0;
    /// The error in the result, in a sentence; empty: nothing. By one thread; not timed.
    [[nodiscard]] virtual std::string fault() = 0;
    virtual void settle() = 0;
    /// The job that has just ended, in its own unit: input bytes, points, transactions.
    [[nodiscard]] virtual std::uint64_t items() const = 0;
    /// After a restart: there is a job that did not end, and the next one continues where its last durable step was.
    [[nodiscard]] virtual bool goes_on_after_a_crash() const { return false; }
    /// The error in the data of a job that a crash interrupted, as load() found them; empty: nothing, or there was no such job.
    [[nodiscard]] virtual std::string recovered_fault() const { return {}; }
    /// Steps of the current job that are durable or being made so, for jobs that go on after a crash. Also asked while threads work.
    [[nodiscard]] virtual std::uint64_t steps_done() const { return 0; }
};

/// One of the two.
struct Work {
    std::unique_ptr<Workload> operations;
    std::unique_ptr<Job> job;
};

/// A line of workloads.inc.
struct WorkloadRow {
    const char* name;
    const char* family;     ///< "key-value", "queue", "structure", "container", "application", "continuing", "transactions"
    const char* unit;       ///< what is counted: "operations", "bytes", ...
    const char* mixes;      ///< "mix": reads:updates can be chosen; "fixed": it has its own
    const char* values;     ///< "sized": the value size can be chosen; "fixed"
    const char* operations; ///< what is counted in an operation whose size can be chosen: "points", ...; "fixed"
    const char* sentence;
    Work (*make)(const Shape& shape);
    const char* why_not;    ///< why this worker's engine cannot do it; nullptr: it can
};

/// The calling thread sleeps or waits for others: the engine need not wait for it, until its next operation.
void rest();

/// Every workload, also those that this worker's engine cannot do.
[[nodiscard]] std::span<const WorkloadRow> workload_rows();

}  // namespace bench
