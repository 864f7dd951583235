#include "runtime/message_queue.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <mutex>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/clock.hpp"
#include "os/futex.hpp"
#include "os/log.hpp"
#include "os/service_thread.hpp"

namespace stillpoint::message_queue {

namespace {

sp_log_level level_of(os::Severity severity) noexcept
{
    switch (severity) {
    case os::Severity::debug: return SP_LOG_DEBUG;
    case os::Severity::warning: return SP_LOG_WARNING;
    case os::Severity::error: return SP_LOG_ERROR;
    case os::Severity::note:
    case os::Severity::none: break;
    }
    return SP_LOG_INFO;
}

struct Message {
    os::Severity severity;
    std::size_t length;
    std::array<char, 2048> text;
};

constexpr std::size_t messages_max = 32;
constexpr std::uint64_t flush_limit_ms = 1000;

struct Queue {
    os::FutexLock lock;          ///< of all that follows; held for the time of a copy, with all signals blocked
    std::array<Message, messages_max> messages{};
    std::size_t first = 0;
    std::size_t count = 0;
    sp_log_callback callback = nullptr;
    void* context = nullptr;
    bool is_calling = false;
    sync::Atomic<std::uint32_t> changes{0};  ///< futex: a message came, or was delivered
    sync::Atomic<int> thread_id{0};          ///< of the delivering thread
};
constinit Queue queue;

/// Taken by set_callback: around the start of the thread, never inside the queue's lock.
constinit os::FutexLock setting_lock;

constinit os::ServiceThread thread;

/// A handler that interrupts the holder may have a message, too: it must not find the lock held by its own thread.
class Locked {
public:
    Locked() noexcept
    {
        const std::uint64_t all = ~std::uint64_t{0};
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before_, sizeof all);
        queue.lock.lock();
    }
    ~Locked()
    {
        queue.lock.unlock();
        syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_);
    }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

private:
    std::uint64_t before_ = 0;
};

void tell_of_change() noexcept
{
    queue.changes.fetch_add(1, std::memory_order_acq_rel);
    os::futex_wake(queue.changes);
}

bool take(os::Severity severity, std::string_view text) noexcept
{
    {
        const Locked guard;
        if (queue.callback == nullptr || queue.count == messages_max) {
            return false;
        }
        Message& place = queue.messages[(queue.first + queue.count++) % messages_max];
        place.severity = severity;
        place.length = std::min(text.size(), place.text.size() - 1);
        std::memcpy(place.text.data(), text.data(), place.length);
        place.text[place.length] = '\0';
    }
    tell_of_change();
    return severity != os::Severity::error;
}

struct Call {
    sp_log_callback callback = nullptr;
    void* context = nullptr;
    Message message{};
};

/// False: there is none.
bool begin_call(Call& call) noexcept
{
    const Locked guard;
    if (queue.count == 0) {
        return false;
    }
    call = {queue.callback, queue.context, queue.messages[queue.first]};
    queue.first = (queue.first + 1) % messages_max;
    --queue.count;
    queue.is_calling = true;
    return true;
}

void deliver(void*)
{
    queue.thread_id.store(gettid(), std::memory_order_release);
    static Call call;  // This thread's alone.
    while (true) {
        const std::uint32_t seen = queue.changes.load(std::memory_order_acquire);
        if (!begin_call(call)) {
            os::futex_wait(queue.changes, seen);
            continue;
        }
        if (call.callback != nullptr) {
            call.callback(call.context, level_of(call.message.severity), call.message.text.data(), call.message.length);
        }
        {
            const Locked guard;
            queue.is_calling = false;
        }
        tell_of_change();
    }
}

bool is_delivering_thread() noexcept { return queue.thread_id.load(std::memory_order_acquire) == gettid(); }

/// Until `is_reached()`, asked under the lock, or the deadline.
template <class Reached>
void wait_until(Reached&& is_reached, std::uint64_t deadline_ns) noexcept
{
    while (os::monotonic_ns() < deadline_ns) {
        const std::uint32_t seen = queue.changes.load(std::memory_order_acquire);
        {
            const Locked guard;
            if (is_reached()) {
                return;
            }
        }
        os::futex_wait(queue.changes, seen, deadline_ns);
    }
}

}  // namespace

Result<void> set_callback(sp_log_callback callback, void* context)
{
    if (!is_delivering_thread()) {
        flush();  // Earlier messages are the present callback's.
    }
    const std::lock_guard setting(setting_lock);
    if (callback != nullptr && !thread.running()) {
        if (auto started = thread.start("sp-messages", &deliver, nullptr); !started) {
            return started;
        }
    }
    {
        const Locked guard;
        queue.callback = callback;
        queue.context = context;
    }
    os::set_line_taker(callback != nullptr ? &take : nullptr);
    if (!is_delivering_thread()) {
        wait_until([] { return !queue.is_calling; }, UINT64_MAX);
    }
    return {};
}

void flush() noexcept
{
    if (!is_delivering_thread()) {
        wait_until([] { return queue.count == 0 && !queue.is_calling; }, os::deadline_after_ms(flush_limit_ms));
    }
}

void reset_after_fork() noexcept
{
    os::set_line_taker(nullptr);
    thread.forget();
    setting_lock.reset_after_fork();
    queue.lock.reset_after_fork();
    queue.thread_id.store(0, std::memory_order_relaxed);
    queue.callback = nullptr;
    queue.count = 0;
    queue.is_calling = false;
}

}  // namespace stillpoint::message_queue
