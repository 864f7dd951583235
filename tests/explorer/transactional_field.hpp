#pragma once
// Durable memory of a transaction: what the calling thread's transaction reads and writes, if it is in one; else the memory itself.

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "stillpoint/spht.h"
#include "stillpoint/stillpoint.h"

namespace stillpoint::explorer {

/// A transaction that cannot be begun, or cannot become durable: sp_last_error() says why.
struct TransactionRefused final : std::runtime_error {
    TransactionRefused() : std::runtime_error(sp_last_error()) {}
};

/// Throws TransactionRefused.
void begin_transaction();
/// Returns when it is durable. No other thread is in its way. Throws TransactionRefused.
void commit_transaction();
/// Throws bad_alloc.
[[nodiscard]] std::byte* allocate_in_transaction(std::size_t bytes);
void free_in_transaction(void* block);
/// For one thread, whose transactions meet no conflict.
void read_in_transaction(const void* place, void* value, std::size_t bytes);
void write_in_transaction(void* place, const void* value, std::size_t bytes);
void copy_in_transaction(void* to, const void* from, std::size_t bytes);
/// Plain stores, until the commit, into memory that no other thread knows become a part of the transaction.
void write_what_is_there(const void* place, std::size_t bytes);

/// A variable that is written inside transactions only.
template <class T>
class TransactionalField {
    static_assert(std::is_trivially_copyable_v<T>);

public:
    TransactionalField() = default;
    TransactionalField(const TransactionalField&) = delete;
    ~TransactionalField() = default;

    operator T() const  // NOLINT(google-explicit-constructor): used as a T is.
    {
        T value;
        read_in_transaction(&value_, &value, sizeof value);
        return value;
    }
    [[nodiscard]] T operator->() const { return *this; }

    TransactionalField& operator=(const T& value)
    {
        write_in_transaction(&value_, &value, sizeof value);
        return *this;
    }
    TransactionalField& operator=(const TransactionalField& other) { return *this = static_cast<T>(other); }
    TransactionalField& operator++() { return *this = static_cast<T>(*this + 1); }
    TransactionalField& operator--() { return *this = static_cast<T>(*this - 1); }
    TransactionalField& operator+=(const T& value) { return *this = static_cast<T>(*this + value); }
    TransactionalField& operator-=(const T& value) { return *this = static_cast<T>(*this - value); }

private:
    T value_;
};

}  // namespace stillpoint::explorer
