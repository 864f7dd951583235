#pragma once
// The worker of the engine spht: structures and programs that are made of transactions.

#include "spht_stores.hpp"

#define BENCH_HAS_MEMORY 0
#define BENCH_HAS_OWN_STORES 1
#define BENCH_HAS_TRANSACTIONS 1

namespace bench {

using CurrentTransactions = SphtMemory;
using CurrentHashStore = SphtHashStore;
using CurrentTreeStore = SphtTreeStore;
using CurrentYcsbStore = SphtHashStore;
using CurrentQueue = SphtQueue;
using CurrentStatistics = SphtMemory;
inline constexpr const char* why_no_program = "its memory is read and written by transactions, and the program stores to memory";

template <class Store>
class CurrentProgress : public SphtProgress {
public:
    CurrentProgress(Store&, const Shape&) {}
};

}  // namespace bench
