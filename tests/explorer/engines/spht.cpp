#include "engines/spht.hpp"

#include "engines/spht/log_recovery.hpp"
#include "engines/spht/spht_layout.hpp"
#include "logs/log_bytes.hpp"

namespace stillpoint::explorer::spht_places {

namespace {

bool is_in_chunk_header(const Pool& pool, std::uint64_t byte) noexcept
{
    for (const Segment& segment : pool.segments()) {
        const std::uint64_t begin = spht::LogPart::first_page(segment) * page_bytes;
        if (byte >= begin && byte < begin + logs::LogPart::pages_of(segment) * page_bytes) {
            const std::uint64_t in_chunk = (byte - begin) % logs::chunk_bytes;
            return in_chunk < sizeof(logs::ChunkHeader) || in_chunk >= logs::header_copy_offset;
        }
    }
    return false;
}

}  // namespace

std::uint64_t marker_offset(const Pool& pool) noexcept { return (pool.facts().engine_area_first_page + spht::marker_page) * page_bytes; }

std::vector<std::uint64_t> ends_of_logs(const Pool& pool, std::uint64_t durable_epoch)
{
    std::vector<std::uint64_t> offsets;
    for (const Segment& segment : pool.segments()) {
        for (std::uint64_t page = 0; page < spht::LogPart::pages_for(segment.image_pages); page += logs::chunk_pages) {
            offsets.push_back((spht::LogPart::first_page(segment) + page) * page_bytes);
        }
    }
    std::vector<std::vector<std::byte>> chunks(offsets.size(), std::vector<std::byte>(logs::chunk_bytes));
    std::vector<const std::byte*> bytes;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
        static_cast<void>(logs::read_chunk(pool.medium(), offsets[i], chunks[i].data()));
        bytes.push_back(chunks[i].data());
    }
    std::vector<std::uint64_t> ends;
    const auto logs = spht::read_logs(pool, durable_epoch, {bytes.data(), static_cast<std::uint32_t>(bytes.size())}, nullptr);
    if (!logs) {
        return ends;
    }
    for (const logs::ScannedLog& log : logs->index.logs) {
        if (!log.records.empty() && log.records.back().timestamp != logs->marker) {
            const logs::Position position = log.records.back().position;
            ends.push_back(offsets[logs::chunk_of(position)] + logs::offset_in_chunk(position));
        }
    }
    return ends;
}

bool has_copy(const Pool& pool, std::uint64_t byte) noexcept
{
    const std::uint64_t points = (pool.facts().engine_area_first_page + spht::replay_points_page) * page_bytes;
    return (byte >= points && byte < points + 2 * page_bytes) || is_in_chunk_header(pool, byte);
}

}  // namespace stillpoint::explorer::spht_places
