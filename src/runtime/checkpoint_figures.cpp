#include "runtime/checkpoint_figures.hpp"

#include "media/medium.hpp"
#include "os/log.hpp"
#include "os/probes.hpp"
#include "runtime/statistics.hpp"

namespace stillpoint {

void record_stop(std::uint64_t running_epoch, std::uint64_t stop_ns, std::uint64_t quiesce_ns) noexcept
{
    Statistics& here = statistics();
    here.epoch.store(running_epoch, std::memory_order_relaxed);
    here.quiesce_ns_last.store(quiesce_ns, std::memory_order_relaxed);
    record_stop_time(stop_ns);
}

void record_commit(std::uint64_t epoch, std::uint64_t captured_ns, std::uint64_t write_ns, const Medium& medium) noexcept
{
    Statistics& here = statistics();
    const MediumCounters counters = medium.counters();
    const std::uint64_t before_ns = here.last_durable_ns.load(std::memory_order_relaxed);
    here.durable_epoch.store(epoch, std::memory_order_release);
    here.last_durable_ns.store(captured_ns, std::memory_order_relaxed);
    if (before_ns != 0) {
        here.last_interval_ns.store(captured_ns - before_ns, std::memory_order_relaxed);
    }
    here.checkpoints.fetch_add(1, std::memory_order_relaxed);
    here.bytes_written.store(counters.bytes_written, std::memory_order_relaxed);
    here.medium_syncs.store(counters.syncs, std::memory_order_relaxed);
    here.lines_written_back.store(counters.lines_written_back, std::memory_order_relaxed);
    here.persist_points.store(counters.persist_points, std::memory_order_relaxed);
    here.fences.store(counters.fences, std::memory_order_relaxed);
    STILLPOINT_PROBE3(durable, epoch, write_ns, captured_ns);
    here.write_ns_last.store(write_ns, std::memory_order_relaxed);
    os::log(os::Severity::debug, "epoch {} is durable: written in {:.3f} ms, last stop {:.3f} ms", epoch,
            static_cast<double>(write_ns) / 1e6, static_cast<double>(here.stop_ns_last.load(std::memory_order_relaxed)) / 1e6);
}

void probe_captured(std::uint64_t epoch) noexcept
{
    STILLPOINT_PROBE1(captured, epoch);
    STILLPOINT_PROBE1(epoch_begun, epoch + 1);
}

}  // namespace stillpoint
