#include "engines/nvthreads/processes/worker.hpp"

#include <cerrno>
#include <cstring>
#include <new>
#include <sysexits.h>

#include "os/clock.hpp"
#include "os/log.hpp"
#include "runtime/fase.hpp"
#include "runtime/session_state.hpp"

namespace stillpoint::nvthreads::processes {

using section_ends::Handover;

Worker& Worker::own() noexcept
{
    static constinit Worker* made = nullptr;
    if (made == nullptr) [[unlikely]] {
        alignas(Worker) static std::byte place[sizeof(Worker)];
        made = new (place) Worker;
    }
    return *made;
}

Result<void> Worker::begin(const WorkerSettings& settings)
{
    control_ = settings.control;
    waits_at_unlock_ = settings.waits_at_unlock;
    image_base_ = settings.image_base;
    if (auto done = record_.reserve(RedoRing::record_bytes_max, "what a section has changed"); !done) {
        return done;
    }
    return view_.map(settings.image_base, settings.image_bytes_max, settings.image_file);
}

void Worker::become(std::uint32_t index) noexcept
{
    index_ = index;
    view_.forget_private_pages();
}

void Worker::refresh() noexcept
{
    const std::uint64_t merges = control_->merges.load(std::memory_order_acquire);
    if (merges != merges_seen_) {
        merges_seen_ = merges;
        view_.refresh();
    }
}

void Worker::note_first_page() noexcept
{
    if (view_.is_clean()) {
        merges_seen_ = control_->merges.load(std::memory_order_acquire);
    }
}

void Worker::open_pages(const void* address, std::size_t size) noexcept
{
    note_first_page();
    view_.open_pages(address, size);
}

bool Worker::handle_fault(const void* address) noexcept
{
    if (!view_.contains(address)) {
        return false;
    }
    note_first_page();
    if (!view_.open_page(address)) {
        end_for_large_section("it has changed more pages than a process can have private");
    }
    return true;
}

void Worker::end_for_large_section(const char* what) noexcept
{
    os::log(os::Severity::error,
            "a section of thread {} is too large for threads=processes: {}; the program ends, and the section is "
            "not durable. Divide the section, or use threads=threads",
            index_, what);
    slot().exit_asked.store(1, std::memory_order_release);
    os::direct_call(SYS_exit_group, EX_SOFTWARE);
    __builtin_unreachable();
}

// ---- Merges -------------------------------------------------------------------------------------

void Worker::merge(RecordKind kind, bool always) noexcept
{
    std::uint64_t bytes = 0;
    if (!view_.is_clean()) {
        bytes = view_.collect(record_.data(), record_.capacity() - sizeof(RecordHead));
        if (bytes == UINT64_MAX) {
            end_for_large_section("what it has changed does not fit into the ring of redo records");
        }
    }
    if (bytes != 0 || always) {
        publish(kind, bytes);
    }
    if (!view_.is_clean()) {
        view_.drop();
    }
}

/// The record counts from the moment at which it is in the ring. If this process dies then, the supervisor applies it.
void Worker::publish(RecordKind kind, std::uint64_t bytes) noexcept
{
    ControlArea& area = *control_;
    const void* race = nullptr;
    {
        const Held lock(area.commit_lock, number());
        if (bytes != 0 && area.merges.load(std::memory_order_relaxed) != merges_seen_) {
            race = view_.find_race();
        }
        if (kind == RecordKind::part || kind == RecordKind::call_inside) {
            slot().has_handed_over.store(1, std::memory_order_release);
        }
        const bool is_logged = area.has_failed.load(std::memory_order_relaxed) == 0 &&
                               area.ring.add(index_, kind, record_.data(), bytes, area.has_failed);
        if (!is_logged && (kind == RecordKind::call_inside || kind == RecordKind::call_outside)) {
            static const SharedWord never{0};  // The call is made, though nothing becomes durable any more.
            static_cast<void>(area.ring.add(index_, kind, nullptr, 0, never));
        }
        view_.apply(record_.data(), bytes);
        area.ring.note_applied();
        area.merges.fetch_add(1, std::memory_order_release);
    }
    if (race != nullptr) [[unlikely]] {
        report_race(race);
    }
}

void Worker::report_race(const void* place) noexcept
{
    ControlArea& area = *control_;
    const RunHead run{static_cast<std::uint64_t>(static_cast<const std::byte*>(place) - image_base_), 0};
    std::byte payload[sizeof run];
    std::memcpy(payload, &run, sizeof run);
    const Held lock(area.commit_lock, number());
    static_cast<void>(area.ring.add(index_, RecordKind::race, payload, sizeof payload, area.has_failed));
    area.ring.note_applied();
}

void Worker::hand_over(Handover handover) noexcept
{
    switch (handover) {
    case Handover::section_ends:
    case Handover::outside:
        merge(RecordKind::section_ends, is_open());
        slot().has_handed_over.store(0, std::memory_order_release);
        // While the lock is held: what comes later, the section has not seen. It may have read newer data than it has stored.
        awaited_ = control_->ring.tail();
        return;
    case Handover::inside: merge(RecordKind::part, false); return;
    case Handover::call_ends: return;  // Such calls are made in the supervisor.
    }
}

void Worker::thread_ends() noexcept
{
    merge(RecordKind::thread_ends, true);
    slot().has_handed_over.store(0, std::memory_order_release);
}

// ---- Calls of the supervisor ---------------------------------------------------------------------

void Worker::call(void (*function)(void* bytes), void* bytes, std::size_t size) noexcept
{
    CallPlace& place = slot().call;
    if (size > sizeof place.bytes) {
        end_for_large_section("a call to the supervisor");
    }
    const bool is_inside = inside_fase();
    if (!is_inside) {
        hand_over(Handover::outside);
    }
    place.run = function;
    std::memcpy(place.bytes, bytes, size);
    place.answered.store(0, std::memory_order_release);
    merge(is_inside ? RecordKind::call_inside : RecordKind::call_outside, true);
    control_->ring.hurry();
    while (place.answered.load(std::memory_order_acquire) == 0) {
        shared_wait(place.answered, 0);
    }
    std::memcpy(bytes, place.bytes, size);
    if (place.message[0] != '\0') {
        set_last_report(place.message);
    }
    if (place.error_number != 0) {
        errno = place.error_number;
    }
}

// ---- Durability ---------------------------------------------------------------------------------

void Worker::acknowledge() noexcept
{
    ControlArea& area = *control_;
    if (waits_at_unlock_) {
        static_cast<void>(area.await_durable(awaited_, true, UINT64_MAX));
        return;
    }
    while (area.is_throttled.load(std::memory_order_acquire) != 0 && area.has_failed.load(std::memory_order_relaxed) == 0) {
        constexpr std::uint64_t look_again_ns = 100'000'000;
        shared_wait(area.is_throttled, 1, look_again_ns);
    }
}

Result<void> Worker::wait_durable(std::uint64_t deadline_ns) noexcept
{
    hand_over(Handover::outside);
    if (!control_->await_durable(control_->ring.tail(), false, deadline_ns)) {
        return fail(SP_E_TIMED_OUT, 0, "the sections are not durable yet");
    }
    if (control_->has_failed.load(std::memory_order_acquire) != 0) {
        return fail(SP_E_IO, 0, "nothing becomes durable any more: the message of the failure was printed when it happened");
    }
    return {};
}

}  // namespace stillpoint::nvthreads::processes
