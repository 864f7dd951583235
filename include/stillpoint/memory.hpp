#pragma once
// Durable memory as C++ asks for it: which pool a thread allocates in, and a resource for std::pmr. The part that stillpoint.hpp and
// pronto.hpp share: include one of them.

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory_resource>
#include <new>
#include <stdexcept>

#include "stillpoint/stillpoint.h"

namespace stillpoint {

namespace detail {
inline constexpr std::size_t alignment_of_malloc = 16;

/// Throws std::bad_alloc; sp_last_error() says why.
[[nodiscard]] inline void* allocate_durable(std::size_t bytes, std::size_t alignment)
{
    void* const place = alignment <= alignment_of_malloc ? sp_malloc(bytes) : sp_aligned_alloc(alignment, bytes);
    if (place == nullptr) {
        throw std::bad_alloc();
    }
    return place;
}
}  // namespace detail

/// While it lives the calling thread acts on that pool (sp_pool_use): roots, durable objects, snapshots and allocations are that pool's.
///   stillpoint::pool_scope in(sp_pool_open("other.pool", "engine=..."));
/// Operations of durable objects need none: each acts on its object's pool. Throws std::invalid_argument for a pointer that is not an
/// open pool.
class [[nodiscard]] pool_scope {
public:
    explicit pool_scope(sp_pool* pool)
    {
        if (pool == nullptr || sp_pool_use(pool, &before_) != SP_OK) {
            throw std::invalid_argument(sp_last_error());
        }
    }
    pool_scope(const pool_scope&) = delete;
    pool_scope& operator=(const pool_scope&) = delete;
    ~pool_scope() { sp_pool_use(before_, nullptr); }

private:
    sp_pool* before_ = nullptr;
};

/// Durable memory for std::pmr containers in durable memory: `std::pmr::vector<int> values{stillpoint::durable_resource()}`. It lies in
/// the pool, under a name, since the containers point to it. All are equal.
class memory_resource final : public std::pmr::memory_resource {
    void* do_allocate(std::size_t bytes, std::size_t alignment) override { return detail::allocate_durable(bytes, alignment); }
    void do_deallocate(void* block, std::size_t, std::size_t) override { sp_free(block); }
    [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override
    {
#ifdef __cpp_rtti
        return dynamic_cast<const memory_resource*>(&other) != nullptr;
#else
        return this == &other;
#endif
    }
};

namespace detail {

/// The one resource of the pool. Its first word points to its virtual functions, whose address is another one in each process: so it is
/// made again in the same place before the first object is looked for, and with it before anything is run again.
class DurableResource {
public:
    /// As the first pools have it.
    static constexpr const char* handle = "stillpoint.pronto.memory_resource";

    /// Set before main where the program asks for the resource anywhere.
    inline static bool is_wanted = false;
    /// That of the pool that was used last.
    inline static std::atomic<memory_resource*> place = nullptr;

    /// In the pool that the thread acts on.
    static void renew()
    {
        if (!is_wanted) {
            return;
        }
        void* const found = sp_root(handle, sizeof(memory_resource));
        const memory_resource right;
        if (found != nullptr && std::memcmp(found, static_cast<const void*>(&right), sizeof right) != 0) {
            sp_fase_begin();
            ::new (found) memory_resource();
            sp_fase_end();
        }
        place.store(static_cast<memory_resource*>(found), std::memory_order_release);
    }
};

template <class Unused>
inline const bool resource_is_wanted = (DurableResource::is_wanted = true);

}  // namespace detail

/// The memory_resource of the pool that the thread acts on: inside a durable object's code, the object's pool. Call it in constructors and
/// methods of what lies in the pool; before the first root or object of a process it takes a lock of the directory.
/// Errors: std::bad_alloc; sp_last_error() says why.
template <class Unused = void>
[[nodiscard]] memory_resource* durable_resource()
{
    static_cast<void>(&detail::resource_is_wanted<Unused>);
    memory_resource* found = detail::DurableResource::place.load(std::memory_order_acquire);
    if (found == nullptr || sp_pool_of(found) != sp_pool_current()) {
        detail::DurableResource::renew();
        found = detail::DurableResource::place.load(std::memory_order_acquire);
    }
    if (found == nullptr) {
        throw std::bad_alloc();
    }
    return found;
}

}  // namespace stillpoint

#endif
