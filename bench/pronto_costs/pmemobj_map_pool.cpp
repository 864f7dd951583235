#include "pmemobj_map_pool.hpp"

#include <unistd.h>

#include "../harness/ending.hpp"

namespace bench {

MapPool::MapPool(const std::string& path, std::uint64_t mib, std::size_t root_bytes)
{
    unlink(path.c_str());
    pool_ = pmemobj_create(path.c_str(), "stillpoint-bench-maps", mib << 20, 0600);
    if (pool_ == nullptr) {
        give_up(path + ": " + pmemobj_errormsg());
    }
    root_ = pmemobj_direct(pmemobj_root(pool_, root_bytes));
}

MapPool::~MapPool() { pmemobj_close(pool_); }

PMEMoid MapPool::allocate_in_transaction(std::size_t bytes, std::uint64_t type)
{
    const PMEMoid made = pmemobj_tx_alloc(bytes, type);
    if (OID_IS_NULL(made)) {
        failed("no memory in the pool");
    }
    return made;
}

void MapPool::free_in_transaction(PMEMoid object)
{
    if (pmemobj_tx_free(object) != 0) {
        failed("cannot free an object");
    }
}

void MapPool::snapshot(void* first, std::size_t bytes)
{
    if (pmemobj_tx_add_range_direct(first, bytes) != 0) {
        failed("cannot log a range");
    }
}

void MapPool::failed(const char* what) { give_up(std::string("libpmemobj: ") + what + ": " + pmemobj_errormsg()); }

MapTransaction::MapTransaction(const MapPool& pool)
{
    if (pmemobj_tx_begin(pool.handle(), nullptr, TX_PARAM_NONE) != 0) {
        MapPool::failed("cannot begin a transaction");
    }
}

MapTransaction::~MapTransaction()
{
    pmemobj_tx_commit();
    if (pmemobj_tx_end() != 0) {
        MapPool::failed("a transaction did not commit");
    }
}

}  // namespace bench
