#pragma once
// The program's SP_PERSISTENT variables: ordinary memory of which the image keeps a copy, made again in each stop.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "core/result.hpp"
#include "core/store_marks.hpp"
#include "runtime/engine.hpp"

namespace stillpoint {

/// Threads: add() before checkpoints begin; the rest is the checkpoint thread's.
class MirroredRanges {
public:
    /// Errors: invalid_argument (too many program files have such variables).
    [[nodiscard]] Result<void> add(const MirroredRange& range)
    {
        if (count_ == ranges_.size()) {
            return fail(SP_E_INVALID_ARGUMENT, 0, "more than {} program files have SP_PERSISTENT variables; put them into fewer",
                        ranges_.size());
        }
        ranges_[count_++] = range;
        return {};
    }

    [[nodiscard]] bool changed() const noexcept
    {
        const std::span<const MirroredRange> known(ranges_.data(), count_);
        return std::any_of(known.begin(), known.end(),
                           [](const MirroredRange& range) { return std::memcmp(range.image_copy, range.program_memory, range.size) != 0; });
    }

    /// Only what changed is stored: each stored page is a page to write. Before each store prepare(address, size) is called:
    /// SIGSEGV is blocked in the checkpoint thread, so a tracker that takes stores as faults must not meet one there.
    template <class Prepare>
    void update(Prepare&& prepare) noexcept
    {
        constexpr std::size_t part_bytes = 1024;
        for (const MirroredRange& range : std::span(ranges_.data(), count_)) {
            for (std::size_t at = 0; at < range.size; at += part_bytes) {
                const std::size_t size = std::min(part_bytes, range.size - at);
                if (std::memcmp(range.image_copy + at, range.program_memory + at, size) != 0) {
                    prepare(range.image_copy + at, size);
                    announce_store(range.image_copy + at, size);
                    std::memcpy(range.image_copy + at, range.program_memory + at, size);
                    note_store(range.image_copy + at, size);
                }
            }
        }
    }

private:
    std::array<MirroredRange, 32> ranges_{};
    std::size_t count_ = 0;
};

}  // namespace stillpoint
