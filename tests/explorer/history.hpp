#pragma once
// History: what a crash may return to, by what the programs did and were told up to the crash.

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "sim/trace.hpp"
#include "part_history.hpp"

namespace stillpoint::explorer {

/// The image at the capture of an epoch.
struct EpochState {
    std::uint64_t operations;
    std::uint64_t image_digest;
    std::vector<std::uint64_t> page_digests;
};

/// The state that must have survived.
struct Floor {
    std::uint64_t epoch = 0;
    std::uint64_t operations = 0;
};

/// Copies are cheap: states are shared.
class History {
public:
    /// Takes what concerns it of the next event of a run's trace.
    void apply(const sim::Event& event);

    /// A run has recovered `epoch`, with so many operations: what came after was lost, and may never come back. Its own epochs
    /// begin with `first_epoch`.
    void begin_run(std::uint64_t epoch, std::uint64_t operations, std::uint64_t first_epoch);
    /// Checkpoints come by the clock: states are noted after each operation, under the epoch that runs then.
    void expect_states_by_the_clock() noexcept { by_the_clock_ = true; }
    /// The programs work on durable objects: images of epochs are not noted.
    void expect_parts_only() noexcept { parts_only_ = true; }
    [[nodiscard]] bool has_parts_only() const noexcept { return parts_only_; }
    /// Operations are durable on return: a state is that after some of them, whatever the epoch.
    void expect_operations_only() noexcept { operations_only_ = true; }
    [[nodiscard]] bool has_operations_only() const noexcept { return operations_only_; }
    /// So many of the newest acknowledged operations may be lost: of the program, or of each part.
    void forgive_newest(std::size_t operations) noexcept;
    [[nodiscard]] bool has_every_state() const noexcept { return !by_the_clock_; }

    /// The largest epoch number that a program has seen: running, captured or durable.
    [[nodiscard]] std::uint64_t told() const noexcept { return told_; }

    [[nodiscard]] const Floor& floor() const noexcept { return floor_; }
    /// nullptr: this epoch was not captured. By the clock it is the newest up to the epoch, of its run.
    [[nodiscard]] const EpochState* state(std::uint64_t epoch) const;
    /// The model's digest after that many operations; nullptr: no program came so far.
    [[nodiscard]] const std::uint64_t* operation(std::uint64_t operations) const;
    /// Histories of programs that work on durable objects; empty for others.
    [[nodiscard]] const PartHistory& parts() const noexcept { return parts_; }
    [[nodiscard]] PartHistory& parts() noexcept { return parts_; }

private:
    std::map<std::uint64_t, std::shared_ptr<const EpochState>> states_;
    std::map<std::uint64_t, std::uint64_t> operations_;
    PartHistory parts_;
    Floor floor_;
    std::uint64_t told_ = 0;
    std::uint64_t run_began_with_ = 0;
    bool by_the_clock_ = false;
    bool parts_only_ = false;
    bool operations_only_ = false;
};

}  // namespace stillpoint::explorer
