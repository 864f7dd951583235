#pragma once
// Memory of the soak's program that is a mutex and a condition variable for a while, is used as such, and holds small
// integers afterwards: a restart must not take the integers for what was there before.

#include <cstdint>

namespace soak {

enum class Use : std::uint64_t { none, made, used, integers };

/// In durable memory; changed inside a FASE only.
struct Reused {
    unsigned char* block;
    Use use;
    std::uint64_t tag;
    std::uint64_t bytes;
};

/// Uses objects that were made, in FASEs of their own: outside of any other, before a step.
void use(const Reused& reused);

/// One step more: makes the objects, says that they were used, ends them in one of four ways and stores integers, or frees the block.
/// Leaves all as it is where the pool has no room. Returns false, with `wanted` and `found`, for integers that changed.
[[nodiscard]] bool step(Reused& reused, std::uint64_t dice, std::uint64_t& wanted, std::uint64_t& found);

/// The integers are there; objects of an earlier run can be used. Returns as step().
[[nodiscard]] bool verify(const Reused& reused, std::uint64_t& wanted, std::uint64_t& found);

}  // namespace soak
