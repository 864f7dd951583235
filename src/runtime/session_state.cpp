#include "runtime/session_state.hpp"

#include <cerrno>
#include <cstring>
#include <unistd.h>

#include "os/log.hpp"
#include "runtime/pool_owner.hpp"

namespace stillpoint {

namespace {

std::atomic<Session* (*)() noexcept> first_use_hook{nullptr};
thread_local char last_message[Failure::message_bytes_max + 1];

}  // namespace

namespace sessions {

constinit std::array<std::atomic<Session*>, sessions_max> open{};
constinit std::atomic<std::uint32_t> further{0};
[[gnu::tls_model("initial-exec")]] constinit thread_local Session* chosen = nullptr;

Session* find(const void* address) noexcept
{
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    Session* found = default_session();
    for_each_session([&](Session& session) {
        if (wanted >= session.image_begin && wanted < session.image_end) {
            found = &session;
        }
    });
    return found;
}

}  // namespace sessions

void set_session(unsigned number, Session* session) noexcept
{
    const bool was_open = sessions::open[number].exchange(session, std::memory_order_acq_rel) != nullptr;
    if (number != 0 && session != nullptr && !was_open) {
        sessions::further.fetch_add(1, std::memory_order_release);
    } else if (number != 0 && session == nullptr && was_open) {
        sessions::further.fetch_sub(1, std::memory_order_release);
    }
}

void set_first_use_hook(Session* (*hook)() noexcept) noexcept { first_use_hook.store(hook, std::memory_order_release); }

Session* begin_use() noexcept
{
    const auto hook = first_use_hook.load(std::memory_order_acquire);
    return hook != nullptr ? hook() : open_session();
}

int report(const Failure& failure) noexcept
{
    std::memcpy(last_message, failure.message, sizeof last_message);
    return failure.code;
}

void report_as_errno(const Failure& failure) noexcept
{
    report(failure);
    switch (failure.code) {
    case SP_E_INVALID_ARGUMENT:
    case SP_E_HANDLE_SIZE: errno = EINVAL; break;
    case SP_E_HANDLE_MISSING: errno = ENOENT; break;
    case SP_E_DIRECTORY_FULL: errno = ENOSPC; break;
    default: errno = ENOMEM; break;
    }
}

const char* last_report() noexcept { return last_message; }

void set_last_report(const char* message) noexcept
{
    std::strncpy(last_message, message, Failure::message_bytes_max);
    last_message[Failure::message_bytes_max] = '\0';
}

void warn_if_not_durable(Session* session) noexcept
{
    if (session == nullptr) {
        warn_if_owned_elsewhere();
        return;
    }
    if (session->detached.load(std::memory_order_relaxed) && !session->detached_told.exchange(true, std::memory_order_relaxed)) {
        os::log(os::Severity::warning,
                "process {} is a child made by fork: it works on a private copy of its parent's durable "
                "memory, and nothing it writes there will survive",
                getpid());
    }
}

}  // namespace stillpoint
