#pragma once
// The worker of the peer lmdb.

#include "../lmdb_store.hpp"

#define BENCH_HAS_MEMORY 0

namespace bench {
using CurrentStore = LmdbStore;
}
