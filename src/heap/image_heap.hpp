#pragma once
// How a heap lies in the image of a pool, and how it gets longer tables where the pool's maximum was raised.
//
//   header | directory | synchronisation objects | first tables, not used any more | spans ... | tables | spans ...
//
// Nothing that has an address moves: the longer tables are a run of spans like a large block, after all spans that there were.

#include "core/result.hpp"
#include "heap/heap.hpp"
#include "pool/pool.hpp"

namespace stillpoint {

/// Options::grow is left out: for a heap that is only read, or the caller's to add. `base` is a checked image's mapping (check_image), of
/// `image_bytes`, what the file has of it now.
[[nodiscard]] Heap::Options heap_options_of(std::byte* base, const PoolFacts& facts, std::uint64_t image_bytes,
                                            layout::TableFormat format) noexcept;

/// Whether lengthen_tables() will find room, whatever the heap holds. Errors: invalid_argument.
[[nodiscard]] Result<void> lengthened_tables_fit(const PoolFacts& facts, std::uint64_t image_bytes_max);

/// Gives the heap tables for a maximum of `image_bytes_max`, more than it has, and stores that into the image's header: one failure-atomic
/// unit with what the caller stores beside it. `image_bytes` is what the image has, which may be more than options.image_bytes says.
/// `options` then describes the longer heap. Before the heap is attached and the program runs. Cost: a copy of the tables.
/// Errors: invalid_argument (the tables would reach beyond the maximum), pool_corrupt (the present tables), unsupported
/// (TableFormat::logged), those of Options::grow.
[[nodiscard]] Result<void> lengthen_tables(Heap::Options& options, std::uint64_t image_bytes, std::uint64_t image_bytes_max);

}  // namespace stillpoint
