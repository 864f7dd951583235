#pragma once
// The numbered pages of the delta log, over the parts of all segments (delta_layout.hpp).

#include <array>
#include <cstdint>

#include "core/result.hpp"
#include "media/medium.hpp"
#include "pool/pool.hpp"
#include "versions/delta_layout.hpp"

namespace stillpoint::versions {

/// Threads: by the caller.
class DeltaRow {
public:
    void add_segment(const Segment& segment) noexcept
    {
        const std::uint64_t heads = part_count_ == 0 ? delta_head_pages : 0;
        const std::uint64_t pages = delta_pages_for(segment.image_pages) - heads;
        parts_[part_count_++] = {first_delta_page(segment) + heads, page_count_, pages};
        page_count_ += pages;
    }
    [[nodiscard]] std::uint64_t page_count() const noexcept { return page_count_; }
    [[nodiscard]] bool has_segments() const noexcept { return part_count_ != 0; }
    /// The first copy of the head in `place`.
    [[nodiscard]] std::uint64_t head_file_page(std::uint64_t place) const noexcept
    {
        return parts_[0].first_file_page - delta_head_pages + place * table_copies;
    }

    /// Calls visit(first file page, index of the piece's first page, count) for each run of neighbours in the file that [first, + count)
    /// of the row consists of.
    template <class Visit>
    void visit_pieces(std::uint64_t first, std::uint64_t count, Visit&& visit) const
    {
        std::uint64_t done = 0;
        for (std::size_t i = 0; i < part_count_ && done < count; ++i) {
            const Part& part = parts_[i];
            const std::uint64_t at = first + done;
            if (at < part.first || at - part.first >= part.pages) {
                continue;
            }
            const std::uint64_t pages = std::min(count - done, part.pages - (at - part.first));
            visit(part.first_file_page + (at - part.first), done, pages);
            done += pages;
        }
    }

    /// Reads [first, + count) of the row into `bytes`. Errors: pool_truncated, io.
    [[nodiscard]] Result<void> read(const Medium& medium, std::uint64_t first, std::uint64_t count, std::byte* bytes) const
    {
        Result<void> outcome;
        visit_pieces(first, count, [&](std::uint64_t file_page, std::uint64_t index, std::uint64_t pages) {
            if (outcome) {
                outcome = medium.read(byte_offset(FilePage{file_page}), {bytes + index * page_bytes, pages * page_bytes});
            }
        });
        return outcome;
    }

private:
    struct Part {
        std::uint64_t first_file_page;
        std::uint64_t first;  ///< its number in the row
        std::uint64_t pages;
    };
    std::array<Part, Pool::segments_max> parts_{};
    std::size_t part_count_ = 0;
    std::uint64_t page_count_ = 0;
};

}  // namespace stillpoint::versions
