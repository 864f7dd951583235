#pragma once
// One block of the image: the copy of a module's SP_PERSISTENT section, then values that the program no longer has, then
// the table of what lies where, then the trailer by which the block is known. docs/internals/format/pool.md has the bytes.

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "core/findings.hpp"
#include "core/result.hpp"
#include "heap/heap.hpp"
#include "pool/image_layout.hpp"
#include "runtime/durable_globals_match.hpp"

namespace stillpoint::layout {

inline constexpr std::uint8_t globals_magic[8] = {0x93, 'S', 'T', 'I', 'G', 'L', 'O', 'B'};
inline constexpr std::uint64_t globals_checksum_seed = 0x535449474c4f424c;

/// Texts are offsets from the table's beginning, NUL-terminated.
struct GlobalsRecord {
    std::uint64_t offset;  ///< of the value, in the block
    std::uint64_t size;
    std::uint32_t name;
    std::uint32_t scope;
    std::uint32_t type;
    std::uint32_t retired;  ///< 1: the program no longer has it
};
static_assert(sizeof(GlobalsRecord) == 32 && std::is_trivially_copyable_v<GlobalsRecord>);

/// The last bytes of the block.
struct GlobalsTrailer {
    std::uint8_t magic[8];
    std::uint64_t identity;       ///< of the build that has the section so; 0: not known
    std::uint64_t section_bytes;  ///< the copy of the section, from the block's beginning
    std::uint64_t table_offset;   ///< in the block: the records, then the texts, to the trailer
    std::uint64_t record_count;
    std::uint64_t checksum;       ///< of the table, and of the trailer before this
};
static_assert(sizeof(GlobalsTrailer) == 48 && std::is_trivially_copyable_v<GlobalsTrailer>);

}  // namespace stillpoint::layout

namespace stillpoint::durable_globals {

/// A variable that the pool keeps.
struct KeptVariable {
    Variable variable;
    std::uint64_t offset = 0;  ///< in the block
    bool retired = false;
};

struct Block {
    layout::DurableGlobals* entry = nullptr;
    const std::byte* memory = nullptr;
    bool has_table = false;  ///< false: written by a version that knew no names
    std::uint64_t identity = 0;
    std::uint64_t section_bytes = 0;
    std::vector<KeptVariable> variables;
};

/// Reads what an entry of the image header names: a live block of a sound heap, which need not be attached. Errors: pool_corrupt.
[[nodiscard]] Result<Block> read_block(const Heap::Options& heap, layout::DurableGlobals& entry);
/// Every entry of the image header, as a start reads them. Errors: pool_corrupt.
[[nodiscard]] Result<void> check_blocks(const Heap::Options& heap, Findings* findings);

/// The parts of a new block.
struct Value {
    Variable variable;
    const std::byte* bytes = nullptr;
    std::uint64_t offset = 0;  ///< in the section; of retired ones nothing: they come after it
    bool retired = false;
};
struct Plan {
    std::string module;
    std::uint64_t identity = 0;
    const std::byte* section = nullptr;  ///< initial values
    std::uint64_t section_bytes = 0;
    std::vector<Value> values;
};

/// Allocates and fills a block; `entry` names it from then on. The old block is the caller's. Errors: no_memory, pool_full.
[[nodiscard]] Result<std::byte*> write_block(std::byte* image_base, Heap& heap, const Plan& plan, layout::DurableGlobals& entry);

}  // namespace stillpoint::durable_globals
