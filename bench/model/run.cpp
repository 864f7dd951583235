#include "run.hpp"

#include <numeric>

namespace bench::model {
namespace {

Task<> work(World& world, Protocol& protocol, Worker& worker)
{
    while (true) {
        const Transaction transaction = world.next_transaction(worker);
        co_await world.compute(worker, transaction.outside_ns, Activity::outside);
        co_await protocol.run(worker, transaction);
    }
}

/// `sign` 1 or -1.
void add(Counters& sum, const Counters& one, int sign)
{
    const auto count = [sign](std::uint64_t& to, std::uint64_t value) { to = sign > 0 ? to + value : to - value; };
    count(sum.attempts, one.attempts);
    count(sum.committed, one.committed);
    count(sum.speculated, one.speculated);
    count(sum.fallbacks, one.fallbacks);
    count(sum.flushes, one.flushes);
    for (std::size_t i = 0; i < aborts; ++i) {
        count(sum.aborted[i], one.aborted[i]);
    }
    for (std::size_t i = 0; i < activities; ++i) {
        sum.time_ns[i] += sign * one.time_ns[i];
    }
}

Counters total_of(const World& world)
{
    Counters total;
    for (const auto& worker : world.workers) {
        add(total, worker->counters, 1);
    }
    return total;
}

}  // namespace

double RunResult::share(Activity activity) const
{
    const double all = std::accumulate(total.time_ns.begin(), total.time_ns.end(), 0.0);
    return all == 0 ? 0 : total.time_ns[static_cast<std::size_t>(activity)] / all;
}

double RunResult::share_inside(Activity activity) const
{
    const double inside = 1 - share(Activity::outside);
    return inside == 0 ? 0 : share(activity) / inside;
}

std::uint64_t RunResult::aborted() const { return std::accumulate(total.aborted.begin(), total.aborted.end(), std::uint64_t{0}); }

double RunResult::abort_rate() const
{
    const std::uint64_t ended = total.speculated + aborted();
    return ended == 0 ? 0 : static_cast<double>(aborted()) / static_cast<double>(ended);
}

RunResult run_model(const ProtocolKind& kind, const Machine& machine, const Workload& workload, int threads, std::uint64_t transactions,
                    std::uint64_t seed)
{
    World world(machine, workload, threads, seed);
    const std::unique_ptr<Protocol> protocol = kind.make(world);
    std::vector<Task<>> tasks;
    tasks.push_back(protocol->background());
    for (const auto& worker : world.workers) {
        tasks.push_back(work(world, *protocol, *worker));
    }
    for (const Task<>& task : tasks) {
        world.simulation.resume_after(0, task.handle());
    }
    world.simulation.run([&] { return world.committed >= transactions / 10; });
    const double began_ns = world.simulation.now_ns();
    const Counters warm_up = total_of(world);
    world.simulation.run([&] { return world.committed >= transactions; });
    RunResult result;
    result.system = kind.name;
    result.threads = threads;
    result.whole = total_of(world);
    result.total = result.whole;
    add(result.total, warm_up, -1);
    result.wall_ns = world.simulation.now_ns() - began_ns;
    result.transactions_per_s = result.wall_ns > 0 ? 1e9 * static_cast<double>(result.total.committed) / result.wall_ns : 0;
    for (const auto& worker : world.workers) {
        result.unfinished += protocol->speculation().is_running(*worker) ? 1U : 0U;
    }
    return result;
}

}  // namespace bench::model
