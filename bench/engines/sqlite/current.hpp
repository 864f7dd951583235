#pragma once
// The worker of the peer sqlite.

#include "../sqlite_store.hpp"

#define BENCH_HAS_MEMORY 0

namespace bench {
using CurrentStore = SqliteStore;
}
