#include "engines/respct/checks.hpp"

#include <cstdlib>
#include <fmt/core.h>
#include <string_view>

#include "core/logged_words.hpp"
#include "engines/respct/locks.hpp"
#include "engines/respct/updated_variables.hpp"
#include "os/log.hpp"
#include "runtime/api_export.hpp"
#include "runtime/dying_memory.hpp"
#include "runtime/held_locks.hpp"
#include "runtime/session_state.hpp"
#include "stillpoint/respct.h"

namespace stillpoint::respct::checks {

constinit std::atomic<bool> is_watched{false};

namespace {

using updated_variables::Line;

struct ThreadFacts {
    bool is_at_restart_point;  ///< between allow and prevent
    Line written;  ///< the first durable write since the last restart point; file nullptr: none
};
constinit thread_local ThreadFacts own [[gnu::tls_model("initial-exec")]] = {};

constinit std::atomic<const Listener*> listener{nullptr};

void freed(const void* block, std::size_t size_bytes) noexcept
{
    updated_variables::forget(block, size_bytes);
    if (const Listener* const told = listener.load(std::memory_order_acquire); told != nullptr) {
        told->freed(block, size_bytes);
    }
}

void watch() noexcept
{
    memory_dies_hook.store(&freed, std::memory_order_release);
    is_watched.store(true, std::memory_order_relaxed);
}

/// At the first check.
void begin() noexcept
{
    static constinit std::atomic<bool> is_begun{false};
    if (is_begun.load(std::memory_order_acquire)) [[likely]] {
        return;
    }
    if (!updated_variables::begin()) {
        os::log(os::Severity::warning, "no address space for the checks of logged variables: not all misuse will be found");
    }
    watch();
    is_begun.store(true, std::memory_order_release);
}

/// The open session, where durable memory is at stake.
const Session* checked_session() noexcept
{
    const Session* const session = open_session();
    if (session == nullptr || session->detached.load(std::memory_order_relaxed)) {
        return nullptr;
    }
    begin();
    list_locks_of_this_thread();
    return session;
}

/// The target of a write, and where it lies, for a message.
struct WriteTarget {
    char text[160];

    WriteTarget(const Session& session, std::string_view what, const void* address) noexcept
    {
        const Heap::Block block = stillpoint_is_persistent(address) ? session.heap->find_block(address) : Heap::Block{nullptr, 0};
        const auto end = block.begin == nullptr
                             ? fmt::format_to_n(text, sizeof text - 1, "{} at {}", what, address)
                             : fmt::format_to_n(text, sizeof text - 1, "{} at {}, byte {} of the block of {} bytes at {},", what, address,
                                                static_cast<const std::byte*>(address) - block.begin, block.usable_bytes,
                                                static_cast<const void*>(block.begin));
        *end.out = '\0';
    }
};

[[noreturn, gnu::cold, gnu::noinline]] void die(Line line, const WriteTarget& subject, std::string_view wrong,
                                                std::string_view remedy) noexcept
{
    os::log(os::Severity::error, "{}:{}: {} {}. {}. The program ends here, so that a crash cannot make it worse", line.file, line.number,
            subject.text, wrong, remedy);
    std::abort();
}

void die_of_conflict(Line line, const WriteTarget& subject, std::string_view wrong, Line other, std::string_view remedy) noexcept
{
    char text[320];
    const auto end = fmt::format_to_n(text, sizeof text, "{} {}:{}", wrong, other.file, other.number);
    die(line, subject, {text, static_cast<std::size_t>(end.out - text)}, remedy);
}

bool is_within(const void* address, std::size_t size_bytes) noexcept
{
    const auto* const last = static_cast<const std::byte*>(address) + (size_bytes == 0 ? 0 : size_bytes - 1);
    return stillpoint_is_persistent(address) && stillpoint_is_persistent(last);
}

/// The checks that every use of a logged variable needs.
void check_place(const Session& session, const void* variable, unsigned kind, Line line) noexcept
{
    constexpr std::string_view what = "the logged variable";
    if (!is_within(variable, logged::total_bytes(kind))) {
        die(line, {session, what, variable}, "lies outside the pool, where a crash loses it",
            "Make its object by respct::make, make_zeroed_array or root (C: sp_respct_allocate, sp_respct_root)");
    }
    if (!session.heap->is_member(variable, kind)) {
        die(line, {session, what, variable}, "lies where recovery does not look for one of its size, so that a crash cannot roll it back",
            "Give its object a layout that names it: respct::make, make_zeroed_array or root (C: sp_respct_layout)");
    }
    if (own.is_at_restart_point) {
        die(line, {session, what, variable}, "is written between checkpoint_allow and checkpoint_prevent, where a checkpoint may be taken",
            "Write it after checkpoint_prevent, or after the scope of the blocking_call");
    }
}

void note_written(Line line) noexcept
{
    if (own.written.file == nullptr) {
        own.written = line;
    }
}

}  // namespace

void restart_point() noexcept
{
    own.written = {};
    if (const Listener* const told = listener.load(std::memory_order_acquire); told != nullptr) {
        told->restart_point();
    }
}

void allow() noexcept
{
    own.is_at_restart_point = true;
    if (const Listener* const told = listener.load(std::memory_order_acquire); told != nullptr) {
        told->allow();
    }
}

void prevent() noexcept { own.is_at_restart_point = false; }

void modified(const void* address, std::size_t size_bytes) noexcept
{
    if (const Listener* const told = listener.load(std::memory_order_acquire); told != nullptr) {
        told->modified(address, size_bytes);
    }
}

void allocated(const void* block, std::size_t size_bytes) noexcept
{
    updated_variables::forget(block, size_bytes);
    if (const Listener* const told = listener.load(std::memory_order_acquire); told != nullptr) {
        told->allocated(block, size_bytes);
    }
}

void listen(const Listener& told) noexcept
{
    listener.store(&told, std::memory_order_release);
    watch();
}

}  // namespace stillpoint::respct::checks

namespace checks = stillpoint::respct::checks;
using stillpoint::updated_variables::Conflict;
using stillpoint::updated_variables::Line;

STILLPOINT_API void sp_respct_check_update(const void* variable, unsigned kind, const char* file, unsigned line)
{
    const stillpoint::Session* const session = checks::checked_session();
    if (session == nullptr) {
        return;
    }
    const Line here{file, line};
    checks::check_place(*session, variable, kind, here);
    if (const Conflict other = stillpoint::updated_variables::update(variable, here); other.file != nullptr) {
        checks::die_of_conflict(here, {*session, "the logged variable", variable},
                                "is updated without a lock that this thread and another have in common. The other update:", other,
                                "Take the same lock around every update of a variable that several threads write");
    }
    checks::note_written(here);
}

STILLPOINT_API void sp_respct_check_init(const void* variable, unsigned kind, const char* file, unsigned line)
{
    const stillpoint::Session* const session = checks::checked_session();
    if (session == nullptr) {
        return;
    }
    const Line here{file, line};
    checks::check_place(*session, variable, kind, here);
    if (const Conflict other = stillpoint::updated_variables::init(variable, here); other.file != nullptr) {
        checks::die_of_conflict(here, {*session, "the logged variable", variable},
                                "is initialised a second time, and a crash could not roll that back. The first init or last update:", other,
                                "Initialise a variable once after its block was allocated; later, update it");
    }
    checks::note_written(here);
}

STILLPOINT_API void sp_respct_check_modified(const void* address, size_t size_bytes, const char* file, unsigned line)
{
    const stillpoint::Session* const session = checks::checked_session();
    if (session == nullptr) {
        return;
    }
    const Line here{file, line};
    if (!checks::is_within(address, size_bytes)) {
        checks::die(here, {*session, "the memory", address}, "was given to add_modified and lies outside the pool, where a crash loses it",
                    "Allocate what must survive by respct::make or sp_malloc; leave add_modified out for what need not");
    }
    if (checks::own.is_at_restart_point) {
        checks::die(here, {*session, "the memory", address},
                    "is written between checkpoint_allow and checkpoint_prevent, where a checkpoint may be taken",
                    "Write it after checkpoint_prevent, or after the scope of the blocking_call");
    }
    checks::note_written(here);
}

STILLPOINT_API void sp_respct_check_wait(const char* file, unsigned line)
{
    if (const stillpoint::Session* const session = checks::checked_session(); session != nullptr && checks::own.written.file != nullptr) {
        stillpoint::os::log(
            stillpoint::os::Severity::error,
            "{}:{}: a wait for a condition after a durable write since the thread's restart point, which a crash during the "
            "wait would make once more. The write: {}:{}. Wait before the critical section's first write, with a restart "
            "point right before the lock (respct::critical_section). The program ends here, so that a crash cannot make it "
            "worse",
            file, line, checks::own.written.file, checks::own.written.number);
        std::abort();
    }
}
