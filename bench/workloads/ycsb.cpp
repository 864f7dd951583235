// YCSB's core workloads: load, A to D and F, on a hash map or the peer's own store.

#include "../engines/current.hpp"
