#pragma once
// The common part of jobs on the current engine.

#include "../engines/current.hpp"
#include "../worker/workload.hpp"
#include "team.hpp"

namespace bench {

/// A job whose durable memory is CurrentEngine's, and whose threads are a team.
class EngineJob : public Job, public Team {
public:
    using E = CurrentEngine;

    explicit EngineJob(const Shape& shape) : Team(shape.threads), shape_(shape) {}

    void settle() final { E::settle(); }

protected:
    const Shape shape_;
};

}  // namespace bench
