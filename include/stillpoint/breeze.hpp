#pragma once
// Engine breeze for C++: pools of typed objects with ordinary pointers, transactions, garbage collection [Breeze, ICCD 2018].
// docs/guide/breeze.md is the guide, breeze.h the interface below.
//
//   stillpoint::breeze::pool pool = ...
//   pool.atomically([&](stillpoint::breeze::transaction& tx) {
//       node* fresh = tx.make<node>(NVM_TYPE_ID(node))     // new objects are written by plain stores,
//       tx.set(list->first, fresh)                         // others are logged before they are written
//   })                                                     // all of it is durable here
//
// An exception that leaves the body rolls the transaction back. Threads: any; keep them apart by locks of your own.

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "stillpoint/breeze.h"
#include "stillpoint/stillpoint.h"

namespace stillpoint::breeze {

/// A call of the interface below has failed. `code` is an sp_error.
class error : public std::runtime_error {
public:
    explicit error(int code) : std::runtime_error(sp_last_error()), code_(code) {}
    [[nodiscard]] int code() const noexcept { return code_; }

private:
    int code_;
};

inline void check(int code)
{
    if (code != SP_OK) {
        throw error(code);
    }
}

/// The running transaction of the calling thread, for the body alone.
class transaction {
public:
    explicit transaction(NVM_POOL* pool) noexcept : pool_(pool) {}
    transaction(const transaction&) = delete;
    transaction& operator=(const transaction&) = delete;

    /// Before stores to the object, or to `count` of them.
    template <class T>
    void log(const T& object, std::size_t count = 1)
    {
        check(nvm_log(&object, count * sizeof(T)));
    }
    /// Before stores to all of the objects, which share one fence.
    template <class... T>
    void log_all(const T&... objects)
    {
        (check(nvm_log_ahead(&objects, sizeof objects)), ...);
        nvm_log_wait();
    }
    /// Logs the place, and stores to it.
    template <class T>
    void set(T& place, const std::type_identity_t<T>& value)
    {
        log(place);
        place = value;
    }
    /// A zeroed object of that type, or an array of them. T is trivially copyable: a crash runs no destructor.
    template <class T>
    [[nodiscard]] T* make(std::uint32_t type, std::size_t count = 1)
    {
        static_assert(std::is_trivially_copyable_v<T>, "objects of pools are trivially copyable");
        return static_cast<T*>(make_bytes(type, count * sizeof(T)));
    }
    /// As make(), for a type with a tail.
    [[nodiscard]] void* make_bytes(std::uint32_t type, std::size_t size_bytes)
    {
        void* const object = nvm_alloc(pool_, type, size_bytes);
        if (object == nullptr) {
            throw error(SP_E_POOL_FULL);
        }
        return object;
    }
    void free(void* object) { check(nvm_free(pool_, object)); }
    void set_root(const void* object) { check(nvm_pool_set_root(pool_, object)); }

private:
    NVM_POOL* pool_;
};

/// Does not keep its object alive. Lies in objects of pools, as a field that NVM_HAS_WEAK names.
template <class T>
class weak : public nvm_weak {
public:
    /// nullptr: the object has been freed, or there was none.
    [[nodiscard]] T* get(NVM_POOL* pool) const noexcept { return static_cast<T*>(nvm_weak_get(pool, this)); }
    void set(NVM_POOL* pool, const T* target) { check(nvm_weak_set(pool, this, target)); }
};
static_assert(sizeof(weak<int>) == sizeof(nvm_weak));

/// Owns an open pool.
class pool {
public:
    [[nodiscard]] static pool create(const std::string& path, std::size_t size_bytes, const nvm_options& options = {})
    {
        return pool(nvm_pool_create_with(path.c_str(), size_bytes, &options));
    }
    [[nodiscard]] static pool open(const std::string& path, const nvm_options& options = {})
    {
        return pool(nvm_pool_open_with(path.c_str(), &options));
    }
    pool(pool&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    pool& operator=(pool&& other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    pool(const pool&) = delete;
    pool& operator=(const pool&) = delete;
    ~pool()
    {
        if (handle_ != nullptr) {
            static_cast<void>(nvm_pool_close(handle_));
        }
    }

    [[nodiscard]] NVM_POOL* handle() const noexcept { return handle_; }
    template <class T>
    [[nodiscard]] T* root() const noexcept
    {
        return static_cast<T*>(nvm_pool_root(handle_));
    }
    /// Runs body(transaction&); inside a transaction of the thread it becomes a part of that one.
    template <class Body>
    void atomically(Body&& body)
    {
        run(std::forward<Body>(body), &nvm_tx_commit);
    }
    /// As atomically(), and durable after wait_durable(): the locks of what it changed may be released before.
    template <class Body>
    void atomically_early(Body&& body)
    {
        run(std::forward<Body>(body), &nvm_tx_commit_early);
    }
    /// All that any thread has committed before is durable on return.
    void wait_durable() { check(nvm_wait_durable(handle_)); }
    nvm_collection collect()
    {
        nvm_collection figures{};
        check(nvm_collect(handle_, &figures));
        return figures;
    }
    void drain() { check(nvm_drain(handle_)); }

private:
    template <class Body>
    void run(Body&& body, int (*commit)(NVM_POOL*))
    {
        check(nvm_tx_begin(handle_));
        try {
            transaction running(handle_);
            std::forward<Body>(body)(running);
        } catch (...) {
            static_cast<void>(nvm_tx_abort(handle_));
            throw;
        }
        check(commit(handle_));
    }

    explicit pool(NVM_POOL* handle) : handle_(handle)
    {
        if (handle == nullptr) {
            throw error(SP_E_NOT_OPEN);
        }
    }
    NVM_POOL* handle_;
};

}  // namespace stillpoint::breeze

#endif
