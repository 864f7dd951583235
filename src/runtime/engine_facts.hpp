#pragma once
// The facts that an engine shows of a closed pool, besides those of every pool: a table, printed by `stillpoint info` with the option of
// its name, and verified by `stillpoint check`.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/findings.hpp"
#include "core/result.hpp"
#include "pool/pool.hpp"

namespace stillpoint {

enum class FactKind { text, number, bytes, nanoseconds };

struct FactColumn {
    std::string_view name;     ///< in JSON
    std::string_view heading;  ///< of the printed table; empty: in JSON only
    FactKind kind;
    int width;                 ///< of the printed column
};

/// One cell.
struct Fact {
    std::uint64_t number = 0;    ///< of a column that is not text
    std::string_view text = {};  ///< of a text; else what a person reads in place of the number, e.g. "none"
};

struct EngineFacts {
    std::string_view name;      ///< "objects": of the option and of the JSON array
    std::string_view sentence;  ///< help text of the option
    std::span<const FactColumn> columns;
    /// Shows each row of a sound image, mapped anywhere: a cell for each column, valid during the call. Damage goes to `findings`.
    /// Errors: io, no_memory.
    Result<void> (*visit)(const Pool& pool, const std::byte* base, std::uint64_t image_bytes, Findings& findings,
                          void (*show)(void* context, std::span<const Fact> row), void* context);
};

}  // namespace stillpoint
