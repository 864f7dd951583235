// A store in memory as a durable object of pronto: a put and a removal are its operations, logged with their arguments.
//
// An operation is durable before another of the same key begins, as equation 5.1 of the paper demands; those of different keys commute.

#include "pronto_store.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <span>
#include <string>

#include "stillpoint/pronto.hpp"

namespace {

namespace pronto = stillpoint::pronto;

class Store : public pronto::object<Store> {
public:
    static constexpr char type_name[] = "bench.port";
    using constructor = pronto::constructor<>;
    static constexpr auto methods()
    {
        return pronto::methods(pronto::method<&Store::put>("put"), pronto::method<&Store::remove>("remove"));
    }

    Store() : failed_(volatile_open("", 0)), structure_(kept_structure()) {}

    int put(std::uint64_t key, std::span<const std::byte> value)
    {
        auto operation = op_begin<&Store::put>(key, value);
        find();
        const int failed = volatile_put(key, value.data());
        operation.commit();
        return failed;
    }
    bool remove(std::uint64_t key)
    {
        auto operation = op_begin<&Store::remove>(key);
        find();
        const bool was_there = volatile_remove(key);
        operation.commit();
        return was_there;
    }
    [[nodiscard]] int failed() const noexcept { return failed_; }
    /// After a restart the volatile program does not know yet where its structure lies; a replay may come before everything else.
    void find() const noexcept
    {
        if (found_ != structure_) {
            find_kept_structure(structure_);
            found_ = structure_;
        }
    }

private:
    int failed_;
    void* structure_;
    inline static void* found_ = nullptr;
};

Store* store;
std::string error;
std::mutex locks[1024];

std::mutex& lock_of(std::uint64_t key) { return locks[key * 0x9e3779b97f4a7c15u >> 54]; }

}  // namespace

int store_open(const char*, std::size_t)
{
    try {
        store = &pronto::get_object<Store>("store");
        store->find();
        return store->failed();
    } catch (const std::exception& thrown) {
        error = thrown.what();
        return EIO;
    }
}

int store_put(std::uint64_t key, const void* value)
{
    const std::lock_guard locked(lock_of(key));
    return store->put(key, std::span(static_cast<const std::byte*>(value), STORE_VALUE_BYTES));
}

bool store_remove(std::uint64_t key)
{
    const std::lock_guard locked(lock_of(key));
    return store->remove(key);
}

void store_close(void) {}
const char* store_name(void) { return "pronto"; }
const char* store_error(void) { return error.c_str(); }

/// An operation is durable when it returns: the driver waits for nothing.
extern "C" void store_settle() {}
