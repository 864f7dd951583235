#pragma once
// Which parts of the program the compiler pass has instrumented: the records of nvhooks_abi.h in the program and in the
// libraries it was started with. One that dlopen brings later is not examined: verify_marks finds what it misses.

#include <cstdint>
#include <string_view>

#include "core/result.hpp"

namespace stillpoint {

/// An engine's needs of an instrumented unit.
struct MarksWanted {
    std::string_view layer;  ///< units of it that call hooks call those of this library
    bool cards;              ///< marks in the card table will do, too
};

/// How many translation units mark what they write, as the engine needs it. Reads and checks every record. Start-up
/// only: reads files. Errors: unsupported: a record that this library cannot serve (another ABI, another card size,
/// damaged), naming the object and its source; or no unit that marks, so that the tracker `hooks` would see nothing.
[[nodiscard]] Result<std::uint64_t> count_marking_units(const MarksWanted& wanted);

}  // namespace stillpoint
