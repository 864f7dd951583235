#include "world.hpp"

#include <cmath>
#include <numbers>

namespace bench::model {
namespace {

constexpr double line_bytes = 64;

}  // namespace

double Worker::lognormal(double sigma) noexcept
{
    if (sigma == 0) {
        return 1;
    }
    const double radius = std::sqrt(-2 * std::log1p(-uniform()));
    return std::exp(sigma * radius * std::cos(2 * std::numbers::pi * uniform()) - sigma * sigma / 2);
}

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

/// Time of a transaction for lines that it writes and that another thread wrote last, where they still lie in that thread's cache.
double World::sharing_ns(const Worker& worker, const TransactionClass& one) const
{
    double of_others_ns = 0;
    for (const auto& other : workers) {
        of_others_ns += other.get() == &worker ? 0 : transfer_ns(*other, worker);
    }
    const double threads = static_cast<double>(workers.size());
    double sum_ns = 0;
    for (const Accesses& accesses : one.accesses) {
        const Area& area = workload.areas[accesses.area];
        const double in_caches = std::min(1.0, threads * machine.cache_lines / (area.units * area.lines_of_unit));
        sum_ns += accesses.written_units * area.lines_of_unit * in_caches * of_others_ns / threads;
    }
    return sum_ns;
}

Transaction World::next_transaction(Worker& worker) const
{
    std::size_t number = 0;
    if (workload.classes.size() > 1) {
        double draw = worker.uniform() - workload.classes[0].share;
        while (draw >= 0 && number + 1 < workload.classes.size()) {
            draw -= workload.classes[++number].share;
        }
    }
    const TransactionClass& one = workload.classes[number];
    const double factor = machine.compute_factor * worker.lognormal(one.time_sigma);
    Transaction transaction{number,          one.outside_ns * factor, one.body_ns * factor + sharing_ns(worker, one),
                            one.read_words,  one.written_words,       0,
                            one.missed_lines};
    for (const Accesses& accesses : one.accesses) {
        transaction.written_lines += accesses.written_units * workload.areas[accesses.area].lines_of_unit;
    }
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
    const double earlier_store_ns = std::max(0.0, worker.owned_again_ns - simulation.now_ns());
    return std::max(earlier_store_ns + latency_ns * factor, queue_ns);
}

Simulation::Delay World::flush(Worker& worker, double bytes)
{
    const double lines = std::max(1.0, std::ceil(bytes / line_bytes));
    return simulation.delay(memory_ns(worker, lines, machine.flush_first_line_ns + (lines - 1) * machine.flush_next_line_ns));
}

Simulation::Delay World::flush_again(Worker& worker) { return simulation.delay(memory_ns(worker, 1, machine.flush_again_ns)); }

void World::write_back_unfenced(Worker& worker) { static_cast<void>(memory_ns(worker, 1, 0)); }

double World::access_ns(SharedLine& line, const Worker& worker) const
{
    const bool is_here = line.owner == &worker || line.owner == nullptr;
    const double transfer = is_here ? 0 : transfer_ns(*line.owner, worker);
    line.owner = &worker;
    return line.transfers.occupy(simulation, transfer + machine.compare_and_swap_ns);
}

Simulation::Delay World::scan(Worker& worker)
{
    double scanned_ns = 0;
    for (const auto& other : workers) {
        std::uint64_t& seen = worker.seen_versions[static_cast<std::size_t>(other->id)];
        if (other.get() != &worker && seen != other->version) {
            seen = other->version;
            other->is_line_shared = true;
            scanned_ns += machine.line_scan_ns * (other->socket == worker.socket ? 1 : machine.second_socket_factor);
        }
    }
    return simulation.delay(scanned_ns);
}

void World::publish(Worker& worker, double timestamp_, bool is_persistent, bool is_update)
{
    worker.timestamp = timestamp_;
    worker.is_persistent = is_persistent;
    worker.is_update = is_update;
    ++worker.version;
    if (worker.is_line_shared) {
        worker.owned_again_ns = simulation.now_ns() + machine.line_transfer_ns;
        worker.is_line_shared = false;
    }
    worker.changed.notify_all(simulation, machine.line_transfer_ns);
}

}  // namespace bench::model
