#pragma once
// Recovery [ResPCT Figure 5], on the memory the program will run in or on a copy of it.

#include <cstdint>
#include <vector>

#include "core/findings.hpp"
#include "core/result.hpp"
#include "engines/respct/table_copies.hpp"
#include "heap/heap.hpp"
#include "pool/commit_record.hpp"
#include "pool/pool.hpp"

namespace stillpoint::respct {

/// Where the parts of this pool's image lie.
[[nodiscard]] ImageGeometry geometry_of(const PoolFacts& facts) noexcept;
[[nodiscard]] Heap::Options heap_options(const PoolFacts& facts, std::byte* image) noexcept;

struct RecoveryPlan {
    const Pool* pool;
    std::byte* image;         ///< mapped, as large as the pool's
    /// From heap_offset on `image` is a private copy of the medium, and make_changes() follows; else it is zero, and the needed part is
    /// read from the medium.
    bool image_is_loaded;
    Findings* findings = nullptr;
    void (*progress)(std::uint64_t done, std::uint64_t total) = nullptr;
};

/// A logged variable that was rolled back, or a lock that was made free, in `image`.
struct Change {
    std::byte* place;
    unsigned kind;  ///< sp_respct_kind
};

struct Recovered {
    RunFacts runs;
    std::uint64_t variables_rolled_back = 0;
    std::uint64_t pages_read = 0;
    std::vector<Change> changes;
    std::vector<std::uintptr_t> changed_lines;  ///< to be written before the next commit; not those of locks, which every recovery frees
};

/// Makes the changes in the medium's own memory: they were found in a copy of it, when the pool might still be refused. In the copy the
/// heap's own words were rolled back, for the heap to attach to, and the program's variables and locks left as they are.
void make_changes(const std::vector<Change>& changes, std::uint64_t durable_epoch) noexcept;

/// Errors: pool_corrupt, io, no_memory.
[[nodiscard]] Result<Recovered> recover_image(const RecoveryPlan& plan, TableCopies& tables);

}  // namespace stillpoint::respct
