#include "world.hpp"

#include <cmath>
#include <numbers>

namespace bench::model {
namespace {

constexpr double line_bytes = 64;

/// A factor with mean 1, the logarithm normally distributed.
double lognormal(Worker& worker, double sigma)
{
    if (sigma == 0) {
        return 1;
    }
    const double radius = std::sqrt(-2 * std::log(1 - worker.uniform()));
    const double normal = radius * std::cos(2 * std::numbers::pi * worker.uniform());
    return std::exp(sigma * normal - sigma * sigma / 2);
}

}  // namespace

World::World(const Machine& machine_, const Workload& workload_, int threads, std::uint64_t seed) : machine(machine_), workload(workload_)
{
    const int cores = static_cast<int>(machine.cores_per_socket);
    const int places_of_socket = cores * static_cast<int>(machine.threads_per_core);
    for (int id = 0; id < threads; ++id) {
        auto worker = std::make_unique<Worker>();
        worker->id = id;
        worker->socket = id / places_of_socket % static_cast<int>(machine.sockets);
        worker->random = Random(seed * 1000003 + static_cast<std::uint64_t>(id));
        worker->random.next();
        worker->seen_versions.resize(static_cast<std::size_t>(threads));
        if (id % places_of_socket >= cores) {
            Worker& first = *workers[static_cast<std::size_t>(id - cores)];
            worker->sibling = &first;
            first.sibling = worker.get();
        }
        workers.push_back(std::move(worker));
    }
}

Transaction World::next_transaction(Worker& worker) const
{
    Transaction transaction{};
    const double factor = machine.compute_factor * lognormal(worker, workload.time_sigma);
    transaction.outside_ns = workload.outside_ns * factor;
    transaction.body_ns = workload.body_ns * factor;
    transaction.is_read_only = workload.read_only_share > 0 && worker.uniform() < workload.read_only_share;
    transaction.read_words = workload.read_words;
    transaction.written_words = transaction.is_read_only ? 0 : workload.written_words;
    transaction.footprint_lines = workload.footprint_lines * lognormal(worker, workload.footprint_sigma);
    return transaction;
}

Task<> World::compute(Worker& worker, double duration_ns, Activity activity)
{
    const double since_ns = simulation.now_ns();
    const double factor = slowdown(worker);
    worker.is_computing = true;
    co_await simulation.delay(duration_ns * factor);
    worker.is_computing = false;
    account(worker, activity, since_ns);
}

double World::memory_ns(Worker& worker, double lines, double latency_ns)
{
    ++worker.counters.flushes;
    const double factor = worker.socket == 0 ? 1 : machine.second_socket_flush_factor;
    // A gigabyte a second is a byte a nanosecond.
    const double queue_ns = persistent_memory_.occupy(simulation, lines * line_bytes / machine.persistent_write_gb_per_s);
    return std::max(latency_ns * factor, queue_ns);
}

double World::flush_ns(Worker& worker, double bytes)
{
    const double lines = std::max(1.0, std::ceil(bytes / line_bytes));
    return memory_ns(worker, lines, machine.flush_first_line_ns + (lines - 1) * machine.flush_next_line_ns);
}

double World::flush_again_ns(Worker& worker) { return memory_ns(worker, 1, machine.flush_again_ns); }

double World::access_ns(SharedLine& line, const Worker& worker) const
{
    const bool is_here = line.owner == &worker || line.owner == nullptr;
    const double transfer = is_here ? 0 : transfer_ns(*line.owner, worker);
    line.owner = &worker;
    return line.transfers.occupy(simulation, transfer + machine.compare_and_swap_ns);
}

double World::scan_ns(Worker& worker) const
{
    double scanned_ns = 0;
    for (const auto& other : workers) {
        std::uint64_t& seen = worker.seen_versions[static_cast<std::size_t>(other->id)];
        if (other.get() != &worker && seen != other->version) {
            seen = other->version;
            scanned_ns += machine.line_scan_ns * (other->socket == worker.socket ? 1 : machine.second_socket_factor);
        }
    }
    return scanned_ns;
}

void World::publish(Worker& worker, double timestamp_, bool is_persistent, bool is_update)
{
    worker.timestamp = timestamp_;
    worker.is_persistent = is_persistent;
    worker.is_update = is_update;
    ++worker.version;
    worker.changed.notify_all(simulation, machine.line_transfer_ns);
}

}  // namespace bench::model
