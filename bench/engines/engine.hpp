#pragma once
// The interface that workloads are written against: a memory engine, or a store of keys and values.
//
// A structure or an application is written once, as a template over a MemoryEngine, and says what every such system must be
// told: where an operation begins and ends, which variables are durable, which bytes it is about to write, of which type a block is.
// An engine that needs to know less makes less of it: for the volatile program and for engines of programs under locks Durable<T> is T
// itself, about_to_write() is nothing, and an operation is its locks.
//
//   struct Node { typename E::template Durable<Node*> next; ... };
//   typename E::template Operation<1> operation;   // one failure-atomic operation that holds at most one lock to its end
//   operation.lock(bucket.mutex);                  // released when the operation ends, after its commit
//   bucket.first = node;                           // an update of a Durable
//
// Rules for the workloads, the union of what the engines ask:
// - Durable memory is written inside an Operation, under a lock that the operation holds.
// - A variable is a Durable, updated by assignment, or its bytes are announced by about_to_write() before the first plain
//   store to them in each operation.
// - What was allocated in the same operation needs neither: E::init(durable, value), and plain stores.
// - Blocks with Durables or Mutexes in them are made by their type: E::make<T>(), Blocks<T>, make_array<T>(), named<T>(). allocate() and
//   root() are for plain bytes; so they are for structures of engines that roll back plain bytes.
// - Where has_spare_bytes is true, a Durable of 16 bytes has 8 more in its line for what does not change.
// - An engine that does not roll back bytes (rolls_back_bytes) keeps what about_to_write() named, but a crash may leave them newer than
//   the rest: they are written again before they are read, or lie after what a Durable says is valid. Where a structure
//   needs more, it uses a Record, or its row in workloads.inc says so.
// - Zeroed memory is a free Mutex, a Condition without waiters, a Durable of value 0.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "../worker/shape.hpp"

namespace bench {

/// Which stores an engine finds; a later one has those before it too.
enum class StoresSeen {
    announced,  ///< assignments to a Durable, and what about_to_write() names
    compiled,   ///< every store of code that was compiled with the workload: templates of libstdc++ too
    all,        ///< those of precompiled libraries too
};

/// Memory that survives by the engine's rules, or, for the baseline, not at all. Everything is static: a process has one pool.
/// Functions end the program with a message where there is no memory.
template <class E>
concept MemoryEngine = requires(const Shape& shape, void* block, std::size_t size_bytes, const char* name, typename E::Mutex& mutex,
                                typename E::Condition& condition, typename E::template Operation<2>& operation,
                                typename E::template Reading<2>& reading, typename E::template Durable<int>& variable) {
    { E::stores_seen } -> std::convertible_to<StoresSeen>;
    /// Makes or recovers the engine's pool, before anything else.
    { E::open(shape) };
    /// Inside an Operation. At least 16-byte aligned; old bytes.
    { E::allocate(size_bytes) } -> std::same_as<void*>;
    /// `alignment_bytes`: a power of two, at most 4096.
    { E::allocate_aligned(std::size_t{64}, size_bytes) } -> std::same_as<void*>;
    { E::deallocate(block) };
    /// The named object: zeroed at its first call, the same one after a restart. Outside every operation.
    { E::root(name, size_bytes) } -> std::same_as<void*>;
    /// Waits until all that was written is durable by the engine's promise, so that one slice's work is not done in another's.
    { E::settle() };
    /// The first value of a variable in memory that this operation has allocated.
    { E::init(variable, 1) };
    { E::about_to_write(block, size_bytes) };
    /// False: a crash rolls back Durables, Records and what was allocated, and nothing else.
    { E::rolls_back_bytes } -> std::convertible_to<bool>;
    { E::has_spare_bytes } -> std::convertible_to<bool>;
    /// Memory by its type; inside an Operation, but for named(). Of make() and Blocks the bytes are old, of the others zeroes.
    { E::template make<int>() } -> std::same_as<int*>;
    { typename E::template Blocks<int>(size_bytes).make() } -> std::same_as<int*>;
    { E::template make_array<int>(size_bytes) } -> std::same_as<int*>;
    { E::template named<int>(name, size_bytes) } -> std::same_as<int*>;
    /// A struct that is written as a whole: get() and set().
    typename E::template Record<std::uint64_t>;
    /// A Mutex `mutex`, and a Durable `value` that it guards.
    typename E::template Guarded<int>;
    /// Makes `count` Durables zero again.
    { E::clear(&variable, size_bytes) };
    /// The calling thread waits for others, or sleeps, until its next operation.
    { E::rest() };
    { operation.lock(mutex) };
    /// Before the operation's end: only where nothing was written under this lock (hand over hand).
    { operation.unlock_unwritten(mutex) };
    /// A condition wait with the one lock that is held: what was written becomes one operation, what follows is the next.
    { operation.wait(condition, mutex) };
    { E::notify_all(condition) };
    /// As Operation, for operations that write nothing durable.
    { reading.lock(mutex) };
    { reading.unlock_unwritten(mutex) };
    /// One of its own counters by its name in docs/guide/statistics.md, where it has it.
    { E::statistic(std::string_view()) } -> std::same_as<std::optional<std::uint64_t>>;
};

/// A store of keys and values: a structure over a memory engine, or a database.
/// Threads: `thread` is the caller's number, below the number of threads the store was made for.
template <class S>
concept KeyValueStore = requires(S& store, unsigned thread, std::uint64_t key, std::span<std::byte> out, std::span<const std::byte> value) {
    /// False: there is no such key. `out` is as long as the store's values.
    { store.get(thread, key, out) } -> std::same_as<bool>;
    /// Inserts the key or overwrites its value, as one operation.
    { store.put(thread, key, value) };
    /// False: there was no such key.
    { store.remove(thread, key) } -> std::same_as<bool>;
    /// As MemoryEngine::settle.
    { store.settle() };
};

/// A store that can be filled in large batches, because it would sync each put. Between the two calls one thread puts, each key
/// once, and no thread reads; all of it is durable when end_fill() returns.
template <class S>
concept FillsInBatches = requires(S& store) {
    { store.begin_fill() };
    { store.end_fill() };
};

/// Lasts while a store is filled: batches where the store has them, nothing where a put is cheap.
template <class Store>
class Filling {
public:
    explicit Filling(Store& store) : store_(store)
    {
        if constexpr (FillsInBatches<Store>) {
            store_.begin_fill();
        }
    }
    Filling(const Filling&) = delete;
    Filling& operator=(const Filling&) = delete;
    ~Filling()
    {
        if constexpr (FillsInBatches<Store>) {
            store_.end_fill();
        }
    }

private:
    Store& store_;
};

/// The extra operation of a queue on a database: the ends of the order of its keys.
template <class S>
concept OrderedStore = KeyValueStore<S> && requires(S& store, std::uint64_t limit) {
    { store.lowest_key_below(limit) } -> std::same_as<std::optional<std::uint64_t>>;
    { store.highest_key_below(limit) } -> std::same_as<std::optional<std::uint64_t>>;
};

/// A first-in, first-out queue of 64-bit numbers.
template <class Q>
concept FifoQueue = requires(Q& queue, unsigned thread, std::uint64_t number) {
    { queue.push(thread, number) };
    /// False: it is empty.
    { queue.pop(thread, number) } -> std::same_as<bool>;
    { queue.settle() };
};

}  // namespace bench
