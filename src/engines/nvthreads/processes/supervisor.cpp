// The scribe and the acknowledger. supervisor_wait.cpp has the first thread.

#include "engines/nvthreads/processes/supervisor.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <span>
#include <string_view>

#include "core/canary.hpp"
#include "engines/nvthreads/own_statistics.hpp"
#include "os/clock.hpp"
#include "os/log.hpp"
#include "runtime/session_state.hpp"

namespace stillpoint::nvthreads::processes {

using section_ends::Handover;

Result<void> Supervisor::start(const SupervisorParts& parts)
{
    parts_ = parts;
    // Records that have not been read must find room in the log beside what a section that hands parts over keeps from being replayed.
    constexpr std::uint64_t parts_of_log = 4;
    parts_.control->ring.set_limit(parts_.logs->space().chunk_count() * logs::chunk_bytes / parts_of_log);
    if (auto started = scribe_.start("sp-scribe", &run_scribe, this); !started) {
        return started;
    }
    return acknowledger_.start("sp-ack", &run_acknowledger, this);
}

void Supervisor::stop() noexcept
{
    is_stopping_.store(true, std::memory_order_release);
    parts_.control->ring.hurry();
    scribe_.join();
    parts_.control->wanted_signal.fetch_add(1, std::memory_order_seq_cst);
    shared_wake(parts_.control->wanted_signal);
    acknowledger_.join();
}

// ---- The scribe ---------------------------------------------------------------------------------

void Supervisor::run_scribe(void* self)
{
    auto& supervisor = *static_cast<Supervisor*>(self);
    const StatisticsScope own_figures(supervisor.parts_.statistics_number);
    constexpr std::uint64_t look_again_ns = 1'000'000;
    while (!supervisor.is_stopping_.load(std::memory_order_acquire)) {
        supervisor.write_ring();
        supervisor.throttle();
        supervisor.parts_.control->ring.wait_for_records(look_again_ns);
    }
    supervisor.write_ring();
}

void Supervisor::write_ring() noexcept
{
    const RedoRing& ring = parts_.control->ring;
    parts_.control->ring.read([this, &ring](const RecordHead& head, const std::byte* payload) {
        take_record(head, payload);
        marks_.add({ring.head() + head.bytes, parts_.logs->newest_to_await()});
    });
}

void Supervisor::log_runs(const RecordHead& head, const std::byte* payload) noexcept
{
    visit_runs(payload, head.bytes - sizeof head,
               [this](std::uint64_t offset, const std::byte* bytes, std::uint64_t size) { parts_.logs->add_value(offset, bytes, size); });
}

/// A record that the log may have to divide is held together as a section is that hands parts over.
void Supervisor::take_record(const RecordHead& head, const std::byte* payload) noexcept
{
    constexpr std::uint64_t undivided_bytes = std::uint64_t{128} * kib;
    if (head.thread >= threads_max) {
        return;
    }
    if (head.kind == RecordKind::race) {
        visit_runs(payload, head.bytes - sizeof head,
                   [&](std::uint64_t offset, const std::byte*, std::uint64_t) { tell_of_race(head.thread, offset); });
        return;
    }
    ThreadFacts& thread = facts_[head.thread];
    const bool goes_on = head.kind == RecordKind::part || head.kind == RecordKind::call_inside;
    const bool is_part = thread.holds_cut || goes_on || head.bytes > undivided_bytes;
    if (is_part && !thread.holds_cut && !is_removed(Canary::processes_parts_cut)) {
        thread.holds_cut = true;
        parts_.logs->hold_cut();
    }
    log_runs(head, payload);
    parts_.logs->hand_over_value(goes_on, is_part && !is_removed(Canary::processes_parts_alone));
    if (head.kind == RecordKind::call_inside || head.kind == RecordKind::call_outside) {
        answer(head.thread);
    }
    if (!goes_on) {
        let_go_of_cut(head.thread);
    }
}

void Supervisor::let_go_of_cut(std::uint32_t thread) noexcept
{
    if (facts_[thread].holds_cut) {
        facts_[thread].holds_cut = false;
        parts_.logs->release_cut();
    }
}

void Supervisor::answer(std::uint32_t thread) noexcept
{
    CallPlace& place = parts_.control->threads[thread].call;
    errno = 0;
    set_last_report("");
    place.run(place.bytes);
    place.error_number = errno;
    const std::string_view message = last_report();
    const std::size_t size = std::min(message.size(), sizeof place.message - 1);
    std::memcpy(place.message, message.data(), size);
    place.message[size] = '\0';
    place.answered.store(1, std::memory_order_release);
    shared_wake(place.answered);
}

namespace {

/// "in the object \"name\" at byte 8", or the block that the address lies in. On the scribe, which makes the calls of the heap.
std::string_view describe_place(const std::byte* address, std::span<char> text) noexcept
{
    Session* const session = default_session();
    const Heap::Block block = session != nullptr && session->heap != nullptr ? session->heap->find_block(address) : Heap::Block{};
    if (block.begin == nullptr) {
        return {};
    }
    const auto at = address - block.begin;
    auto end = fmt::format_to_n(text.data(), text.size(), ", at byte {} of the block at {}", at, static_cast<const void*>(block.begin));
    const std::lock_guard guard(session->directory_lock);
    session->directory->for_each([&](const DirectoryEntry& entry) {
        if (entry.address == reinterpret_cast<std::uintptr_t>(block.begin)) {
            end = fmt::format_to_n(text.data(), text.size(), ", at byte {} of the object \"{}\"", at, entry.handle);
        }
    });
    return {text.data(), std::min(end.size, text.size())};
}

}  // namespace

void Supervisor::tell_of_race(std::uint32_t thread, std::uint64_t offset) noexcept
{
    own_statistic(OwnStatistic::races).fetch_add(1, std::memory_order_relaxed);
    constexpr std::uint32_t told_max = 10;
    if (races_told_++ >= told_max) {
        return;
    }
    char place[160];
    os::log(os::Severity::warning,
            "a race: two threads have written the byte at {}{} without a lock that both hold, one of them thread {}; the last one's value "
            "stays{}",
            static_cast<const void*>(parts_.image_base + offset), describe_place(parts_.image_base + offset, place), thread,
            races_told_ == told_max ? " (more are only counted)" : "");
}

/// acknowledge=order: while what is being written is too old, unlocks wait.
void Supervisor::throttle() noexcept
{
    ControlArea& area = *parts_.control;
    const std::uint32_t wanted = parts_.logs->mode() == Acknowledge::order && parts_.logs->is_behind() ? 1 : 0;
    if (area.is_throttled.exchange(wanted, std::memory_order_acq_rel) > wanted) {
        shared_wake(area.is_throttled);
    }
    if (parts_.logs->has_failed() && area.has_failed.exchange(1, std::memory_order_acq_rel) == 0) {
        area.durable_signal.fetch_add(1, std::memory_order_seq_cst);
        shared_wake(area.durable_signal);
    }
}

// ---- The acknowledger -----------------------------------------------------------------------------

void Supervisor::run_acknowledger(void* self)
{
    auto& supervisor = *static_cast<Supervisor*>(self);
    ControlArea& area = *supervisor.parts_.control;
    const StatisticsScope own_figures(supervisor.parts_.statistics_number);
    constexpr std::uint64_t look_again_ns = 100'000'000;
    while (true) {
        const std::uint32_t seen = area.wanted_signal.load(std::memory_order_seq_cst);
        const std::uint64_t wanted = area.wanted.load(std::memory_order_seq_cst);
        if (supervisor.is_stopping_.load(std::memory_order_acquire)) {
            return;
        }
        const std::uint64_t durable = area.durable.load(std::memory_order_relaxed);
        if (wanted <= durable) {
            shared_wait(area.wanted_signal, seen, look_again_ns);
            continue;
        }
        // Not for all that is wanted at once: a later record may be a part of a section whose thread waits for one that waits for this.
        const RingMark next = supervisor.marks_.at(durable + 1);
        if (next.position <= durable) {
            area.ring.wait_until_read(wanted, look_again_ns);
            continue;
        }
        FaseLogs& logs = *supervisor.parts_.logs;
        const auto done = logs.await(next.timestamp, os::monotonic_ns() + supervisor.parts_.wait_max_ns);
        if (done) {
            const std::uint64_t reached = std::max(next.position, supervisor.marks_.reached(logs.durable()));
            area.durable.store(is_removed(Canary::processes_written) ? area.ring.tail() : reached, std::memory_order_release);
        } else if (done.error().code == SP_E_TIMED_OUT) {
            if (area.let_go.exchange(wanted, std::memory_order_release) != wanted) {
                own_statistic(OwnStatistic::unlocks_not_durable).fetch_add(1, std::memory_order_relaxed);
            }
        } else {
            area.has_failed.store(1, std::memory_order_release);
            shared_wait(area.wanted_signal, seen, look_again_ns);
        }
        area.durable_signal.fetch_add(1, std::memory_order_seq_cst);
        shared_wake(area.durable_signal);
    }
}

}  // namespace stillpoint::nvthreads::processes
