#pragma once
// Transactions of an engine of programs under locks: one lock for all of them, and each is an operation of the engine. None aborts.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "../engines/engine.hpp"
#include "transactions.hpp"

namespace bench {

template <MemoryEngine E>
class LockedTransactions {
public:
    class Handle {
    public:
        template <Word T>
        [[nodiscard]] T read(const T& place) const noexcept
        {
            return place;
        }
        template <Word T>
        void write(T& place, std::type_identity_t<T> value) const
        {
            E::about_to_write(&place, sizeof place);
            place = value;
        }
        [[nodiscard]] void* allocate(std::size_t size_bytes) const { return E::allocate(size_bytes); }
        void free(void* block) const { E::deallocate(block); }
    };

    /// The engine is open.
    static void open(const Shape&) { mutex_ = E::template named<typename E::Mutex>("bench.transactions"); }
    template <class Body>
    static auto atomically(Body&& body)
    {
        typename E::template Operation<1> operation;
        operation.lock(*mutex_);
        Handle tx;
        return body(tx);
    }
    template <class T>
    [[nodiscard]] static T* named(const char* name, std::size_t count = 1)
    {
        return E::template named<T>(name, count);
    }
    static void settle() { E::settle(); }
    static void rest() { E::rest(); }
    static std::optional<std::uint64_t> statistic(std::string_view name) { return E::statistic(name); }

private:
    inline static typename E::Mutex* mutex_ = nullptr;
};

}  // namespace bench
