#pragma once
// The transactional memory of spht: every transaction is durable when it returns.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "../../harness/ending.hpp"
#include "../../transactions/transaction_phases.hpp"
#include "../../transactions/transactions.hpp"
#include "stillpoint/spht.hpp"

namespace bench {

struct SphtMemory {
    class Handle {
    public:
        explicit Handle(stillpoint::spht::transaction& tx) noexcept : tx_(tx) {}
        template <Word T>
        [[nodiscard]] T read(const T& place)
        {
            return tx_.read(place);
        }
        template <Word T>
        void write(T& place, std::type_identity_t<T> value)
        {
            tx_.write(place, value);
        }
        [[nodiscard]] void* allocate(std::size_t size_bytes) { return tx_.allocate(size_bytes); }
        void free(void* block) { tx_.free(block); }
        void read_bytes(const void* place, void* value, std::size_t size_bytes) { tx_.read_bytes(place, value, size_bytes); }
        void write_bytes(void* place, const void* value, std::size_t size_bytes) { tx_.write_bytes(place, value, size_bytes); }

    private:
        stillpoint::spht::transaction& tx_;
    };

    /// The pool was opened when the program was started.
    static void open(const Shape&) noexcept {}
    template <class Body>
    static auto atomically(Body&& body)
    {
        return run(std::forward<Body>(body), 0);
    }
    /// For bodies that write nothing.
    template <class Body>
    static auto read_atomically(Body&& body)
    {
        return run(std::forward<Body>(body), SP_SPHT_READ_ONLY);
    }
    template <class T>
    [[nodiscard]] static T* named(const char* name, std::size_t count = 1)
    {
        void* const memory = sp_root(name, count * sizeof(T));
        if (memory == nullptr) {
            give_up(std::string("no memory for ") + name + ": " + sp_last_error());
        }
        return static_cast<T*>(memory);
    }
    /// Transactions are durable when they return; a replay that is due is made here and not in another's slice.
    static void settle() noexcept { static_cast<void>(sp_checkpoint()); }
    static void rest() noexcept {}
    static std::optional<std::uint64_t> statistic(std::string_view name)
    {
        std::uint64_t value = 0;
        return sp_statistic(std::string(name).c_str(), &value) == SP_OK ? std::optional(value) : std::nullopt;
    }

private:
    template <class Body>
    static auto run(Body&& body, unsigned flags)
    {
        try {
            if (TransactionPhases::are_watched()) [[unlikely]] {
                TransactionPhases::Watched watched(SPHT_ATTEMPTS_MAX);
                return stillpoint::spht::atomically(
                    [&](stillpoint::spht::transaction& tx) {
                        const TransactionPhases::Watched::Attempt attempt(watched);
                        Handle handle(tx);
                        return body(handle);
                    },
                    flags);
            }
            return stillpoint::spht::atomically(
                [&](stillpoint::spht::transaction& tx) {
                    Handle handle(tx);
                    return body(handle);
                },
                flags);
        } catch (const std::exception& thrown) {
            give_up(std::string("a transaction is not durable: ") + thrown.what());
        }
    }
};
static_assert(TransactionalMemory<SphtMemory>);

}  // namespace bench
