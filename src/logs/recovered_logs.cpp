#include "logs/recovered_logs.hpp"

#include <array>
#include <span>
#include <utility>

#include "logs/durable_marker.hpp"

namespace stillpoint::logs {

Result<MarkerPage> read_marker_page(const Pool& pool, std::uint64_t durable_epoch)
{
    std::array<std::uint64_t, 3> words{};
    const std::uint64_t offset = (pool.facts().engine_area_first_page + marker_page) * page_bytes;
    if (auto read = pool.medium().read(offset, std::as_writable_bytes(std::span(words))); !read) {
        return pass_on(read.error());
    }
    if (durable_epoch == 0) {
        words = {};  // A crash may have torn them: nothing was logged before the first epoch, which has them.
    }
    const auto [word, magic, whose_logs] = words;
    const auto marker = decode_marker(word);
    if (!marker || magic != (word != 0 ? marker_magic : 0)) {
        return damaged(pool, "the marker of the newest durable log record is damaged");
    }
    return MarkerPage{*marker, word != 0, whose_logs};
}

Result<RecoveredLogs> read_marked(const Pool& pool, const ReplayPoint& point, const MarkerPage& page, const LogBytes& bytes,
                                  Findings* findings)
{
    auto index = scan_logs(bytes, bounds_for(pool, point, page.marker, true), findings);
    if (!index) {
        return pass_on(index.error());
    }
    return RecoveredLogs{point, page.marker, page.is_written, page.whose_logs, newest_group(pool), std::move(*index)};
}

Result<RecoveredLogs> read_marked_or_grouped(const Pool& pool, const ReplayPoint& point, const MarkerPage& page, const LogBytes& bytes,
                                             Findings* findings)
{
    if (page.marker > point.replayed) {
        return read_marked(pool, point, page, bytes, findings);
    }
    auto grouped = read_grouped(pool, point, bytes, findings);
    if (!grouped) {
        return pass_on(grouped.error());
    }
    return RecoveredLogs{point, grouped->group.marker, page.is_written, page.whose_logs, grouped->group, std::move(grouped->index)};
}

Result<void> check_marker(const Pool& pool, const RecoveredLogs& logs, Findings* findings)
{
    if (logs.has_marker || logs.index.chunks_in_use == 0) {
        return {};
    }
    return found(findings, damaged(pool, "the marker of the newest durable log record is gone"));
}

}  // namespace stillpoint::logs
