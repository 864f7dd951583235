#pragma once
// How many operations each thread has completed, in durable memory: an operation of its own for each note.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "../engines/engine.hpp"

namespace bench {

template <MemoryEngine E>
class Progress {
public:
    static constexpr unsigned threads_max = 64;
    /// Not a thread's: 1 once the workload's data are there.
    static constexpr unsigned loaded_slot = threads_max - 1;

    Progress() : slots_(E::template named<Slot>("bench.progress", threads_max)) {}

    void note(unsigned thread, std::uint64_t operations)
    {
        typename E::template Operation<1> operation;
        operation.lock(slots_[thread].mutex);
        slots_[thread].operations = operations;
    }
    [[nodiscard]] std::uint64_t noted(unsigned thread) const { return slots_[thread].operations; }

private:
    struct alignas(64) Slot {
        typename E::Mutex mutex;
        typename E::template Durable<std::uint64_t> operations;
    };

    Slot* slots_;
};

/// Progress kept in a store of keys and values: reserved keys, 8 bytes of the value.
template <KeyValueStore S>
class StoreProgress {
public:
    static constexpr unsigned loaded_slot = 63;

    StoreProgress(S& store, std::size_t value_bytes) : store_(store), value_bytes_(value_bytes) {}

    void note(unsigned thread, std::uint64_t operations)
    {
        std::vector<std::byte> value(value_bytes_);
        std::memcpy(value.data(), &operations, sizeof operations);
        store_.put(thread == loaded_slot ? 0 : thread, key_of(thread), value);
    }
    [[nodiscard]] std::uint64_t noted(unsigned thread)
    {
        std::vector<std::byte> value(value_bytes_);
        std::uint64_t operations = 0;
        if (store_.get(thread == loaded_slot ? 0 : thread, key_of(thread), value)) {
            std::memcpy(&operations, value.data(), sizeof operations);
        }
        return operations;
    }

private:
    /// Above every key of a workload.
    static std::uint64_t key_of(unsigned thread) noexcept { return UINT64_MAX - thread; }

    S& store_;
    std::size_t value_bytes_;
};

}  // namespace bench
