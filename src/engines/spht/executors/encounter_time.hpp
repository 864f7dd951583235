#pragma once
// The executor in software, after TinySTM with write-back (Felber, Fetzer and Riegel, PPoPP 2008): as Tl2, but a line is locked when it is
// first written, so two transactions that write the same line learn of it early.

#include "engines/spht/executors/tl2.hpp"

namespace stillpoint::spht {

class EncounterTime final : public Tl2 {
public:
    using Tl2::Tl2;
    [[nodiscard]] bool write(std::uint64_t* word, std::uint64_t value, std::uint64_t mask) noexcept override
    {
        return Transaction::write(word, value, mask) && own_line(reinterpret_cast<std::uintptr_t>(word));
    }
};

}  // namespace stillpoint::spht
