#pragma once
// What jobs on the current engine share.

#include <barrier>
#include <string>

#include "../engines/current.hpp"
#include "../worker/workload.hpp"

namespace bench {

/// A job whose durable memory is CurrentEngine's, with a barrier for its threads. A barrier is never waited at inside an Operation.
class EngineJob : public Job {
public:
    using E = CurrentEngine;

    explicit EngineJob(const Shape& shape) : shape_(shape), barrier_(static_cast<std::ptrdiff_t>(shape.threads)) {}

    void settle() final { E::settle(); }

protected:
    void wait_for_all() { barrier_.arrive_and_wait(); }
    /// The part of `count` things that thread `thread` works on: [first, last).
    struct Part {
        std::uint64_t first;
        std::uint64_t last;
    };
    [[nodiscard]] Part part_of(unsigned thread, std::uint64_t count) const noexcept
    {
        return {count * thread / shape_.threads, count * (thread + 1) / shape_.threads};
    }

    const Shape shape_;

private:
    std::barrier<> barrier_;
};

}  // namespace bench
