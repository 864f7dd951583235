#pragma once
// The engine or peer that this worker is built for: one macro, set by bench/CMakeLists.txt, picks it. Nothing else
// depends on which one it is.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "../structures/progress.hpp"
#include "../worker/shape.hpp"

#if defined(BENCH_VOLATILE)
#include "volatile_engine.hpp"
#elif defined(BENCH_PMTHREADS)
#include "pmthreads_engine.hpp"
#elif defined(BENCH_RESPCT)
#include "respct_engine.hpp"
#elif defined(BENCH_PMEMOBJ)
#include "pmemobj_engine.hpp"
#elif defined(BENCH_LMDB)
#include "lmdb_store.hpp"
#elif defined(BENCH_ROCKSDB)
#include "rocksdb_store.hpp"
#elif defined(BENCH_SQLITE)
#include "sqlite_store.hpp"
#elif defined(BENCH_PRONTO)
#include "pronto_store.hpp"
#else
#error "no engine chosen"
#endif

#if defined(BENCH_VOLATILE) || defined(BENCH_PMTHREADS) || defined(BENCH_RESPCT) || defined(BENCH_PMEMOBJ)
#define BENCH_HAS_MEMORY 1
#include "../structures/btree.hpp"
#include "../structures/hash_map.hpp"
#include "../structures/queue.hpp"
#else
#define BENCH_HAS_MEMORY 0
#include "../structures/store_queue.hpp"
#endif

namespace bench {

#if BENCH_HAS_MEMORY

#if defined(BENCH_VOLATILE)
using CurrentEngine = VolatileEngine;
#elif defined(BENCH_PMTHREADS)
using CurrentEngine = PmthreadsEngine;
#elif defined(BENCH_RESPCT)
using CurrentEngine = RespctEngine;
#else
using CurrentEngine = PmemobjEngine;
#endif

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

#elif defined(BENCH_PRONTO)

/// A structure of the bench that is made durable as it is; for YCSB the store that a program would take.
using CurrentHashStore = ProntoHashStore;
using CurrentTreeStore = ProntoTreeStore;
using CurrentYcsbStore = ProntoStringStore;
using CurrentQueue = ProntoQueue;
template <class Store>
class CurrentProgress : public StoreProgress<Store> {
public:
    CurrentProgress(Store& store, const Shape& shape) : StoreProgress<Store>(store, shape.value_bytes) {}
};
template <>
class CurrentProgress<ProntoQueue> : public ProntoQueueProgress {
public:
    using ProntoQueueProgress::ProntoQueueProgress;
};

#else

#if defined(BENCH_LMDB)
using CurrentStore = LmdbStore;
#elif defined(BENCH_ROCKSDB)
using CurrentStore = RocksdbStore;
#else
using CurrentStore = SqliteStore;
#endif

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

/// Before any workload is made.
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
#endif
}

/// A figure that the engine counts itself, by its name in docs/guide/statistics.md.
inline std::optional<std::uint64_t> current_statistic([[maybe_unused]] std::string_view name)
{
#if BENCH_HAS_MEMORY
    return CurrentEngine::statistic(name);
#elif defined(BENCH_PRONTO)
    return ProntoMemory::statistic(name);
#else
    return std::nullopt;
#endif
}

}  // namespace bench
