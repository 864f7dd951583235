#include "engines/pronto/thread_log.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

namespace stillpoint::pronto {

namespace {

constinit std::atomic<ThreadLog*> logs{nullptr};
constinit std::atomic<unsigned> logs_in_use{0};
constinit os::FutexLock logs_lock;

[[gnu::tls_model("initial-exec")]] constinit thread_local ThreadLog* own = nullptr;

/// Gives the log back when the thread ends.
struct Owner {
    ThreadLog* log = nullptr;
    ~Owner()
    {
        if (log != nullptr) {
            const std::lock_guard guard(logs_lock);
            own = nullptr;
            log->in_use = false;
            logs_in_use.fetch_sub(1, std::memory_order_relaxed);
        }
    }
};

thread_local Owner owner;

ThreadLog* find_unused() noexcept
{
    for (ThreadLog* log = logs.load(std::memory_order_acquire); log != nullptr; log = log->next) {
        if (!log->in_use) {
            return log;
        }
    }
    return nullptr;
}

[[gnu::noinline, gnu::cold]] ThreadLog* make_own() noexcept
{
    const std::lock_guard guard(logs_lock);
    ThreadLog* log = find_unused();
    if (log == nullptr) {
        log = new (std::nothrow) ThreadLog;
        if (log == nullptr) {
            return nullptr;
        }
        log->next = logs.load(std::memory_order_relaxed);
        logs.store(log, std::memory_order_release);
    }
    log->in_use = true;
    log->current = nullptr;
    log->replaying = nullptr;
    log->choice = {};
    log->group = {};
    logs_in_use.fetch_add(1, std::memory_order_relaxed);
    owner.log = log;
    own = log;
    return log;
}

}  // namespace

ThreadLog* own_thread_log() noexcept { return own != nullptr ? own : make_own(); }

ThreadLog* existing_thread_log() noexcept { return own; }

unsigned thread_log_count() noexcept { return logs_in_use.load(std::memory_order_relaxed); }

ThreadLog* first_thread_log() noexcept { return logs.load(std::memory_order_acquire); }

void thread_logs_reset_after_fork() noexcept { logs_lock.reset_after_fork(); }

std::uint64_t durable_number_of(const LiveObject& object) noexcept
{
    // A thread says that it commits, and publishes that by taking its number (OperationLog::commit_lines): of the numbers that are seen
    // here, those that are not durable yet are seen below.
    std::uint64_t durable = object.number.load(std::memory_order_acquire);
    for (const ThreadLog* log = first_thread_log(); log != nullptr; log = log->next) {
        if (log->committing.load(std::memory_order_acquire) != &object) {
            continue;
        }
        if (const std::uint64_t from = log->committing_from.load(std::memory_order_acquire); from != 0) {
            durable = std::min(durable, from - 1);
        }
    }
    return durable;
}

bool ThreadLog::Buffer::make_room(std::size_t wanted)
{
    if (wanted <= bytes) {
        return true;
    }
    const std::size_t size = round_up(wanted + wanted / 2, page_bytes);
    void* const larger = std::aligned_alloc(page_bytes, size);
    if (larger == nullptr) {
        return false;
    }
    std::free(memory);
    memory = static_cast<std::byte*>(larger);
    bytes = size;
    return true;
}

Result<std::byte*> ThreadLog::place_for(std::uint64_t argument_bytes)
{
    const std::size_t used = header_room + argument_bytes;
    if (!buffer_.make_room(used + cache_line_bytes)) {
        return fail(SP_E_NO_MEMORY, 0, "no memory for {} bytes of arguments of an operation", argument_bytes);
    }
    // Arguments that are copied in whole lines must not carry bytes of earlier operations to the medium.
    std::memset(buffer_.memory + used, 0, cache_line_bytes);
    return buffer_.memory + header_room;
}

Result<std::byte*> ThreadLog::place_for_nothing(std::uint64_t argument_bytes)
{
    if (!scratch_.make_room(argument_bytes + 8)) {
        return fail(SP_E_NO_MEMORY, 0, "no memory for {} bytes of arguments of an operation", argument_bytes);
    }
    return scratch_.memory;
}

bool LoggingChoice::choose(bool& measured) noexcept
{
    const std::uint32_t at = count_;
    count_ = at + 1 >= period_operations_ ? 0 : at + 1;
    measured = at < 2 * probe_operations;
    if (!measured) {
        return sibling_pays_;
    }
    if (at == 0) {
        noted_[0] = noted_[1] = 0;
        late_operations_ = 0;
    }
    // A sibling that is late already is not asked for the rest of the look.
    return at % 2 != 0 && late_operations_ < late_operations_max;
}

void LoggingChoice::note(bool by_sibling, std::uint64_t ns) noexcept
{
    if (std::uint32_t& noted = noted_[by_sibling ? 1 : 0]; noted < probe_operations) {
        ns_[by_sibling ? 1 : 0][noted++] = ns;
    }
    if (count_ == 2 * probe_operations) {
        decide();
    }
}

void LoggingChoice::note_late() noexcept
{
    if (++late_operations_ >= late_operations_max) {
        sibling_pays_ = false;
    }
}

void LoggingChoice::decide() noexcept
{
    const auto median = [this](unsigned way) {
        std::uint64_t* const middle = ns_[way] + noted_[way] / 2;
        std::nth_element(ns_[way], middle, ns_[way] + noted_[way]);
        return *middle;
    };
    sibling_pays_ = late_operations_ < late_operations_max && noted_[0] != 0 && noted_[1] != 0 && median(1) < median(0);
    late_operations_ = 0;
    period_operations_ = sibling_pays_ ? period_operations_min : std::min(2 * period_operations_, period_operations_max);
}

}  // namespace stillpoint::pronto
