#pragma once
// The accesses of one thread to durable memory, for lint_rules.cpp. What counts since its last restart point only is forgotten by
// a number: no table is swept.

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/lint_report.hpp"

namespace stillpoint::respct::lint_notes {

using lint::Place;

constexpr std::uintptr_t word_bytes = 8;
constexpr std::uintptr_t line_bytes = 64;

/// One word of durable memory. Bit n of a mask is its byte n.
struct Word {
    std::uintptr_t address;   ///< 0: unused
    const void* reader;       ///< the code that read `exposed` bytes first
    std::uint32_t interval;   ///< that `written_first` is of
    std::uint32_t exposed_at; ///< as now() was
    std::uint8_t written_first;  ///< in the interval
    std::uint8_t exposed;     ///< read first in some interval: a thread that continues at its start after a crash reads them again
};

/// A line that was written or tracked, in either order: tracked lines are written back after the end of the epoch.
struct Line {
    std::uintptr_t address;
    std::uintptr_t store;    ///< where in it, the last time
    std::size_t size_bytes;
    Place* place;            ///< of that store; nullptr: there was none, or it is tracked
    std::uint32_t epoch;     ///< as `Interval::epoch_`; another: unused
    bool is_tracked;
};

struct Block {
    std::uintptr_t begin;
    std::uintptr_t end;
};

/// In zeroed pages that cost memory where they are touched. What does not fit any more is passed over: a mistake more is not seen.
class Interval {
public:
    [[nodiscard]] static Interval* make() noexcept;
    void unmake() noexcept;

    /// As far as its memory is the same block still. nullptr: no room.
    [[nodiscard]] Word* word(std::uintptr_t address) noexcept;
    /// A store whose line is to be tracked.
    void written(std::uintptr_t store, std::size_t size_bytes, Place* place) noexcept;
    /// add_modified: the lines of the bytes are tracked.
    void tracked(const void* address, std::size_t size_bytes) noexcept;
    /// An epoch may have ended; those lines are written back with it, and not with the next one.
    void forget_tracked() noexcept
    {
        ++epoch_;
        ranges_count_ = 0;
        listed_ = 0;
    }
    /// A new block: what was in it belongs to no variable any more.
    void allocated(const void* block, std::size_t size_bytes) noexcept;
    [[nodiscard]] bool is_new(std::uintptr_t address) const noexcept;
    /// Any thread: what any has read there is of a block that is gone.
    static void reused(const void* block, std::size_t size_bytes) noexcept;
    /// Counts calls of reused().
    [[nodiscard]] static std::uint32_t now() noexcept;

    /// Calls visit(line) for each line that was written and not tracked.
    template <class Visit>
    void visit_untracked(Visit visit) const noexcept
    {
        for (std::uint32_t index = 0; index < listed_; ++index) {
            if (const Line& line = lines_[list_[index]]; line.place != nullptr) {
                visit(line);
            }
        }
    }
    void begin_next() noexcept
    {
        forget_tracked();
        ++number_;
        blocks_count_ = 0;
    }

    bool is_busy;  ///< the thread is in here: a signal's handler is not followed

private:
    static constexpr std::size_t words_max = 1 << 20;
    static constexpr std::size_t lines_max = 1 << 17;
    static constexpr std::size_t listed_max = lines_max / 2;
    static constexpr std::size_t blocks_max = 1024;
    static constexpr std::size_t probes_max = 64;

    [[nodiscard]] Line* line(std::uintptr_t address) noexcept;

    std::uint32_t number_;
    std::uint32_t epoch_;
    std::uint32_t listed_;
    std::uint32_t blocks_count_;
    std::uint32_t ranges_count_;
    std::array<Block, blocks_max> blocks_;  ///< allocated
    std::array<Block, blocks_max> ranges_;  ///< whole lines that are tracked: the long ones
    std::array<std::uint32_t, listed_max> list_;  ///< of lines_, in the order of their first use
    std::array<Line, lines_max> lines_;
    std::array<Word, words_max> words_;
};

}  // namespace stillpoint::respct::lint_notes
