#pragma once
// PartHistory: durable linearizability of durable objects. A part is an object, or what of an object has a lock of its own: its operations
// have one order. After any crash a part is as it was after a prefix of them, which has every one that was acknowledged, and
// whatever a recovery has shown to a program.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/trace.hpp"

namespace stillpoint::explorer {

/// The digest of a part that does not exist.
inline constexpr std::uint64_t absent = 0;

/// Digests of recovered parts; absent ones may be missing.
using PartDigests = std::map<std::uint64_t, std::uint64_t>;

class PartHistory {
public:
    /// Takes what concerns it of the next event of a run's trace.
    void apply(const sim::Event& event);
    /// The error that a run has shown, or "": a state that never was, a commit number given out twice.
    [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

    /// The error in parts that a crash has left like this, or "".
    [[nodiscard]] std::string judge(const PartDigests& recovered) const;
    /// So many of the newest acknowledged operations of each part may be lost: they were damaged, and what follows them does not tell.
    void forgive_newest(std::size_t operations) noexcept;
    /// Digest of the promises: another one, if more must survive.
    [[nodiscard]] std::uint64_t floor_digest() const noexcept;

private:
    struct Part {
        std::vector<std::uint64_t> states{absent};
        std::size_t floor = 0;  ///< of states: nothing before it may come back
        std::uint64_t number_told = 0;
    };
    /// The oldest state from the floor on that has this digest; states.size(): none.
    [[nodiscard]] static std::size_t find(const Part& part, std::uint64_t digest) noexcept;
    [[nodiscard]] static std::string problem_of(std::uint64_t name, const Part& part, std::uint64_t digest);

    std::map<std::uint64_t, Part> parts_;
    std::string problem_;
};

}  // namespace stillpoint::explorer
