#pragma once
// The result of a salvage: which pages of the image a damaged pool still proves, and which it does not.

#include <cstdint>
#include <vector>

namespace stillpoint {

/// Neighbouring pages of the image that are not proved to be as the durable epoch left them.
struct UnsoundPages {
    std::uint64_t first_page;
    std::uint64_t pages;
    /// They are kept as this epoch left them, and a later one may have changed them. 0: they are lost, and zero.
    std::uint64_t epoch;
};

struct SalvageReport {
    std::uint64_t epoch = 0;        ///< the durable one; 0: none was ever committed
    std::uint64_t pages_sound = 0;  ///< that have a copy, and are as the epoch left them
    std::uint64_t pages_older = 0;
    std::uint64_t pages_lost = 0;
    /// The tables in force are those that the commit record speaks of. Else a table page in force is lost.
    bool tables_proved = true;
    /// Every line that the delta log had is there.
    bool lines_whole = true;
    std::vector<UnsoundPages> unsound;  ///< in ascending order
};

}  // namespace stillpoint
