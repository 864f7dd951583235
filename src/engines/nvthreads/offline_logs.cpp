#include "engines/nvthreads/offline_logs.hpp"

#include <array>

#include "engines/nvthreads/log_recovery.hpp"
#include "logs/offline_chunks.hpp"
#include "versions/offline.hpp"

namespace stillpoint::nvthreads {

namespace {

struct CheckContext {
    const Pool* pool;
    Findings* findings;
    std::uint64_t durable_epoch;
    Result<void> (*visit_image)(void* context, std::byte* base, std::uint64_t image_bytes);
    void* context;
};

Result<void> visit_replayed(void* self, std::byte* base, std::uint64_t image_bytes)
{
    const CheckContext& here = *static_cast<const CheckContext*>(self);
    logs::OfflineChunks chunks;
    if (auto done = chunks.read(*here.pool); !done) {
        return done;
    }
    auto logs = read_logs(*here.pool, here.durable_epoch, chunks.bytes(), here.findings);
    if (!logs) {
        return found(here.findings, pass_on(logs.error()));
    }
    if (auto done = logs::replay_offline(*here.pool, chunks.bytes(), logs->index, base, image_bytes); !done) {
        return found(here.findings, pass_on(done.error()));
    }
    return here.visit_image != nullptr ? here.visit_image(here.context, base, image_bytes) : Result<void>{};
}

constexpr FactColumn columns[] = {
    {"log", "log", FactKind::number, 6},
    {"run", "run", FactKind::number, 6},
    {"records_to_replay", "to replay", FactKind::number, 12},
    {"newest_timestamp", "newest timestamp", FactKind::number, 20},
    {"replayed_timestamp", "replayed up to", FactKind::number, 20},
    {"marker", "marker", FactKind::number, 20},
};

Result<void> visit_logs(const Pool& pool, const std::byte* /*base*/, std::uint64_t /*image_bytes*/, Findings& findings,
                        void (*show)(void* context, std::span<const Fact> row), void* context)
{
    auto report = versions::inspect_pool(pool);
    if (!report) {
        return pass_on(report.error());
    }
    logs::OfflineChunks chunks;
    if (auto done = chunks.read(pool); !done) {
        return done;
    }
    const auto logs = read_logs(pool, report->epoch, chunks.bytes(), &findings);
    if (!logs) {
        return found(&findings, pass_on(logs.error()));
    }
    for (const logs::ScannedLog& log : logs->index.logs) {
        const logs::Timestamp newest = log.records.empty() ? logs->point.replayed : log.records.back().timestamp;
        std::array<Fact, std::size(columns)> row{};
        const std::uint64_t numbers[] = {log.log, log.run, log.records.size(), newest, logs->point.replayed, logs->group.marker};
        for (std::size_t i = 0; i < row.size(); ++i) {
            row[i].number = numbers[i];
        }
        show(context, row);
    }
    return {};
}

}  // namespace

const EngineFacts log_facts{
    "section-logs",
    "Shows each log of a pool of nvthreads: its records that are not replayed yet, and the marker that a crash now would cut it at.",
    columns, &visit_logs};

Result<RecoveryReport> inspect_pool(const Pool& pool)
{
    auto report = versions::inspect_pool(pool);
    if (!report) {
        return report;
    }
    if (auto point = logs::read_replay_point(pool, report->epoch); !point) {
        return pass_on(point.error());
    }
    return report;
}

Result<RecoveryReport> check_pool(const Pool& pool, Findings* findings,
                                  Result<void> (*visit_image)(void* context, std::byte* base, std::uint64_t image_bytes), void* context,
                                  void (*progress)(std::uint64_t done, std::uint64_t total))
{
    auto report = versions::inspect_pool(pool);
    if (!report) {
        return report;
    }
    CheckContext check{&pool, findings, report->epoch, visit_image, context};
    return versions::check_pool(pool, findings, &visit_replayed, &check, progress);
}

}  // namespace stillpoint::nvthreads
