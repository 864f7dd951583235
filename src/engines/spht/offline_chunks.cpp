#include "engines/spht/offline_chunks.hpp"

#include "engines/spht/log_recovery.hpp"
#include "engines/spht/spht_layout.hpp"

namespace stillpoint::spht {

Result<void> OfflineChunks::read(const Pool& pool)
{
    std::vector<std::uint64_t> offsets;
    for (const Segment& segment : pool.segments()) {
        const std::uint64_t pages = log_pages_for(segment.image_pages);
        for (std::uint64_t page = 0; page < pages; page += logs::chunk_pages) {
            offsets.push_back((first_log_page(segment) + page) * page_bytes);
        }
    }
    if (auto done = bytes_.reserve(offsets.size() * logs::chunk_bytes, "the logs"); !done) {
        return done;
    }
    for (std::size_t i = 0; i < offsets.size(); ++i) {
        chunks_.push_back(bytes_.data() + i * logs::chunk_bytes);
        if (auto done = read_chunk(pool.medium(), offsets[i], bytes_.data() + i * logs::chunk_bytes); !done) {
            return done;
        }
    }
    return {};
}

}  // namespace stillpoint::spht
