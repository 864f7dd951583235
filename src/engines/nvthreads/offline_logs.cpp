#include "engines/nvthreads/offline_logs.hpp"

#include <utility>

#include "engines/nvthreads/log_recovery.hpp"
#include "logs/offline_logs.hpp"

namespace stillpoint::nvthreads {

namespace {

Result<logs::LogsOfPool> read(const Pool& pool, std::uint64_t durable_epoch, const logs::LogBytes& bytes, Findings* findings)
{
    auto logs = read_logs(pool, durable_epoch, bytes, findings);
    if (!logs) {
        return pass_on(logs.error());
    }
    return logs::LogsOfPool{logs->point, logs->marker, std::move(logs->index)};
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
    return logs::visit_logs(pool, &read, findings, show, context);
}

}  // namespace

const EngineFacts log_facts{
    "section-logs",
    "Shows each log of a pool of nvthreads: its records that are not replayed yet, and the marker that a crash now would cut it at.",
    columns, &visit_logs};

Result<RecoveryReport> check_pool(const Pool& pool, Findings* findings,
                                  Result<void> (*visit_image)(void* context, std::byte* base, std::uint64_t image_bytes), void* context,
                                  void (*progress)(std::uint64_t done, std::uint64_t total))
{
    return logs::check_pool(pool, &read, findings, visit_image, context, progress);
}

}  // namespace stillpoint::nvthreads
