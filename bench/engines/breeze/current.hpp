#pragma once
// The worker of the engine breeze: structures of typed objects.

#include "breeze_stores.hpp"

#define BENCH_HAS_MEMORY 0
#define BENCH_HAS_OWN_STORES 1

namespace bench {

using CurrentHashStore = BreezeHashStore;
using CurrentTreeStore = BreezeTreeStore;
using CurrentYcsbStore = BreezeHashStore;
using CurrentQueue = BreezeQueue;
using CurrentStatistics = BreezeMemory;
inline constexpr const char* why_no_program = "its objects have types, and the program stores to plain memory";

template <class Store>
class CurrentProgress : public BreezeProgress {
public:
    CurrentProgress(Store&, const Shape& shape) : BreezeProgress(shape) {}
};

}  // namespace bench
