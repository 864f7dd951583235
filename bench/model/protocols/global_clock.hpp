#pragma once
// A logical clock that transactions read and increment inside their speculation. Its line is then in their read and write sets: a
// transaction that changes it aborts all others that hold it and have not yet committed.

#include <cstdint>
#include <vector>

#include "../speculation.hpp"

namespace bench::model {

class GlobalClock {
public:
    GlobalClock(World& world, Speculation& speculation) : world_(world), speculation_(speculation) {}

    [[nodiscard]] std::uint64_t value() const noexcept { return value_; }

    /// Inside an attempt: the line joins the read set. False: the attempt has aborted.
    [[nodiscard]] Task<bool> read(Worker& worker);
    /// Inside an attempt that has read: changes the clock and commits the speculation, `commit_ns` later. False: the attempt has aborted.
    [[nodiscard]] Task<bool> increment_and_commit(Worker& worker, double commit_ns);
    /// An attempt that has read the clock ends otherwise.
    void leave(const Worker& worker);
    /// Under the single global lock.
    void increment() { ++value_; }

private:
    void abort_others(Worker& worker);

    World& world_;
    Speculation& speculation_;
    std::uint64_t value_ = 0;
    SharedLine line_;
    std::vector<Worker*> holders_;  ///< attempts that have the line in their read or write set
};

}  // namespace bench::model
