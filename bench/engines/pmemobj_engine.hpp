#pragma once
// libpmemobj: an operation takes its locks and is one transaction, which logs each variable before it is written.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "../worker/shape.hpp"
#include "engine.hpp"
#include "pmemobj_pool.hpp"
#include "untyped_memory.hpp"

namespace bench {

/// A variable in the pool: announced to the running transaction by each assignment, read as a T.
template <class T>
class PmemobjDurable {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    PmemobjDurable() = default;
    PmemobjDurable(const PmemobjDurable&) = default;
    ~PmemobjDurable() = default;

    PmemobjDurable& operator=(const T& value)
    {
        PmemobjPool::announce(&value_, sizeof value_);
        value_ = value;
        return *this;
    }
    PmemobjDurable& operator=(const PmemobjDurable& other) { return *this = other.value_; }

    operator T() const noexcept { return value_; }  // NOLINT(google-explicit-constructor): it stands for a T
    T operator->() const noexcept
        requires std::is_pointer_v<T>
    {
        return value_;
    }

    PmemobjDurable& operator++() { return *this = static_cast<T>(value_ + 1); }
    PmemobjDurable& operator--() { return *this = static_cast<T>(value_ - 1); }
    T operator++(int)
    {
        const T before = value_;
        ++*this;
        return before;
    }
    T operator--(int)
    {
        const T before = value_;
        --*this;
        return before;
    }
    template <class Other>
    PmemobjDurable& operator+=(const Other& other)
    {
        return *this = static_cast<T>(value_ + other);
    }
    template <class Other>
    PmemobjDurable& operator-=(const Other& other)
    {
        return *this = static_cast<T>(value_ - other);
    }
    template <class Other>
    PmemobjDurable& operator*=(const Other& other)
    {
        return *this = static_cast<T>(value_ * other);
    }
    template <class Other>
    PmemobjDurable& operator|=(const Other& other)
    {
        return *this = static_cast<T>(value_ | other);
    }
    template <class Other>
    PmemobjDurable& operator&=(const Other& other)
    {
        return *this = static_cast<T>(value_ & other);
    }
    template <class Other>
    PmemobjDurable& operator^=(const Other& other)
    {
        return *this = static_cast<T>(value_ ^ other);
    }

    /// In memory that the running transaction has allocated: nothing to log, and its commit writes the block back.
    void initialise(const T& value) noexcept { value_ = value; }

private:
    T value_;
};

/// Mutexes of the pool. Locked before the transaction begins and released after it has committed, so that
/// no thread sees what a crash would roll back.
template <unsigned locks_max>
class PmemobjLocks {
public:
    PmemobjLocks() noexcept = default;
    PmemobjLocks(const PmemobjLocks&) = delete;
    PmemobjLocks& operator=(const PmemobjLocks&) = delete;
    ~PmemobjLocks()
    {
        while (count_ > 0) {
            PmemobjPool::unlock(*held_[--count_]);
        }
    }

    void lock(PMEMmutex& mutex)
    {
        PmemobjPool::lock(mutex);
        held_[count_++] = &mutex;
    }
    void unlock_unwritten(PMEMmutex& mutex)
    {
        unsigned at = 0;
        while (held_[at] != &mutex) {
            ++at;
        }
        for (--count_; at < count_; ++at) {
            held_[at] = held_[at + 1];
        }
        PmemobjPool::unlock(mutex);
    }

private:
    PMEMmutex* held_[locks_max];
    unsigned count_ = 0;
};

template <unsigned locks_max>
class PmemobjOperation {
public:
    PmemobjOperation() { PmemobjPool::begin_operation(); }
    PmemobjOperation(const PmemobjOperation&) = delete;
    PmemobjOperation& operator=(const PmemobjOperation&) = delete;
    ~PmemobjOperation() { PmemobjPool::end_operation(); }  // the locks' destructor follows

    void lock(PMEMmutex& mutex) { locks_.lock(mutex); }
    void unlock_unwritten(PMEMmutex& mutex) { locks_.unlock_unwritten(mutex); }
    void wait(PMEMcond& condition, PMEMmutex& mutex)
    {
        PmemobjPool::commit();
        PmemobjPool::wait(condition, mutex);
    }

private:
    PmemobjLocks<locks_max> locks_;
};

struct PmemobjEngine : UntypedMemory<PmemobjEngine> {
    static constexpr StoresSeen stores_seen = StoresSeen::announced;

    template <class T>
    using Durable = PmemobjDurable<T>;
    using Mutex = PMEMmutex;
    using Condition = PMEMcond;
    template <unsigned locks_max>
    using Operation = PmemobjOperation<locks_max>;
    template <unsigned locks_max>
    using Reading = PmemobjLocks<locks_max>;

    static void open(const Shape& shape) { PmemobjPool::open(shape); }
    static void* allocate(std::size_t size_bytes) { return PmemobjPool::allocate(size_bytes); }
    static void* allocate_aligned(std::size_t alignment_bytes, std::size_t size_bytes)
    {
        return PmemobjPool::allocate_aligned(alignment_bytes, size_bytes);
    }
    static void deallocate(void* block) { PmemobjPool::deallocate(block); }
    static void* root(const char* name, std::size_t size_bytes) { return PmemobjPool::root(name, size_bytes); }
    static void settle() { PmemobjPool::settle(); }
    template <class T, class Value>
    static void init(Durable<T>& variable, const Value& value)
    {
        variable.initialise(static_cast<T>(value));
    }
    static void about_to_write(void* block, std::size_t size_bytes)
    {
        if (size_bytes != 0) {
            PmemobjPool::announce(block, size_bytes);
        }
    }
    static void notify_all(Condition& condition) { PmemobjPool::notify_all(condition); }

    static std::optional<std::uint64_t> statistic(std::string_view) noexcept { return std::nullopt; }
};
static_assert(MemoryEngine<PmemobjEngine>);

}  // namespace bench
