#pragma once
// The worker of a peer that is loaded: a shared library that BENCH_PEER names.

#include "../loaded_store.hpp"

#define BENCH_HAS_MEMORY 0
#define BENCH_HAS_OWN_STORES 1
#define BENCH_IS_LOADED 1

namespace bench {

using CurrentHashStore = LoadedStore;
using CurrentTreeStore = LoadedStore;
using CurrentYcsbStore = LoadedStore;
using CurrentQueue = LoadedStore;
using CurrentStatistics = LoadedStore;
inline constexpr const char* why_no_program = "a peer that is loaded gives no memory for a structure of the program's own";

template <class Store>
class CurrentProgress : public LoadedProgress {
public:
    using LoadedProgress::LoadedProgress;
};

}  // namespace bench
