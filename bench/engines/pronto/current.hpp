#pragma once
// The worker of the engine pronto: structures of the bench that are made durable as they are; for YCSB the store that a program would take.

#include "pronto_store.hpp"

#define BENCH_HAS_MEMORY 0
#define BENCH_HAS_OWN_STORES 1

namespace bench {

using CurrentHashStore = ProntoChosenStore<ProntoHashStore>;
using CurrentTreeStore = ProntoTreeStore;
using CurrentYcsbStore = ProntoChosenStore<void>;
using CurrentQueue = ProntoQueue;
using CurrentStatistics = ProntoMemory;
inline constexpr const char* why_no_program = "its operations are calls of an object's methods, and the program stores to memory";

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

}  // namespace bench
