#include "speculation.hpp"

#include <algorithm>
#include <cmath>

namespace bench::model {

namespace {

/// Units of one area: of accesses that `by_one` counts, on units that `by_other` counts.
double expected_pairs(const World& world, const TransactionClass& one, const TransactionClass& other, double (*by_one)(const Accesses&),
                      double (*by_other)(const Accesses&))
{
    double sum = 0;
    for (const Accesses& a : one.accesses) {
        for (const Accesses& b : other.accesses) {
            sum += a.area == b.area ? by_one(a) * by_other(b) / world.workload.areas[a.area].units : 0;
        }
    }
    return sum;
}

}  // namespace

Speculation::Speculation(World& world, ConflictRule rule) : world_(world), states_(world.workers.size()), rule_(rule)
{
    const auto all = [](const Accesses& accesses) { return accesses.read_units + accesses.written_units; };
    const auto written = [](const Accesses& accesses) { return accesses.written_units; };
    const auto read = [](const Accesses& accesses) { return accesses.read_units; };
    for (const TransactionClass& one : world.workload.classes) {
        for (const TransactionClass& other : world.workload.classes) {
            hits_.push_back({expected_pairs(world, one, other, all, written), expected_pairs(world, one, other, written, read)});
        }
    }
}

double Speculation::conflicts_with_any(const Transaction& transaction) const
{
    double sum = 0;
    for (std::size_t other = 0; other < world_.workload.classes.size(); ++other) {
        const Hits& found = hits(other, transaction.class_number);
        sum += world_.workload.classes[other].share * (found.on_written + found.on_read);
    }
    return sum;
}

double Speculation::body_ns(const Transaction& transaction) const noexcept
{
    const Machine& machine = world_.machine;
    if (machine.has_hardware_transactions != 0) {
        return machine.htm_begin_ns + transaction.body_ns;
    }
    return machine.stm_begin_ns + transaction.body_ns + transaction.read_words * machine.stm_read_ns +
           transaction.written_words * machine.stm_write_ns;
}

double Speculation::commit_ns(const Transaction& transaction) const noexcept
{
    const Machine& machine = world_.machine;
    if (machine.has_hardware_transactions != 0) {
        return machine.htm_commit_ns;
    }
    return transaction.read_words * machine.stm_validate_read_ns + transaction.written_words * machine.stm_commit_write_ns;
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
    own.class_number = transaction.class_number;
    own.dooms.clear();
    if (machine.has_hardware_transactions != 0 && rule_ == ConflictRule::later_access_wins) {
        draw_overflow(worker);
    }
    draw_conflicts(worker);
}

/// Drawn for each attempt: which lines a transaction loses from the cache depends on what else is there.
void Speculation::draw_overflow(Worker& worker)
{
    State& own = state(worker);
    const TransactionClass& one = world_.workload.classes[own.class_number];
    const double footprint = one.footprint_lines * worker.lognormal(one.footprint_sigma);
    const double share = worker.sibling != nullptr ? world_.machine.hyperthread_capacity_share : 1;
    const double capacity = world_.machine.htm_capacity_lines * share;
    if (footprint > capacity) {
        own.dooms.push_back({own.began_ns + (own.planned_end_ns - own.began_ns) * capacity / footprint, &worker, own.attempt});
    }
}

void Speculation::draw_conflicts(Worker& worker)
{
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
    const Hits& a_on_b = hits(a.class_number, b.class_number);
    const Hits& b_on_a = hits(b.class_number, a.class_number);
    const double both_times = 2 * (a.planned_end_ns - a.began_ns) * (b.planned_end_ns - b.began_ns);
    const auto square = [](double x) { return x * x; };
    const double of_a = (square(both_end - b.began_ns) - square(now - b.began_ns)) / both_times;
    const double of_b = square(both_end - now) / both_times;
    const double a_hits = of_a * (a_on_b.on_written + a_on_b.on_read);
    const double b_hits = of_b * (b_on_a.on_written + b_on_a.on_read);
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
    const Hits& found = a_accesses ? a_on_b : b_on_a;
    const bool meets_lock = rule_ == ConflictRule::locked_line_wins &&
                            later.uniform() * (found.on_written + found.on_read) < found.on_written;
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
    const double abort_ns = is_hardware ? world_.machine.htm_abort_ns : world_.machine.stm_abort_ns;
    co_await world_.simulation.delay(abort_ns);
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
