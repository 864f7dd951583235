#pragma once
// Writes that a full cluster has refused, and in the same object those after them: they are sent again, in their order, until there is
// room.
//
// Invariant: of the writes of an object that have not ended, each is sent after those before it; one ends after those before it have.
// So bytes that two of them write are those of the later one, whichever the cluster has refused: it takes those that need no more room.

#include <array>
#include <cstdint>
#include <vector>

#include "media/rados/agent_protocol.hpp"

namespace stillpoint::rados {

/// Not thread-safe.
class HeldWrites {
public:
    /// A request to write came. False: it is held, and is not sent now.
    [[nodiscard]] bool begin(std::uint32_t slot, std::uint64_t object);
    /// The cluster has answered it. `is_refused`: it has no room. Those that have ended by that, in their order.
    [[nodiscard]] std::vector<std::uint32_t> end(std::uint32_t slot, bool is_refused);
    /// Writes to send again, in this order: all that are held of each object that has none under way.
    [[nodiscard]] std::vector<std::uint32_t> take();
    /// Whether any that was held has not ended yet.
    [[nodiscard]] bool is_full() const noexcept;

private:
    enum class State : std::uint8_t { none, sent, answered, held };
    struct Write {
        State state = State::none;
        bool was_held = false;
        std::uint64_t object = 0;
        std::uint64_t number = 0;  ///< in the order of their requests
    };
    [[nodiscard]] std::vector<std::uint32_t> slots_of(std::uint64_t object) const;

    std::array<Write, write_slots> writes_;
    std::uint64_t next_number_ = 0;
};

}  // namespace stillpoint::rados
