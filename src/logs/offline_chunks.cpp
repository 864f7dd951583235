#include "logs/offline_chunks.hpp"

#include "logs/grouped_logs.hpp"
#include "logs/replay_order.hpp"
#include "logs/shard_replay.hpp"

namespace stillpoint::logs {

Result<void> OfflineChunks::read(const Pool& pool)
{
    std::vector<std::uint64_t> offsets;
    for (const Segment& segment : pool.segments()) {
        for (std::uint64_t page = 0; page < LogPart::pages_of(segment); page += chunk_pages) {
            offsets.push_back((LogPart::first_page(segment) + page) * page_bytes);
        }
    }
    if (auto done = bytes_.reserve(offsets.size() * chunk_bytes, "the logs"); !done) {
        return done;
    }
    for (std::size_t i = 0; i < offsets.size(); ++i) {
        chunks_.push_back(bytes_.data() + i * chunk_bytes);
        if (auto done = read_chunk(pool.medium(), offsets[i], bytes_.data() + i * chunk_bytes); !done) {
            return done;
        }
    }
    return {};
}

namespace {

Result<std::vector<RecordRef>> in_order(const LogIndex& index)
{
    std::vector<LogHead> heads;
    for (const ScannedLog& log : index.logs) {
        heads.emplace_back(log.records);
    }
    std::vector<RecordRef> ordered(index.live_records);
    static_cast<void>(order_by_timestamp(heads, ordered));
    return ordered;
}

}  // namespace

Result<void> replay_offline(const Pool& pool, const LogBytes& bytes, const LogIndex& index, std::byte* base, std::uint64_t image_bytes)
{
    const auto ordered = in_order(index);
    if (!ordered) {
        return pass_on(ordered.error());
    }
    struct Image {
        std::byte* base;
        std::uint64_t pages;
    } image{base, image_bytes / page_bytes};
    const auto page = [](void* self, std::uint64_t image_page) -> std::byte* {
        const Image& here = *static_cast<const Image*>(self);
        return image_page < here.pages ? here.base + image_page * page_bytes : nullptr;
    };
    ShardReplay shards;
    if (auto done = shards.reserve(pool.facts().image_bytes_max / page_bytes); !done) {
        return done;
    }
    if (!shards.run(bytes, *ordered, {page, &image}, {0, 1}, ReplayOrder::newest_first_without_copies)) {
        return fail(SP_E_POOL_CORRUPT, 0, "{}: a log record writes after the end of the image; restore the pool from a copy",
                    pool.medium().path());
    }
    return {};
}

}  // namespace stillpoint::logs
