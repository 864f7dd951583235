#include "speculation.hpp"

#include <algorithm>
#include <cmath>

namespace bench::model {

Speculation::Speculation(World& world, ConflictRule rule) : world_(world), states_(world.workers.size()), rule_(rule)
{
    for (const Area& area : world.workload.areas) {
        write_write_ += area.written_lines * area.written_lines / area.lines;
        read_write_ += area.read_lines * area.written_lines / area.lines;
    }
}

double Speculation::body_ns(const Transaction& transaction) const noexcept
{
    const Machine& machine = world_.machine;
    if (machine.has_hardware_transactions != 0) {
        return machine.htm_begin_ns + transaction.body_ns + machine.htm_commit_ns;
    }
    return machine.stm_begin_ns + transaction.body_ns + transaction.read_words * (machine.stm_read_ns + machine.stm_validate_read_ns) +
           transaction.written_words * (machine.stm_write_ns + machine.stm_commit_write_ns);
}

Task<> Speculation::begin(Worker& worker, const Transaction& transaction, double planned_ns)
{
    const double since_ns = world_.simulation.now_ns();
    while (is_locked_) {
        co_await unlocked_.wait();
    }
    world_.account(worker, Activity::fallback, since_ns);
    const Machine& machine = world_.machine;
    State& own = state(worker);
    ++worker.counters.attempts;
    ++own.attempt;
    own.is_running = true;
    own.is_aborted = false;
    own.began_ns = world_.simulation.now_ns();
    own.slowdown = world_.slowdown(worker);
    own.planned_end_ns = own.began_ns + planned_ns * own.slowdown;
    own.is_read_only = transaction.is_read_only;
    own.dooms.clear();
    const double capacity = machine.htm_capacity_lines * (worker.sibling != nullptr ? machine.hyperthread_capacity_share : 1);
    if (machine.has_hardware_transactions != 0 && rule_ == ConflictRule::later_access_wins && transaction.footprint_lines > capacity) {
        const double overflow_ns = own.began_ns + planned_ns * own.slowdown * capacity / transaction.footprint_lines;
        own.dooms.push_back({overflow_ns, &worker, own.attempt});
    }
    draw_conflicts(worker);
}

void Speculation::draw_conflicts(Worker& worker)
{
    if (write_write_ + read_write_ == 0) {
        return;
    }
    for (const auto& other : world_.workers) {
        if (other.get() != &worker && state(*other).is_running && !state(*other).is_aborted) {
            draw_conflict(worker, *other);
        }
    }
}

/// `later` begins now, `earlier` is running. The rate of accesses of one to the lines that the other has so far grows linearly with what
/// the other has done; the integrals over the time in which both run are the expected conflicts.
void Speculation::draw_conflict(Worker& later, Worker& earlier)
{
    State& a = state(later);
    State& b = state(earlier);
    const double now = world_.simulation.now_ns();
    const double both_end = std::min(a.planned_end_ns, b.planned_end_ns);
    if (both_end <= now) {
        return;
    }
    const double both_times = 2 * (a.planned_end_ns - a.began_ns) * (b.planned_end_ns - b.began_ns);
    const auto square = [](double x) { return x * x; };
    const double of_a = (square(both_end - b.began_ns) - square(now - b.began_ns)) / both_times;
    const double of_b = square(both_end - now) / both_times;
    const auto on_written = [&](const State& x, const State& y) {
        return y.is_read_only ? 0 : (x.is_read_only ? 0 : write_write_) + read_write_;
    };
    const auto on_read = [&](const State& x) { return x.is_read_only ? 0 : read_write_; };
    const double a_hits = of_a * (on_written(a, b) + on_read(a));
    const double b_hits = of_b * (on_written(b, a) + on_read(b));
    const double expected = a_hits + b_hits;
    const double draw = later.uniform();
    // The probability of a conflict is at most what is expected.
    if (draw >= expected) {
        return;
    }
    const double first = -std::log1p(-draw);
    if (first >= expected) {
        return;
    }
    const double share = first / expected;
    const bool a_accesses = later.uniform() * expected < a_hits;
    const double at_ns = a_accesses ? b.began_ns + std::sqrt(square(now - b.began_ns) + share * of_a * both_times)
                                    : now + std::sqrt(share) * (both_end - now);
    Worker& accessing = a_accesses ? later : earlier;
    Worker& holding = a_accesses ? earlier : later;
    const double written = a_accesses ? on_written(a, b) : on_written(b, a);
    const double read = a_accesses ? on_read(a) : on_read(b);
    const bool meets_lock = rule_ == ConflictRule::locked_line_wins && later.uniform() * (written + read) < written;
    Worker& victim = meets_lock ? accessing : holding;
    const Worker& killer = meets_lock ? holding : accessing;
    state(victim).dooms.push_back({at_ns, &killer, state(killer).attempt});
    world_.simulation.interrupt(victim.sleeper);
}

bool Speculation::is_valid(const Doom& doom) const noexcept
{
    const State& killer = state(*doom.killer);
    return killer.attempt == doom.killer_attempt && killer.is_running && !killer.is_aborted;
}

Task<bool> Speculation::run(Worker& worker, double duration_ns)
{
    State& own = state(worker);
    const double end_ns = world_.simulation.now_ns() + duration_ns * own.slowdown;
    worker.is_computing = true;
    while (!own.is_aborted) {
        const auto first = std::ranges::min_element(own.dooms, {}, &Doom::at_ns);
        const bool is_doomed = first != own.dooms.end() && first->at_ns < end_ns;
        const double until_ns = is_doomed ? first->at_ns : end_ns;
        const double now_ns = world_.simulation.now_ns();
        if (until_ns > now_ns) {
            co_await world_.simulation.sleep(worker.sleeper, until_ns - now_ns);
            continue;
        }
        if (!is_doomed) {
            break;
        }
        if (is_valid(*first)) {
            own.is_aborted = true;
            own.cause = first->killer == &worker ? Abort::capacity : Abort::conflict;
        } else {
            own.dooms.erase(first);
        }
    }
    worker.is_computing = false;
    co_return !own.is_aborted;
}

void Speculation::end(Worker& worker, Activity activity)
{
    state(worker).is_running = false;
    world_.account(worker, activity, state(worker).began_ns);
}

void Speculation::commit(Worker& worker)
{
    ++worker.counters.speculated;
    end(worker, Activity::committed);
}

void Speculation::abort(Worker& worker, Abort cause)
{
    State& own = state(worker);
    if (own.is_running && !own.is_aborted) {
        own.is_aborted = true;
        own.cause = cause;
        world_.simulation.interrupt(worker.sleeper);
    }
}

Task<> Speculation::clean_up(Worker& worker)
{
    ++worker.counters.aborted[static_cast<std::size_t>(state(worker).cause)];
    end(worker, Activity::aborted);
    const bool is_hardware = world_.machine.has_hardware_transactions != 0 && rule_ == ConflictRule::later_access_wins;
    const double since_ns = world_.simulation.now_ns();
    co_await world_.simulation.delay(is_hardware ? world_.machine.htm_abort_ns : world_.machine.stm_abort_ns);
    world_.account(worker, Activity::aborted, since_ns);
}

Task<> Speculation::acquire_lock(Worker& worker)
{
    const double since_ns = world_.simulation.now_ns();
    while (is_locked_) {
        co_await unlocked_.wait();
    }
    is_locked_ = true;
    ++worker.counters.fallbacks;
    for (const auto& other : world_.workers) {
        if (other.get() != &worker) {
            abort(*other, Abort::lock);
        }
    }
    co_await world_.simulation.delay(world_.machine.lock_ns);
    world_.account(worker, Activity::fallback, since_ns);
}

void Speculation::release_lock()
{
    is_locked_ = false;
    unlocked_.notify_all(world_.simulation, world_.machine.line_transfer_ns);
}

}  // namespace bench::model
