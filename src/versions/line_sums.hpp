#pragma once
// LineSums: which lines of a page changed, where nothing has marked them. Checksums of a page's lines, as they were when it was last
// written, are compared with those of its copy. Two contents of a line with one sum of 64 bits count as the same, as two contents of a page
// do for EpochWriter::write_page.

#include <cstdint>
#include <optional>

#include "core/result.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::versions {

/// Memory: 512 bytes for each page that was compared, 1 byte for each other one.
/// Threads: the checkpoint thread.
class LineSums {
public:
    /// A page of which more than delta_lines_of_page_max lines changed is not compared again for so many epochs.
    static constexpr std::uint8_t epochs_left_alone = 60;

    [[nodiscard]] Result<void> reserve(std::uint64_t image_pages_max, std::uint64_t seed);

    /// To be called for each copy of a page that becomes durable, except after forget(). A bit for each line that changed since the
    /// last one, lowest first, at most delta_lines_of_page_max; empty: that is not known, or there are more.
    [[nodiscard]] std::optional<std::uint64_t> changed_lines(std::uint64_t image_page, const std::byte* copy) noexcept;
    /// A copy becomes durable that changed_lines() was not called for.
    void forget(std::uint64_t image_page) noexcept { states_[image_page] = unknown; }

private:
    static constexpr std::uint8_t unknown = 0;
    static constexpr std::uint8_t known = 255;  ///< between them: so many epochs on

    os::ReservedArray<std::uint64_t> sums_;
    os::ReservedArray<std::uint8_t> states_;  ///< by image page
    std::uint64_t seed_ = 0;
};

}  // namespace stillpoint::versions
