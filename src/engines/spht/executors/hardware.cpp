#include "engines/spht/executors/hardware.hpp"

#include "core/canary.hpp"
#include "engines/spht/executors/version_locks.hpp"
#include "engines/spht/own_statistics.hpp"
#include "engines/spht/transactional_memory.hpp"
#include "stillpoint/spht.h"

namespace stillpoint::spht {

namespace {

/// Room in the log for a transaction that runs in hardware: more words, with those of the log itself, hardly fit a first cache.
constexpr std::uint64_t record_words_max = 2048;

void count_abort(AbortKind kind) noexcept
{
    constexpr OwnStatistic words[] = {OwnStatistic::conflict_aborts, OwnStatistic::capacity_aborts, OwnStatistic::explicit_aborts,
                                      OwnStatistic::debug_aborts, OwnStatistic::other_aborts};
    own_statistic(words[static_cast<std::size_t>(kind)]).fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

template <HardwareTm Tm>
Result<void> Hardware<Tm>::reserve()
{
    if constexpr (requires { tm_.reserve(); }) {
        if (auto done = tm_.reserve(); !done) {
            return done;
        }
    }
    return Transaction::reserve();
}

/// Nothing is waited for between the two steps. False: the log has no room; a transaction that runs alone says why.
template <HardwareTm Tm>
bool Hardware<Tm>::prepare() noexcept
{
    if (wishes_.read_only) {
        return true;
    }
    if (!memory_.make_room(log(), record_words_max)) {
        return false;
    }
    announce();
    is_prepared_ = true;
    return true;
}

template <HardwareTm Tm>
void Hardware<Tm>::unprepare() noexcept
{
    if (is_prepared_) {
        is_prepared_ = false;
        withdraw();
        log().cancel();
    }
}

template <HardwareTm Tm>
void Hardware<Tm>::enter_alone() noexcept
{
    wishes_.alone = true;
    must_be_alone_ = false;
    enter_gate();
    tm_.note_plain_store(memory_.gate().word());
    own_statistic(OwnStatistic::run_alone).fetch_add(1, std::memory_order_relaxed);
}

template <HardwareTm Tm>
void Hardware<Tm>::enter() noexcept
{
    while (!wishes_.alone && !must_be_alone_ && attempts() <= SPHT_ATTEMPTS_MAX) {
        memory_.gate().await_open();
        if (!prepare()) {
            break;
        }
        HtmStatus status = tm_.begin();
        if (status.started) [[likely]] {
            std::uint64_t gate_word = 0;
            // In the transaction, so that the store that shuts the gate lets it abort.
            if (is_removed(Canary::gate_subscription) || (tm_.load(memory_.gate().word(), gate_word) && gate_word == 0)) {
                return;
            }
            tm_.abort(AbortCode::gate_shut);
            status = tm_.last();
        }
        static_cast<void>(attempt_failed(status));
        doomed_ = false;
        if (status.code != AbortCode::gate_shut) {
            count_attempt();
        }
    }
    enter_alone();
}

/// The transaction has aborted: nothing of it has happened.
template <HardwareTm Tm>
bool Hardware<Tm>::attempt_failed(const HtmStatus& status) noexcept
{
    unprepare();
    count_abort(status.kind);
    must_be_alone_ |= status.code == AbortCode::must_be_alone;
    return doom();
}

/// Real hardware has the heap's own words in the transaction. The simulated one has not: the heap may wait for a thread that waits for
/// this one's log, or for its announcement.
template <HardwareTm Tm>
void Hardware<Tm>::heap_call_begins() noexcept
{
    if (!Tm::resumes_at_begin && !wishes_.alone) {
        unprepare();
    }
}

template <HardwareTm Tm>
void Hardware<Tm>::heap_call_ends() noexcept
{
    if (!Tm::resumes_at_begin && !wishes_.alone && !doomed_ && !prepare()) {
        step_aside();
    }
}

template <HardwareTm Tm>
void Hardware<Tm>::step_aside() noexcept
{
    if (tm_.test()) {
        tm_.abort(AbortCode::must_be_alone);
        static_cast<void>(attempt_failed(tm_.last()));
    }
}

template <HardwareTm Tm>
int Hardware<Tm>::read(const std::uint64_t* word, std::uint64_t& value) noexcept
{
    value = 0;
    if (doomed_) [[unlikely]] {
        return SP_E_CONFLICT;
    }
    if (!wishes_.alone) [[likely]] {
        return tm_.load(word, value) || attempt_failed(tm_.last()) ? SP_OK : SP_E_CONFLICT;
    }
    value = __atomic_load_n(word, __ATOMIC_RELAXED);
    if (const WriteSet::Entry* const written = find_written(word); written != nullptr) {
        value = written->over(value);
    }
    return SP_OK;
}

template <HardwareTm Tm>
bool Hardware<Tm>::write(std::uint64_t* word, std::uint64_t value, std::uint64_t mask) noexcept
{
    return Transaction::write(word, value, mask) && (wishes_.alone || tm_.store(word, value, mask) || attempt_failed(tm_.last()));
}

/// Whether the record has room surely: a word has two words there at most, the state of a block four.
template <HardwareTm Tm>
bool Hardware<Tm>::fits_log() const noexcept
{
    return 2 * writes_.size() + 4 * changed_blocks() <= record_words_max;
}

template <HardwareTm Tm>
Outcome Hardware<Tm>::finish() noexcept
{
    if (wishes_.alone) {
        return Transaction::finish();
    }
    const bool only_reads = writes_.size() == 0 && changed_blocks() == 0;
    if (!fits_log()) {
        step_aside();
        return give_up(Outcome::conflict);
    }
    const bool reads_clock_late = is_removed(Canary::timestamp_in_transaction);
    Timestamp timestamp = only_reads || reads_clock_late ? 0 : choose_timestamp(true);
    if (!tm_.end()) {
        static_cast<void>(attempt_failed(tm_.last()));
        return give_up(Outcome::conflict);
    }
    if (reads_clock_late) {
        timestamp = choose_timestamp(true);
    }
    if (only_reads) {
        unprepare();
        return commit_reads();
    }
    is_prepared_ = false;
    return commit_stored(timestamp);
}

template <HardwareTm Tm>
void Hardware<Tm>::release() noexcept
{
    if (tm_.test()) {
        // Real hardware goes back to begin(), and the body runs again, alone, where it can be rolled back by software.
        tm_.abort(AbortCode::must_be_alone);
    }
    unprepare();
}

/// The clock is past the timestamp when others see the stores: two looks of different threads may give the same.
template <HardwareTm Tm>
Timestamp Hardware<Tm>::choose_timestamp(bool is_durable) const noexcept
{
    const Timestamp timestamp = VersionLocks::timestamp_for(memory_.clock().now(), is_durable);
    while (memory_.clock().now() <= timestamp) {
    }
    return timestamp;
}

/// There are no versions that tell what was read: whatever had committed by now may have been.
template <HardwareTm Tm>
Timestamp Hardware<Tm>::newest_to_await() noexcept
{
    return memory_.order().newest_up_to(memory_.clock().now());
}

template class Hardware<RtmTm>;
template class Hardware<SimulatedTm>;

}  // namespace stillpoint::spht
