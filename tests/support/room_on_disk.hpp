#pragma once
// For tests: which bytes of a file have no room on the disk yet. Room is taken from the first of them on.

#include <algorithm>
#include <cstdint>

#include "media/medium.hpp"

namespace stillpoint::testing {

class RoomOnDisk {
public:
    void leave_without(FileRange range) noexcept { without_ = range; }
    void take(FileRange range) noexcept
    {
        if (range.begin <= without_.begin) {
            without_.begin = std::max(without_.begin, range.end);
        }
    }
    [[nodiscard]] FileRange without() const noexcept { return without_; }
    [[nodiscard]] bool is_there_for(std::uint64_t offset, std::uint64_t size) const noexcept
    {
        return std::max(offset, without_.begin) >= std::min(offset + size, without_.end);
    }

private:
    FileRange without_;
};

}  // namespace stillpoint::testing
