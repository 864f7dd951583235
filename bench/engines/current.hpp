#pragma once
// The engine or peer that this worker is built for: BENCH_ENGINE is the name of its folder here, which has a header current.hpp. That one
// says BENCH_HAS_MEMORY 1 and what CurrentEngine is, a MemoryEngine; or 0, and what CurrentStore is, a KeyValueStore; or all of the types
// below itself (BENCH_HAS_OWN_STORES). It says BENCH_HAS_TRANSACTIONS 1 where it has a TransactionalMemory of its own, CurrentTransactions,
// with stores or without, and BENCH_IS_LOADED 1 where only a library that is loaded tells which workloads there are. Nothing else depends
// on which one it is.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "../structures/progress.hpp"
#include "../worker/shape.hpp"

#if !defined(BENCH_ENGINE)
#error "no engine chosen"
#endif
#define BENCH_QUOTED(path) #path
// clang-format off: a space would be one in the path.
#define BENCH_HEADER_OF(name) BENCH_QUOTED(name/current.hpp)
// clang-format on
#include BENCH_HEADER_OF(BENCH_ENGINE)

#if !defined(BENCH_HAS_TRANSACTIONS)
#define BENCH_HAS_TRANSACTIONS 0
#endif
#if !defined(BENCH_IS_LOADED)
#define BENCH_IS_LOADED 0
#endif
#if BENCH_HAS_MEMORY || !BENCH_HAS_TRANSACTIONS || defined(BENCH_HAS_OWN_STORES)
#define BENCH_HAS_STORES 1
#else
#define BENCH_HAS_STORES 0
#endif
#if BENCH_HAS_MEMORY
#include "../structures/btree.hpp"
#include "../structures/hash_map.hpp"
#include "../structures/queue.hpp"
#include "../transactions/locked_transactions.hpp"
#elif BENCH_HAS_STORES
#include "../structures/store_queue.hpp"
#endif

namespace bench {

#if BENCH_HAS_MEMORY

/// A hash map for about `keys` keys, two for each bucket.
class CurrentHashStore : public HashMap<CurrentEngine> {
public:
    CurrentHashStore(const Shape& shape, const char* name, std::uint64_t keys)
        : HashMap(name, std::bit_ceil(keys / 2 + (keys < 2 ? 1 : 0)), shape.value_bytes)
    {
    }
};
class CurrentTreeStore : public BTree<CurrentEngine> {
public:
    CurrentTreeStore(const Shape& shape, const char* name, std::uint64_t) : BTree(name, shape.value_bytes) {}
};
class CurrentQueue : public SingleLockQueue<CurrentEngine> {
public:
    CurrentQueue(const Shape&, const char* name) : SingleLockQueue(name) {}
};
template <class Store>
class CurrentProgress : public Progress<CurrentEngine> {
public:
    CurrentProgress(Store&, const Shape&) {}
};

using CurrentYcsbStore = CurrentHashStore;
#if !BENCH_HAS_TRANSACTIONS
using CurrentTransactions = LockedTransactions<CurrentEngine>;
#endif

#elif BENCH_HAS_STORES && !defined(BENCH_HAS_OWN_STORES)

inline constexpr const char* why_no_program = "a database gives no memory for a structure of the program's own";

using CurrentHashStore = CurrentStore;
using CurrentTreeStore = CurrentStore;
using CurrentYcsbStore = CurrentStore;
using CurrentQueue = StoreQueue<CurrentStore>;
template <class Store>
class CurrentProgress : public StoreProgress<Store> {
public:
    CurrentProgress(Store& store, const Shape& shape) : StoreProgress<Store>(store, shape.value_bytes) {}
};

#endif

/// Before any workload is made. Transactional programs open their memory themselves.
inline void open_current([[maybe_unused]] const Shape& shape)
{
#if BENCH_HAS_MEMORY
    CurrentEngine::open(shape);
#endif
}

/// The calling thread sleeps or waits for others until its next operation.
inline void rest_current()
{
#if BENCH_HAS_MEMORY
    CurrentEngine::rest();
#elif BENCH_HAS_TRANSACTIONS
    CurrentTransactions::rest();
#endif
}

/// A figure that the engine counts itself, by its name in docs/guide/statistics.md.
inline std::optional<std::uint64_t> current_statistic([[maybe_unused]] std::string_view name)
{
#if BENCH_HAS_MEMORY
    return CurrentEngine::statistic(name);
#elif BENCH_HAS_TRANSACTIONS
    return CurrentTransactions::statistic(name);
#elif defined(BENCH_HAS_OWN_STORES)
    return CurrentStatistics::statistic(name);
#else
    return std::nullopt;
#endif
}

}  // namespace bench
