#pragma once
// Sides: what a crash may leave of a pool, of its replica, and of what is known about the two.

#include <cstdint>
#include <optional>
#include <vector>

#include "program.hpp"
#include "sim/crash_model.hpp"
#include "workload.hpp"

namespace stillpoint::explorer {

/// One of the images that a crash may leave.
[[nodiscard]] sim::CrashImage any_image(const sim::CrashModel& model, Random& random);

class Sides {
public:
    /// All of it is durable.
    explicit Sides(ReplicatedFiles files);

    /// Takes the next event of a trace.
    void apply(const sim::Event& event);
    /// The process dies: what it stored here stays readable, and the cluster gets what was handed over.
    void kill();

    [[nodiscard]] const sim::CrashModel& here() const noexcept { return here_; }
    [[nodiscard]] const sim::CrashModel& replica() const noexcept { return replica_; }
    /// As a process finds it after a kill.
    [[nodiscard]] ReplicatedFiles visible(std::uint64_t incoming_number) const;
    /// One of the states that the end of the machine may leave.
    [[nodiscard]] ReplicatedFiles any_after_power_cut(Random& random) const;

private:
    struct NamedFile {
        sim::CrashModel model;
        std::uint64_t number;
    };

    sim::CrashModel here_;
    std::uint64_t here_number_;
    sim::CrashModel replica_;
    sim::CrashModel incoming_;
    bool is_replaced_ = false;              ///< here_ is what was incoming
    std::optional<NamedFile> replaced_;     ///< it has the name again after a power cut: the new name is not durable yet
    std::vector<std::vector<std::byte>> records_;  ///< any of them after a power cut; the last one is read until then
    std::vector<std::uint64_t> writers_;    ///< likewise
};

}  // namespace stillpoint::explorer
