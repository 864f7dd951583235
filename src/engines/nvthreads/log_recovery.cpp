#include "engines/nvthreads/log_recovery.hpp"

#include <array>

#include "logs/durable_marker.hpp"

namespace stillpoint::nvthreads {

Result<RecoveredLogs> read_logs(const Pool& pool, std::uint64_t durable_epoch, const logs::LogBytes& bytes, Findings* findings)
{
    auto point = logs::read_replay_point(pool, durable_epoch);
    if (!point) {
        return pass_on(point.error());
    }
    std::array<std::uint64_t, 3> words{};
    const std::uint64_t offset = (pool.facts().engine_area_first_page + logs::marker_page) * page_bytes;
    if (auto read = pool.medium().read(offset, std::as_writable_bytes(std::span(words))); !read) {
        return pass_on(read.error());
    }
    if (durable_epoch == 0) {
        words = {};  // A crash may have torn them: nothing was logged before the first epoch, which has them.
    }
    const auto [word, magic, whose_logs] = words;
    if (!logs::decode_marker(word) || whose_logs != 0 || magic != (word != 0 ? logs::marker_magic : 0)) {
        return logs::damaged(pool, "the page that says whether its logs are in use is damaged");
    }
    auto grouped = logs::read_grouped(pool, *point, bytes, findings);
    if (!grouped) {
        return pass_on(grouped.error());
    }
    if (word == 0 && grouped->index.chunks_in_use != 0) {
        if (auto told = found(findings, logs::damaged(pool, "the word that says that its logs are in use is gone")); !told) {
            return pass_on(told.error());
        }
    }
    return RecoveredLogs{*point, word != 0, grouped->group, std::move(grouped->index)};
}

}  // namespace stillpoint::nvthreads
