#pragma once
// Staging memory of snapshots: copies of frozen pieces that wait to be written. Slots of one piece each; which are free and
// which are filled is on two stacks without locks, because a fault handler takes and fills them.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/result.hpp"
#include "core/units.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::pronto {

inline constexpr std::uint64_t piece_bytes = 2 * mib;
inline constexpr std::uint64_t pages_per_piece = piece_bytes / page_bytes;

class SnapshotStaging {
public:
    static constexpr std::uint32_t none = UINT32_MAX;

    /// At least two slots, whatever `bytes_max` is.
    [[nodiscard]] Result<void> reserve(std::uint64_t bytes_max);

    /// A free slot that now belongs to the caller, or none. It leaves `spare` of them to others. Async-signal-safe.
    [[nodiscard]] std::uint32_t take(std::uint32_t spare) noexcept;
    [[nodiscard]] std::byte* bytes_of(std::uint32_t slot) noexcept { return memory_.data() + slot * piece_bytes; }
    /// The slot holds a copy of `piece`. Async-signal-safe.
    void fill(std::uint32_t slot, std::uint32_t piece) noexcept;
    /// Back to the free ones without a copy in it. Async-signal-safe.
    void give_back(std::uint32_t slot) noexcept;

    struct Filled {
        std::uint32_t slot;
        std::uint32_t piece;
    };
    /// A filled slot; slot is none where there is none. The snapshot's thread only.
    [[nodiscard]] Filled next_filled() noexcept;

    /// For handlers: the snapshot's thread takes none of the last few.
    [[nodiscard]] std::uint32_t reserved_for_handlers() const noexcept { return count_ / 8 + 1; }
    [[nodiscard]] std::uint64_t used_bytes_peak() const noexcept { return peak_.load(std::memory_order_relaxed) * piece_bytes; }

    /// In the stop, while no handler is at work and no slot in use: the lowest slots are the next ones to be taken.
    void sort_free_slots() noexcept;
    /// No slot holds a copy: memory beyond what recent snapshots used goes back to the system.
    void end_snapshot() noexcept;
    /// No slot holds a copy, and there has been no snapshot for a while: all of it goes back.
    void note_idle() noexcept;

private:
    /// Index of the top slot, low half; number of changes, high half, so that a top that left and came back is not taken for the
    /// one that was examined.
    using Top = std::atomic<std::uint64_t>;

    void push(Top& top, std::uint32_t slot) noexcept;
    [[nodiscard]] std::uint32_t pop(Top& top) noexcept;

    os::ReservedArray<std::byte> memory_;
    os::ReservedArray<std::uint32_t> below_;     ///< by slot: the next one on its stack
    os::ReservedArray<std::uint32_t> piece_of_;  ///< by slot
    Top free_{none};
    Top filled_{none};
    std::atomic<std::uint32_t> free_count_{0};
    std::atomic<std::uint64_t> peak_{0};  ///< slots in use at once, of this run
    std::atomic<std::uint64_t> used_{0};  ///< the same, of this snapshot
    std::uint64_t recent_ = 0;            ///< the same, of recent snapshots
    std::uint64_t held_ = 0;              ///< slots that have memory
    std::uint32_t count_ = 0;
};

}  // namespace stillpoint::pronto
