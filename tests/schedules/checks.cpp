#include "tests/schedules/checks.hpp"

#include <algorithm>
#include <iterator>

#include "os/thread_calls.hpp"
#include "runtime/fase.hpp"
#include "runtime/statistics.hpp"

namespace stillpoint::schedules {

constinit Durable durable{};

void write_word(int word) noexcept
{
    durable.open[current_thread()] = true;
    DurableWord& here = durable.words[word];
    here.write(here.read() + 1);
    ++durable.finished[word];
}

void last_write_is_done() noexcept { durable.open[current_thread()] = false; }

namespace {

constexpr int threads_with_names = 6;

bool nobody_has_written() noexcept
{
    return std::none_of(std::begin(durable.open), std::end(durable.open), [](bool open) { return open; });
}

/// The steps of a checkpoint in a stop.
void copy_durable(void*) noexcept
{
    require(nobody_has_written(), "a checkpoint ran inside a FASE that had written");
    for (int word = 0; word < Durable::words_max; ++word) {
        require(durable.words[word].read() == durable.finished[word], "a store of a finished FASE is not in the copy");
    }
    require(nobody_has_written(), "a FASE wrote while the checkpoint copied");
    ++durable.stops;
}

/// A CPU weaker than x86 may show a thread inside before its name: then the report names no thread.
bool names_somebody(const StopReport& report) noexcept
{
    const int thread = report.blocker_thread_id - os::first_thread_id;
    return (thread >= 0 && thread < threads_with_names) || (report.blocker_thread_id == 0 && !stores_arrive_in_order());
}

void begin(FaseBarrier barrier) noexcept { require(fase_activate(barrier).has_value(), "the accounting does not start"); }

}  // namespace

bool take_checkpoint(std::uint64_t attempt_ns) noexcept
{
    const auto report = stop_threads(attempt_ns, &copy_durable, nullptr);
    require(report.reached || names_somebody(report), "a withdrawn attempt names a thread that there is not");
    durable.blocker_thread_id = report.blocker_thread_id;
    durable.blocker_lock = report.blocker_lock;
    return report.reached;
}

void must_take_checkpoint() noexcept { require(take_checkpoint(for_ever_ns), "an attempt without an end was withdrawn"); }

void begin_with_membarrier() noexcept { begin(FaseBarrier::automatic); }
void begin_after_departures() noexcept
{
    begin_with_membarrier();
    fase::departures.count.store(7);
}

void begin_with_fences() noexcept { begin(FaseBarrier::fences); }

void finish_clean() noexcept
{
    require((fase::gate.bits.load() & fase::gate_shut) == 0, "the gate was left shut");
    std::uint64_t live = 0;
    for (ThreadWalk walk; const ThreadRecord* record = walk.current(); walk.advance()) {
        require(record->depth.load() == 0, "a record says inside after its thread ended");
        require(record->lock.load() == ThreadRecord::no_lock, "a record names a lock after its thread ended");
        require(record->state.load() != ThreadRecord::unused || record->thread_id.load() == 0,
                "a record that is not in use has a thread's name");
        live += record->state.load() == ThreadRecord::live ? 1u : 0u;
    }
    require(live == durable.registered, "a record was not given back");
    require(statistics().threads.load() == durable.registered, "the statistics count threads that have ended");
    for (int word = 0; word < Durable::words_max; ++word) {
        require(durable.words[word].last() == durable.finished[word], "a store was lost");
    }
}

}  // namespace stillpoint::schedules
