#include "logs/offline_logs.hpp"

#include <array>

#include "core/pool_part.hpp"
#include "logs/grouped_logs.hpp"
#include "logs/offline_chunks.hpp"
#include "versions/offline.hpp"

namespace stillpoint::logs {

namespace {

struct CheckContext {
    const Pool* pool;
    ReadLogs read;
    Findings* findings;
    std::uint64_t durable_epoch;
    Result<void> (*visit_image)(void* context, std::byte* base, std::uint64_t image_bytes);
    void* context;
};

Result<void> visit_replayed(void* self, std::byte* base, std::uint64_t image_bytes)
{
    const CheckContext& here = *static_cast<const CheckContext*>(self);
    look_at(here.findings, PoolPart::logs);
    OfflineChunks chunks;
    if (auto done = chunks.read(*here.pool); !done) {
        return done;
    }
    auto logs = here.read(*here.pool, here.durable_epoch, chunks.bytes(), here.findings);
    if (!logs) {
        return found(here.findings, pass_on(logs.error()));
    }
    if (auto done = replay_offline(*here.pool, chunks.bytes(), logs->index, base, image_bytes); !done) {
        return found(here.findings, pass_on(done.error()));
    }
    return here.visit_image != nullptr ? here.visit_image(here.context, base, image_bytes) : Result<void>{};
}

}  // namespace

Result<RecoveryReport> inspect_pool(const Pool& pool)
{
    auto report = versions::inspect_pool(pool);
    if (!report) {
        return report;
    }
    if (auto point = read_replay_point(pool, report->epoch); !point) {
        return pass_on(point.error());
    }
    return report;
}

Result<RecoveryReport> check_pool(const Pool& pool, ReadLogs read, Findings* findings,
                                  Result<void> (*visit_image)(void* context, std::byte* base, std::uint64_t image_bytes), void* context,
                                  void (*progress)(std::uint64_t done, std::uint64_t total))
{
    look_at(findings, PoolPart::tables);
    auto report = versions::inspect_pool(pool);
    if (!report) {
        return report;
    }
    CheckContext check{&pool, read, findings, report->epoch, visit_image, context};
    return versions::check_pool(pool, findings, &visit_replayed, &check, progress);
}

Result<void> visit_logs(const Pool& pool, ReadLogs read, Findings& findings, void (*show)(void* context, std::span<const Fact> row),
                        void* context)
{
    auto report = versions::inspect_pool(pool);
    if (!report) {
        return pass_on(report.error());
    }
    look_at(&findings, PoolPart::logs);
    OfflineChunks chunks;
    if (auto done = chunks.read(pool); !done) {
        return done;
    }
    const auto logs = read(pool, report->epoch, chunks.bytes(), &findings);
    if (!logs) {
        return found(&findings, pass_on(logs.error()));
    }
    for (const ScannedLog& log : logs->index.logs) {
        const Timestamp newest = log.records.empty() ? logs->point.replayed : log.records.back().timestamp;
        const std::uint64_t numbers[] = {log.log, log.run, log.records.size(), newest, logs->point.replayed, logs->marker};
        std::array<Fact, std::size(numbers)> row{};
        for (std::size_t i = 0; i < row.size(); ++i) {
            row[i].number = numbers[i];
        }
        show(context, row);
    }
    return {};
}

}  // namespace stillpoint::logs
