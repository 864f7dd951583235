#include "runtime/held_locks.hpp"

#include "runtime/fase_gate.hpp"

namespace stillpoint::held_locks {

constinit std::atomic<bool> is_begun{false};

namespace {

struct Listed {
    Locks locks;
    std::uint32_t unlisted;  ///< beyond listed_max
};

constinit std::atomic<const Observer*> observing{nullptr};
constinit std::atomic<OwnLocks> own_locks{nullptr};

constinit thread_local Listed own [[gnu::tls_model("initial-exec")]] = {};

}  // namespace

bool holds_none(const ThreadRecord& record, std::uint32_t depth) noexcept
{
    const auto outermost = record.lock.load(std::memory_order_relaxed);
    const bool is_lock = outermost != 0 && outermost != ThreadRecord::no_lock && (outermost & ThreadRecord::released_bit) == 0;
    const OwnLocks count = own_locks.load(std::memory_order_relaxed);
    return (count == nullptr || count() == 0) && (depth == 0 || (depth == 1 && !is_lock));
}

void set_own_locks(OwnLocks count) noexcept { own_locks.store(count, std::memory_order_relaxed); }

void begin() noexcept
{
    is_begun.store(true, std::memory_order_relaxed);
    fase::gate.bits.fetch_or(fase::locks_listed);
}

void begin_observed(const Observer* observer) noexcept
{
    observing.store(observer, std::memory_order_release);
    begin();
}

Locks of_this_thread() noexcept
{
    Locks found = own.locks;
    const ThreadRecord* const record = fase::own_record;
    found.is_complete = own.unlisted == 0 &&
                        (found.is_complete || record == nullptr || holds_none(*record, record->depth.load(std::memory_order_relaxed)));
    return found;
}

void add(const ThreadRecord& record, const void* lock, std::uint32_t depth) noexcept
{
    own.locks.is_complete = own.locks.is_complete || holds_none(record, depth);
    if (lock == nullptr) {
        return;
    }
    if (const Observer* const observer = observing.load(std::memory_order_acquire); observer != nullptr) {
        observer->acquiring(lock);
    }
    if (own.locks.count == listed_max) {
        ++own.unlisted;
        return;
    }
    own.locks.lock[own.locks.count++] = lock;
}

void remove(const void* lock) noexcept
{
    if (const Observer* const observer = observing.load(std::memory_order_acquire); observer != nullptr && lock != nullptr) {
        observer->releasing(lock);
    }
    for (std::uint32_t index = own.locks.count; index-- > 0;) {
        if (own.locks.lock[index] == lock) {
            own.locks.lock[index] = own.locks.lock[--own.locks.count];
            return;
        }
    }
    if (lock != nullptr && own.unlisted != 0) {
        --own.unlisted;
    }
}

}  // namespace stillpoint::held_locks
