#pragma once
// The interface that transactional programs are written against: memory whose words are read and written by transactions.
//
// atomically() runs a body as one transaction: `M::atomically([&](auto& tx) { tx.write(account, tx.read(account) + amount); })`.
//
// Rules for the programs:
// - The body may run again after a conflict. So it has no effect but through `tx`, and on variables that it sets itself each time.
// - In a transaction, shared memory is read and written through `tx` only. What no transaction writes any more is read as usual; so is
//   everything while no thread is in a transaction.
// - A word is at most 8 bytes long and naturally aligned. Larger structures are read and written field by field.
// - Memory from allocate() is taken back when the transaction aborts, and its first values are written through `tx` too. Memory given to
//   free() is gone when the transaction commits.
// - Pointers stay valid over a restart; pointers to functions and to ordinary memory do not.
// - Zeroed memory is what named() gives at first. Structures of this folder are empty when they are zeroed.

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "../worker/shape.hpp"

namespace bench {

/// A value that a transaction can read and write.
template <class T>
concept Word = std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t);

/// The handle that a body is called with.
template <class Tx>
concept Transaction = requires(Tx& tx, const std::uint64_t& seen, std::uint32_t& place, void* block, std::size_t size_bytes) {
    { tx.read(seen) } -> std::same_as<std::uint64_t>;
    { tx.write(place, std::uint32_t{1}) };
    /// At least 16-byte aligned; old bytes.
    { tx.allocate(size_bytes) } -> std::same_as<void*>;
    { tx.free(block) };
};

/// Everything is static: a process has one pool. Functions end the program with a message where there is no memory.
template <class M>
concept TransactionalMemory = requires(const Shape& shape, const char* name, std::size_t count) {
    typename M::Handle;
    requires Transaction<typename M::Handle>;
    /// Makes or recovers the memory, before anything else.
    { M::open(shape) };
    /// Runs the body as one transaction, and returns what it returned when it committed. Not inside another one.
    {
        M::atomically([](typename M::Handle&) { return 1; })
    } -> std::same_as<int>;
    {
        M::atomically([](typename M::Handle&) {})
    } -> std::same_as<void>;
    /// The named array: zeroed at its first call, the same one after a restart. Outside of transactions.
    { M::template named<std::uint64_t>(name, count) } -> std::same_as<std::uint64_t*>;
    /// Waits until all that was committed is durable by the engine's promise.
    { M::settle() };
    /// The calling thread waits for others, or sleeps, until its next transaction.
    { M::rest() };
    /// One of the engine's own counters by its name in docs/guide/statistics.md, where it has it.
    { M::statistic(std::string_view()) } -> std::same_as<std::optional<std::uint64_t>>;
};

/// Memory for a T, of which every field is written through `tx` before it is read.
template <class T, Transaction Tx>
[[nodiscard]] T* make(Tx& tx)
{
    return static_cast<T*>(tx.allocate(sizeof(T)));
}

/// Memory for a T of zeroes.
template <class T, Transaction Tx>
[[nodiscard]] T* make_empty(Tx& tx)
{
    static_assert(sizeof(T) % sizeof(std::uint64_t) == 0);
    T* const made = make<T>(tx);
    auto* const words = static_cast<std::uint64_t*>(static_cast<void*>(made));
    for (std::size_t i = 0; i < sizeof(T) / sizeof(std::uint64_t); ++i) {
        tx.write(words[i], std::uint64_t{0});
    }
    return made;
}

/// Adds to a number; returns the sum.
template <Word T, Transaction Tx>
T add(Tx& tx, T& place, std::type_identity_t<T> difference)
{
    const T sum = static_cast<T>(tx.read(place) + difference);
    tx.write(place, sum);
    return sum;
}

/// As add(), for numbers without a sign.
template <Word T, Transaction Tx>
T subtract(Tx& tx, T& place, std::type_identity_t<T> difference)
{
    const T rest = static_cast<T>(tx.read(place) - difference);
    tx.write(place, rest);
    return rest;
}

/// Saves a write, and a conflict, where the place has the value already.
template <Word T, Transaction Tx>
void write_changed(Tx& tx, T& place, std::type_identity_t<T> value)
{
    if (tx.read(place) != value) {
        tx.write(place, value);
    }
}

/// Reads a word that others may be writing: some value that it had. No conflict is noticed, so what follows from it must be checked by
/// reading through a transaction.
template <Word T>
[[nodiscard]] T peek(const T& place) noexcept
{
    return std::atomic_ref(const_cast<T&>(place)).load(std::memory_order_relaxed);
}

}  // namespace bench
