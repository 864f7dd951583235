#pragma once
// Workload: a small state machine over durable memory. Written once; runs on every engine.
//
// An operation follows from the memory that it finds and from its random numbers, nothing else.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "stillpoint/nvhooks.h"

namespace stillpoint::explorer {

using Random = std::mt19937_64;

/// Finds a named object of the memory that is looked at, live or recovered: nullptr if there is none.
using FindObject = std::function<const void*(const std::string& handle)>;

class Workload {
public:
    virtual ~Workload() = default;
    /// The root's size; it begins as zeroes.
    [[nodiscard]] virtual std::size_t root_bytes() const = 0;
    /// One operation, inside a FASE. Memory comes from sp_malloc and its relatives. Each store is told to stored(), as
    /// the compiler pass would; no more than it, or a missing mark of the library would not show.
    virtual void perform(void* root, Random& random) = 0;
    /// What is wrong with the structure, or "". Reads only; follows no pointer outside durable memory.
    [[nodiscard]] virtual std::string check(const void* root, const FindObject& find) const = 0;
    /// Of the abstract state: the same however the structure lies in memory.
    [[nodiscard]] virtual std::uint64_t digest(const void* root, const FindObject& find) const = 0;
};

struct WorkloadEntry {
    std::string_view name;
    std::unique_ptr<Workload> (*make)();
    std::uint64_t image_max_mb;  ///< the pool's maximum
};

/// Every workload (workloads/registry.cpp).
[[nodiscard]] const std::vector<WorkloadEntry>& workloads();

/// The one of that name, which exists.
[[nodiscard]] const WorkloadEntry& workload_called(std::string_view name);

/// A pointer that recovered memory may hold: inside the window and aligned. check() asks before it follows.
[[nodiscard]] bool may_be_followed(const void* pointer, std::size_t alignment = 8) noexcept;

/// perform() has stored to the object: all that the tracker `hooks` knows of it.
template <class T>
void stored(const T& object) noexcept
{
    sp_mark_written(&object, sizeof object);
}

/// Order-dependent sum over words: the helper of digest().
class Digest {
public:
    void add(std::uint64_t word) noexcept
    {
        sum_ = (sum_ ^ word) * 0x9e3779b97f4a7c15u;
        sum_ ^= sum_ >> 29;
    }
    [[nodiscard]] std::uint64_t value() const noexcept { return sum_; }

private:
    std::uint64_t sum_ = 0x2545f4914f6cdd1du;
};

}  // namespace stillpoint::explorer
