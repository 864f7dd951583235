#include "logs/log_chunks.hpp"

#include <algorithm>
#include <optional>

#include "core/canary.hpp"
#include "logs/record_checks.hpp"

namespace stillpoint::logs {

std::vector<ChunkInUse> chunks_in_use(const LogBytes& bytes)
{
    std::vector<ChunkInUse> chunks;
    for (std::uint32_t chunk = 0; chunk < bytes.count; ++chunk) {
        const auto front = chunk_header_in(bytes.chunks[chunk]);
        const auto copy = is_removed(Canary::redo_chunk_copy) ? std::nullopt : chunk_header_in(bytes.chunks[chunk] + header_copy_offset);
        if (front || copy) {
            chunks.push_back({chunk, !copy || (front && front->use >= copy->use) ? *front : *copy, front && copy});
        }
    }
    std::sort(chunks.begin(), chunks.end(), [](const ChunkInUse& a, const ChunkInUse& b) {
        return std::tuple(a.key(), a.header.use) < std::tuple(b.key(), b.header.use);
    });
    return chunks;
}

}  // namespace stillpoint::logs
