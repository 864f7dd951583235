#pragma once
// Engine spht for C++: transactions that are durable when they return [SPHT, FAST 2021]. docs/guide/spht.md is the guide, spht.h the
// interface below.
//
//   stillpoint::spht::atomically([&](stillpoint::spht::transaction& tx) {
//       tx.write(from->balance, tx.read(from->balance) - 10);     // nothing is stored before the commit
//       tx.write(to->balance, tx.read(to->balance) + 10);         // the body reads its own writes
//   });                                                           // both are durable here
//
// The body may run several times, so it does nothing that the transaction cannot roll back: other effects belong in on_commit(). A conflict
// leaves the body by an exception of type spht::conflict, which the body lets pass; if it is caught, the next use of the transaction
// throws it again, and the commit runs the body again in any case.
// An exception that leaves a nested atomically() leaves the outermost one too: do not catch it in between.
//
// Threads: any; a transaction belongs to the thread that runs its body. Cost and durability: sp_spht_run.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "stillpoint/spht.h"
#include "stillpoint/stillpoint.h"

namespace stillpoint::spht {

/// Another transaction was in the way: atomically() rolls everything back and runs the body again.
struct conflict final {};

/// A transaction cannot be begun, or cannot become durable. `code` is an sp_error: those of sp_spht_run, and SP_E_ABORTED (cancel()).
class error : public std::runtime_error {
public:
    explicit error(int code) : std::runtime_error(sp_last_error()), code_(code) {}
    [[nodiscard]] int code() const noexcept { return code_; }

private:
    int code_;
};

/// The running transaction of the calling thread, for the body alone: it cannot be copied or kept.
class transaction {
public:
    transaction(const transaction&) = delete;
    transaction& operator=(const transaction&) = delete;

    /// The value of `place`, as of the one moment of all that the transaction reads, or as it has written it. T is trivially copyable, and
    /// `place` aligned as T is. Throws conflict.
    template <class T>
    [[nodiscard]] T read(const T& place)
    {
        static_assert(std::is_trivially_copyable_v<T>, "a transaction reads and writes trivially copyable types");
        T value;
        if constexpr (fits_word<T>) {
            const auto address = reinterpret_cast<std::uintptr_t>(&place);
            std::uint64_t word = 0;
            check(sp_spht_read_word(handle_, reinterpret_cast<const std::uint64_t*>(address & ~std::uintptr_t{7}), &word));
            word >>= address % 8 * 8;
            std::memcpy(static_cast<void*>(&value), &word, sizeof value);
        } else {
            check(sp_spht_read(handle_, &place, &value, sizeof value));
        }
        return value;
    }

    /// `place` gets `value` at the commit. T and `place` as in read(). Throws conflict.
    template <class T>
    void write(T& place, const std::type_identity_t<T>& value)
    {
        static_assert(std::is_trivially_copyable_v<T>, "a transaction reads and writes trivially copyable types");
        if constexpr (fits_word<T>) {
            const auto address = reinterpret_cast<std::uintptr_t>(&place);
            std::uint64_t word = 0;
            std::memcpy(&word, &value, sizeof value);
            constexpr std::uint64_t ones = ~std::uint64_t{0} >> (64 - 8 * sizeof(T));
            const unsigned shift = address % 8 * 8;
            check(
                sp_spht_write_word(handle_, reinterpret_cast<std::uint64_t*>(address & ~std::uintptr_t{7}), word << shift, ones << shift));
        } else {
            check(sp_spht_write(handle_, &place, &value, sizeof value));
        }
    }

    /// Any number of bytes at any address; in `place` as read() and write(), in `value` ordinary memory. Throw conflict.
    void read_bytes(const void* place, void* value, std::size_t bytes) { check(sp_spht_read(handle_, place, value, bytes)); }
    void write_bytes(void* place, const void* value, std::size_t bytes) { check(sp_spht_write(handle_, place, value, bytes)); }

    /// A block of durable memory, free again if the transaction is rolled back. Its content is undefined. Throws std::bad_alloc.
    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t))
    {
        void* const block = sp_spht_aligned_alloc(handle_, alignment < 16 ? 16 : alignment, bytes);
        if (block == nullptr) {
            throw std::bad_alloc();
        }
        return block;
    }
    /// A durable object with this value, in a block of its own. Throws std::bad_alloc, conflict.
    template <class T>
    [[nodiscard]] T* create(const T& value)
    {
        T* const object = static_cast<T*>(allocate(sizeof(T), alignof(T)));
        write(*object, value);
        return object;
    }
    /// Frees a block of durable memory at the commit. No destructor is called. Throws error, if no live block begins there.
    void free(void* block)
    {
        if (const int code = sp_spht_free(handle_, block); code != SP_OK) {
            throw error(code);
        }
    }

    /// `action` is called after the outermost transaction's commit, also where that throws error because the medium has failed. An
    /// exception of it leaves atomically(), after all others were called. Throws error, std::bad_alloc.
    template <class Action>
    void on_commit(Action&& action)
    {
        keep(sp_spht_on_commit, std::forward<Action>(action));
    }
    /// `action` is called after the transaction was rolled back for good, by an exception or by cancel(). Throws error, std::bad_alloc.
    template <class Action>
    void on_abort(Action&& action)
    {
        keep(sp_spht_on_abort, std::forward<Action>(action));
    }

    /// Rolls everything back and runs the body again at once: for a state that another thread is about to change. It does not sleep.
    [[noreturn]] void retry() { throw conflict{}; }
    /// Rolls everything back, the outer transactions too; the outermost atomically() throws error with SP_E_ABORTED.
    [[noreturn]] void cancel() { throw cancelled{}; }

    /// The transaction for the functions of spht.h.
    [[nodiscard]] sp_spht_transaction* handle() const noexcept { return handle_; }

private:
    template <class Body>
    friend auto run_atomically(Body&& body, unsigned flags) -> std::invoke_result_t<Body&, transaction&>;
    struct cancelled final {};
    template <class T>
    static constexpr bool fits_word = sizeof(T) <= 8 && (sizeof(T) & (sizeof(T) - 1)) == 0 && alignof(T) >= sizeof(T);

    explicit transaction(sp_spht_transaction* handle) noexcept : handle_(handle) {}

    static void check(int code)
    {
        if (code != SP_OK) [[unlikely]] {
            throw conflict{};
        }
    }

    /// The first exception of an action, until all were called.
    static std::exception_ptr& thrown() noexcept
    {
        static thread_local std::exception_ptr first;
        return first;
    }
    template <class Give, class Action>
    void keep(Give give, Action&& action)
    {
        using Kept = std::decay_t<Action>;
        auto kept = std::make_shared<Kept>(std::forward<Action>(action));
        auto* const holder = new std::shared_ptr<Kept>(kept);
        const auto call = [](void* argument) {
            const std::unique_ptr<std::shared_ptr<Kept>> own(static_cast<std::shared_ptr<Kept>*>(argument));
            try {
                (**own)();
            } catch (...) {
                if (thrown() == nullptr) {
                    thrown() = std::current_exception();
                }
            }
        };
        if (const int code = give(handle_, call, holder); code != SP_OK) {
            delete holder;
            throw error(code);
        }
    }

    sp_spht_transaction* handle_;
};

/// Does the work of atomically().
template <class Body>
auto run_atomically(Body&& body, unsigned flags) -> std::invoke_result_t<Body&, transaction&>
{
    using Value = std::invoke_result_t<Body&, transaction&>;
    const bool nested = sp_spht_current() != nullptr;
    while (true) {
        int code = SP_OK;
        transaction tx(sp_spht_begin(flags, &code));
        if (tx.handle_ == nullptr) {
            throw error(code);
        }
        const auto end = [&](int wanted) {
            code = wanted;
            if (auto first = std::exchange(transaction::thrown(), nullptr); first != nullptr) {
                std::rethrow_exception(first);
            }
        };
        try {
            if constexpr (std::is_void_v<Value>) {
                body(tx);
                end(sp_spht_commit(tx.handle_));
                if (code == SP_OK) {
                    return;
                }
            } else {
                Value value = body(tx);
                end(sp_spht_commit(tx.handle_));
                if (code == SP_OK) {
                    return value;
                }
            }
        } catch (const conflict&) {
            if (nested) {
                throw;
            }
            sp_spht_abort(tx.handle_, 1);
            continue;
        } catch (const transaction::cancelled&) {
            if (nested) {
                throw;
            }
            end(sp_spht_abort(tx.handle_, 0));
            throw error(SP_E_ABORTED);
        } catch (...) {
            if (!nested && sp_spht_current() == tx.handle_) {
                sp_spht_abort(tx.handle_, 0);
            }
            throw;
        }
        if (code != SP_E_CONFLICT) {
            throw error(code);
        }
        if (nested) {
            throw conflict{};
        }
    }
}

/// Runs body(transaction&) until it commits, and returns what the body returns: durable, at the pool's durability level. `flags`:
/// SP_SPHT_… . Inside another transaction of the thread it is a part of that one, and `flags` do not count. An exception that leaves the
/// outermost body rolls everything back and passes on. Throws error.
template <class Body>
auto atomically(Body&& body, unsigned flags = 0) -> std::invoke_result_t<Body&, transaction&>
{
    return run_atomically(std::forward<Body>(body), flags);
}

}  // namespace stillpoint::spht
