#pragma once
// Programs over typed objects of breeze: transactions that make, link, move and drop objects. The trace is told the state that each one
// would leave before it commits, and each that is durable.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "program.hpp"
#include "recovery.hpp"
#include "stillpoint/breeze.h"
#include "workload.hpp"

namespace stillpoint::explorer {

class TypedProgram {
public:
    virtual ~TypedProgram() = default;
    /// The root object, inside the first transaction.
    [[nodiscard]] virtual void* make_root(NVM_POOL* pool) = 0;
    /// The changes of one transaction, in a part that no other thread changes. Throws where the pool refuses something.
    virtual void change(NVM_POOL* pool, void* root, unsigned part, Random& random) = 0;
    /// The digest of a part: of everything that can be reached. Throws where it does not hang together.
    [[nodiscard]] virtual std::uint64_t digest(const void* root, unsigned part) const = 0;
};

struct TypedProgramEntry {
    std::string_view name;
    std::unique_ptr<TypedProgram> (*make)();
    std::uint64_t operations;  ///< of one run
    unsigned parts = 1;        ///< each with a thread, if there are several
    bool makes_cycles = false; ///< what only a collection finds
    bool for_openings = false; ///< a short one: most crashes are those of openings
};

[[nodiscard]] const std::vector<TypedProgramEntry>& typed_programs();
[[nodiscard]] const TypedProgramEntry& typed_program_called(std::string_view name);

/// Opens the pool of the stage that is set, works, and stops. What went wrong, or "".
[[nodiscard]] std::string run_typed(const ProgramPlan& plan);

/// Recovers the image on a copy, at an address that depends on it, and examines every object: counts are exact, each pointer leads to an
/// object, everything that can be reached is there, and after a collection nothing else.
[[nodiscard]] Recovered recover_typed(const ProgramPlan& plan, const sim::CrashImage& image);

}  // namespace stillpoint::explorer
