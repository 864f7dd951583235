#pragma once
// The objects of a pool that have names, and which type of the program each has.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "command.hpp"
#include "pool_image.hpp"
#include "program_types.hpp"

namespace stillpoint::tool {

enum class RootKind : std::uint8_t { handle, global };

struct TypedRoot {
    RootKind kind;
    std::string name;
    std::uint64_t address;
    std::uint64_t size_bytes;
    LiveBlock block;
    std::optional<TypeId> type;
    std::string type_name;  ///< known without the program too, where the pool has it
    std::string source;     ///< how the type is known; empty: it is not
    std::string note;       ///< damage, or a type that does not fit
};

/// By handle, as --type has them.
using HandleTypes = std::map<std::string, std::string>;

/// --program and --type.
void add_type_options(CommandLine& line, std::string& program, HandleTypes& types);

/// Handles by name, then durable globals. `program` may be null. Errors: a type or a handle of `types` that does not exist.
[[nodiscard]] tl::expected<std::vector<TypedRoot>, ProgramError> typed_roots(const PoolImage& image, ProgramTypes* program,
                                                                             const HandleTypes& types);

int report_error(const ProgramError& error);

/// The program of that path, or null where it is empty. Errors: as ProgramTypes::open(); types without a program.
[[nodiscard]] tl::expected<std::unique_ptr<ProgramTypes>, ProgramError> open_program(const std::string& path, const HandleTypes& types);

}  // namespace stillpoint::tool
