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
// A nested atomically() is a part of the outer one: an exception that leaves it, and that the outer body catches, rolls nothing back.
//
// Threads: any; a transaction belongs to the thread that runs its body. Cost and durability: sp_spht_run.

#if __cplusplus < 202002L
#error "Stillpoint's C++ headers need C++20: compile with -std=c++20 or a later standard"
#else

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "stillpoint/spht.h"
#include "stillpoint/spht_read_view.hpp"
#include "stillpoint/stillpoint.h"

namespace stillpoint::spht {

/// Another transaction was in the way: atomically() rolls everything back and runs the body again.
struct conflict final {};

/// A transaction cannot be begun, or cannot become durable. `code` is an sp_error: those of sp_spht_run, and SP_E_ABORTED (cancel()).
class error : public std::runtime_error {
public:
    explicit error(int code) : std::runtime_error(code == SP_E_ABORTED ? sp_error_string(code) : sp_last_error()), code_(code) {}
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
        if constexpr (fits_word<T> && sizeof(T) == 8) {
            const std::uint64_t word = read_word(reinterpret_cast<const std::uint64_t*>(&place));
            std::memcpy(static_cast<void*>(&value), &word, sizeof value);
        } else if constexpr (fits_word<T>) {
            const auto address = reinterpret_cast<std::uintptr_t>(&place);
            std::uint64_t word = read_word(reinterpret_cast<const std::uint64_t*>(address & ~std::uintptr_t{7}));
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
        if constexpr (fits_word<T> && sizeof(T) == 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, &value, sizeof value);
            check(sp_spht_write_word(handle_, reinterpret_cast<std::uint64_t*>(&place), word, ~std::uint64_t{0}));
        } else if constexpr (fits_word<T>) {
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
    void read_bytes(const void* place, void* value, std::size_t bytes)
    {
        if (bytes == 8 && reinterpret_cast<std::uintptr_t>(place) % 8 == 0) {
            const std::uint64_t word = read_word(static_cast<const std::uint64_t*>(place));
            std::memcpy(value, &word, sizeof word);
        } else {
            check(sp_spht_read(handle_, place, value, bytes));
        }
    }
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

    /// `action` is called once after the outermost transaction's commit, when it is durable: not where atomically() throws. An exception of
    /// it leaves atomically(), after all others were called. Throws std::bad_alloc.
    template <class Action>
    void on_commit(Action&& action)
    {
        attempt_.actions().on_commit.emplace_back(std::forward<Action>(action));
    }
    /// `action` is called after the transaction was rolled back for good, by an exception or by cancel(). Throws std::bad_alloc.
    template <class Action>
    void on_abort(Action&& action)
    {
        attempt_.actions().on_abort.emplace_back(std::forward<Action>(action));
    }

    /// Rolls everything back and runs the body again at once: for a state that another thread is about to change. It does not sleep.
    [[noreturn]] void retry()
    {
        attempt_.ending = ending_kind::again;
        throw conflict{};
    }
    /// Rolls everything back, the outer transactions too; the outermost atomically() throws error with SP_E_ABORTED.
    [[noreturn]] void cancel()
    {
        attempt_.ending = ending_kind::cancelled;
        throw cancelled{};
    }

    /// The transaction for the functions of spht.h.
    [[nodiscard]] sp_spht_transaction* handle() const noexcept { return handle_; }

private:
    template <class Body>
    friend auto run_atomically(Body&& body, unsigned flags) -> std::invoke_result_t<Body&, transaction&>;
    struct cancelled final {};
    enum class ending_kind { commit, again, cancelled };
    /// One run of the outermost body. What a body throws on its way out may be caught; what it wants is kept here.
    struct attempt {
        struct wanted {
            std::vector<std::function<void()>> on_commit;
            std::vector<std::function<void()>> on_abort;
        };
        [[nodiscard]] wanted& actions()
        {
            if (kept == nullptr) {
                kept = std::make_unique<wanted>();
            }
            return *kept;
        }
        void committed()
        {
            if (kept != nullptr) [[unlikely]] {
                call(std::move(kept->on_commit));
            }
        }
        void aborted()
        {
            if (kept != nullptr) [[unlikely]] {
                call(std::move(kept->on_abort));
            }
        }

        ending_kind ending = ending_kind::commit;
        std::unique_ptr<wanted> kept;  ///< nullptr: there are no actions
    };
    template <class T>
    static constexpr bool fits_word = sizeof(T) <= 8 && (sizeof(T) & (sizeof(T) - 1)) == 0 && alignof(T) >= sizeof(T);

    transaction(sp_spht_transaction* handle, attempt& its_attempt) noexcept : handle_(handle), attempt_(its_attempt) {}

    /// That of the thread's outermost transaction; nullptr: it is in none.
    static attempt*& outermost() noexcept
    {
        static thread_local attempt* own = nullptr;
        return own;
    }
    [[nodiscard, gnu::always_inline]] std::uint64_t read_word(const std::uint64_t* word)
    {
        std::uint64_t value = 0;
#ifndef STILLPOINT_LINT  // The view would look like plain reads.
        if (reinterpret_cast<read_view*>(handle_)->try_read(word, value)) {
            return value;
        }
#endif
        check(sp_spht_read_word(handle_, word, &value));
        return value;
    }
    static void check(int code)
    {
        if (code == SP_OK) [[likely]] {
            return;
        }
        if (code != SP_E_CONFLICT) {
            throw error(code);
        }
        throw conflict{};
    }
    /// Calls all, and throws the first exception again.
    static void call(std::vector<std::function<void()>> actions)
    {
        std::exception_ptr first;
        for (const std::function<void()>& action : actions) {
            try {
                action();
            } catch (...) {
                first = first == nullptr ? std::current_exception() : first;
            }
        }
        if (first != nullptr) {
            std::rethrow_exception(first);
        }
    }

    /// A part of the outer transaction, which ends it.
    template <class Body>
    static auto run_inside(Body& body, attempt& outer, unsigned flags) -> std::invoke_result_t<Body&, transaction&>
    {
        int code = SP_OK;
        struct Part {
            sp_spht_transaction* handle;
            ~Part() { static_cast<void>(sp_spht_commit(handle)); }
        };
        const Part part{sp_spht_begin(flags, &code)};
        if (part.handle == nullptr) {
            throw error(code);
        }
        transaction tx(part.handle, outer);
        return body(tx);
    }

    /// One attempt of the outermost body. Throws conflict: again.
    template <class Body>
    static auto run_once(Body& body, unsigned flags) -> std::invoke_result_t<Body&, transaction&>
    {
        using Value = std::invoke_result_t<Body&, transaction&>;
        int code = SP_OK;
        sp_spht_transaction* const handle = sp_spht_begin(flags, &code);
        if (handle == nullptr) {
            throw error(code);
        }
        attempt own;
        struct Outermost {
            explicit Outermost(attempt& its_attempt) noexcept { outermost() = &its_attempt; }
            ~Outermost() { outermost() = nullptr; }
        };
        transaction tx(handle, own);
        const auto finish = [&] {
            if (own.ending == ending_kind::again) {
                throw conflict{};
            }
            if (own.ending == ending_kind::cancelled) {
                throw cancelled{};
            }
            const int committed = sp_spht_commit(handle);
            if (committed == SP_E_TRANSACTION_TOO_LARGE) {
                own.aborted();
            }
            check(committed);
        };
        try {
            if constexpr (std::is_void_v<Value>) {
                {
                    const Outermost here(own);
                    body(tx);
                }
                finish();
                own.committed();
                return;
            } else {
                Value value = [&]() -> Value {
                    const Outermost here(own);
                    return body(tx);
                }();
                finish();
                own.committed();
                return value;
            }
        } catch (const conflict&) {
            static_cast<void>(sp_spht_abort(handle, 1));
            throw;
        } catch (const cancelled&) {
            static_cast<void>(sp_spht_abort(handle, 0));
            own.aborted();
            throw error(SP_E_ABORTED);
        } catch (...) {
            if (sp_spht_current() == handle) {
                static_cast<void>(sp_spht_abort(handle, 0));
                own.aborted();
            }
            throw;
        }
    }

    sp_spht_transaction* handle_;
    attempt& attempt_;
};

/// Does the work of atomically().
template <class Body>
auto run_atomically(Body&& body, unsigned flags) -> std::invoke_result_t<Body&, transaction&>
{
    if (transaction::attempt* const outer = transaction::outermost(); outer != nullptr) {
        return transaction::run_inside(body, *outer, flags);
    }
    while (true) {
        try {
            return transaction::run_once(body, flags);
        } catch (const conflict&) {
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

#endif
