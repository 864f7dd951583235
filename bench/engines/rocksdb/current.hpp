#pragma once
// The worker of the peer rocksdb.

#include "../rocksdb_store.hpp"

#define BENCH_HAS_MEMORY 0

namespace bench {
using CurrentStore = RocksdbStore;
}
