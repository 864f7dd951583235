#pragma once
// The pool of the libpmemobj maps, and transactions without setjmp: a failure ends the program, so nothing is rolled back in it.

#include <cstddef>
#include <cstdint>
#include <libpmemobj.h>
#include <string>

namespace bench {

class MapPool {
public:
    /// Makes the pool again, `mib` in size; its root object has `root_bytes` of zeroes.
    MapPool(const std::string& path, std::uint64_t mib, std::size_t root_bytes);
    MapPool(const MapPool&) = delete;
    MapPool& operator=(const MapPool&) = delete;
    ~MapPool();

    [[nodiscard]] PMEMobjpool* handle() const noexcept { return pool_; }
    [[nodiscard]] void* root() const noexcept { return root_; }
    void persist(const void* first, std::size_t bytes) const noexcept { pmemobj_persist(pool_, first, bytes); }

    // Inside a transaction of the calling thread.
    static PMEMoid allocate_in_transaction(std::size_t bytes, std::uint64_t type);
    static void free_in_transaction(PMEMoid object);
    static void snapshot(void* first, std::size_t bytes);

    [[noreturn]] static void failed(const char* what);

private:
    PMEMobjpool* pool_;
    void* root_;
};

/// Durable when it is destroyed.
class MapTransaction {
public:
    explicit MapTransaction(const MapPool& pool);
    MapTransaction(const MapTransaction&) = delete;
    MapTransaction& operator=(const MapTransaction&) = delete;
    ~MapTransaction();
};

}  // namespace bench
