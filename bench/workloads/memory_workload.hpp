#pragma once
// The common part of the workloads on one structure in the current engine's memory.

#include <atomic>
#include <cstdint>
#include <string>

#include "../engines/current.hpp"
#include "../worker/workload.hpp"

namespace bench {

class MemoryWorkload : public Workload {
public:
    using E = CurrentEngine;

    explicit MemoryWorkload(const Shape& shape) : shape_(shape) {}

    void load() final
    {
        if (progress_.noted(progress_.loaded_slot) == 0) {
            fill();
            progress_.note(progress_.loaded_slot, 1);
        }
    }
    std::string fault() final
    {
        std::string fault = fault_of_structure();
        return !fault.empty() || wrong_ == 0 ? fault : std::to_string(wrong_) + " values were missing, torn or of another key";
    }
    void settle() final { E::settle(); }
    void note_progress(unsigned thread, std::uint64_t operations) final { progress_.note(thread, operations); }
    std::uint64_t noted_progress(unsigned thread) final { return progress_.noted(thread); }

protected:
    /// Goes on where a crash has interrupted it.
    virtual void fill() = 0;
    /// The error in the structure itself; empty: nothing. No thread is working.
    virtual std::string fault_of_structure() = 0;
    void found_wrong() noexcept { wrong_.fetch_add(1, std::memory_order_relaxed); }

    const Shape shape_;

private:
    Progress<E> progress_;
    std::atomic<std::uint64_t> wrong_{0};
};

}  // namespace bench
