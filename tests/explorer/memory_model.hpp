#pragma once
// Memory models: what a workload's durable memory is made of, so that each is written once and runs on every engine.
//
// A workload is a template over one. What it overwrites while it is part of the state is a Field; what it fills before any thread finds
// it, and never again, is plain. stored() follows each store to Fields, and filled() each filling of plain members.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>

#include "core/units.hpp"
#include "stillpoint/nvhooks.h"
#include "stillpoint/respct.hpp"
#include "stillpoint/stillpoint.h"
#include "transactional_field.hpp"

namespace stillpoint::explorer {

/// For engines that find what was stored, by page or by the compiler's marks: ordinary memory, FASEs.
struct PlainMemory {
    template <class T>
    using Field = T;
    /// Runs of Fields that one type may have.
    static constexpr std::size_t runs_max = std::numeric_limits<std::size_t>::max();

    static void begin_operation() { sp_fase_begin(); }
    static void end_operation() { sp_fase_end(); }

    /// The store, told as the compiler's pass would; no more than it, or a missing mark of the library would not show.
    template <class T>
    static void stored(const T& object) noexcept
    {
        sp_mark_written(&object, sizeof object);
    }
    template <class T>
    static void filled(const T& object) noexcept
    {
        sp_mark_written(&object, sizeof object);
    }
    static void filled(const void* memory, std::size_t size) noexcept { sp_mark_written(memory, size); }

    /// A new object; only its Fields are anything yet. Throws bad_alloc, as all that make one.
    template <class T>
    [[nodiscard]] static T* make()
    {
        return static_cast<T*>(allocated(sp_malloc(sizeof(T))));
    }
    template <class T>
    [[nodiscard]] static T* make_zeroed(std::size_t count = 1)
    {
        return static_cast<T*>(allocated(sp_calloc(count, sizeof(T))));
    }
    /// A new object without Fields, of old bytes.
    template <class T>
    [[nodiscard]] static T* make_unset()
    {
        return make<T>();
    }
    static void destroy(void* object) { sp_free(object); }

    // Blocks without a type.
    [[nodiscard]] static std::byte* allocate_bytes(std::size_t size) { return static_cast<std::byte*>(allocated(sp_malloc(size))); }
    [[nodiscard]] static std::byte* resize_bytes(std::byte* block, std::size_t size)
    {
        return static_cast<std::byte*>(allocated(sp_realloc(block, size)));
    }
    static void free_bytes(std::byte* block) { sp_free(block); }

    /// The named object; zeroes at first. nullptr: sp_last_error().
    template <class T>
    [[nodiscard]] static T* root(const char* handle)
    {
        return static_cast<T*>(sp_root(handle, sizeof(T)));
    }

private:
    [[nodiscard]] static void* allocated(void* block)
    {
        if (block == nullptr) {
            throw std::bad_alloc();
        }
        return block;
    }
};

/// For engines that are told: logged variables, restart points, lines added by hand.
struct LoggedMemory {
    template <class T>
    using Field = respct::logged<T>;
    static constexpr std::size_t runs_max = 24;

    static void begin_operation() {}
    static void end_operation() { respct::RP(1); }

    template <class T>
    static void stored(const T&) noexcept
    {
    }
    template <class T>
    static void filled(const T& object) noexcept
    {
        respct::add_modified(object);
    }
    static void filled(const void* memory, std::size_t size) noexcept { respct::add_modified(memory, size); }

    template <class T>
    [[nodiscard]] static T* make()
    {
        return respct::make<T>();
    }
    template <class T>
    [[nodiscard]] static T* make_zeroed(std::size_t count = 1)
    {
        return respct::make_zeroed_array<T>(count);
    }
    template <class T>
    [[nodiscard]] static T* make_unset()
    {
        void* const place = sp_respct_allocate(&respct::layout_of<T>(), 1);
        if (place == nullptr) {
            throw std::bad_alloc();
        }
        return static_cast<T*>(place);
    }
    template <class T>
    static void destroy(T* object)
    {
        respct::destroy(object);
    }

    [[nodiscard]] static std::byte* allocate_bytes(std::size_t size) { return PlainMemory::allocate_bytes(size); }
    [[nodiscard]] static std::byte* resize_bytes(std::byte* block, std::size_t size) { return PlainMemory::resize_bytes(block, size); }
    static void free_bytes(std::byte* block) { PlainMemory::free_bytes(block); }

    template <class T>
    [[nodiscard]] static T* root(const char* handle)
    {
        return static_cast<T*>(sp_respct_root(handle, &respct::layout_of<T>(), 1));
    }
};

/// For engines with transactions: each operation is one, and what it fills it writes.
struct TransactionalMemory {
    template <class T>
    using Field = TransactionalField<T>;
    static constexpr std::size_t runs_max = std::numeric_limits<std::size_t>::max();

    static void begin_operation() { begin_transaction(); }
    static void end_operation() { commit_transaction(); }

    template <class T>
    static void stored(const T&) noexcept
    {
    }
    template <class T>
    static void filled(const T& object)
    {
        write_what_is_there(&object, sizeof object);
    }
    static void filled(const void* memory, std::size_t size) { write_what_is_there(memory, size); }

    template <class T>
    [[nodiscard]] static T* make()
    {
        return reinterpret_cast<T*>(allocate_bytes(sizeof(T)));
    }
    template <class T>
    [[nodiscard]] static T* make_zeroed(std::size_t count = 1)
    {
        std::byte* const block = allocate_bytes(count * sizeof(T));
        std::memset(block, 0, count * sizeof(T));
        write_what_is_there(block, count * sizeof(T));
        return reinterpret_cast<T*>(block);
    }
    template <class T>
    [[nodiscard]] static T* make_unset()
    {
        return make<T>();
    }
    static void destroy(void* object) { free_in_transaction(object); }

    [[nodiscard]] static std::byte* allocate_bytes(std::size_t size) { return allocate_in_transaction(size); }
    [[nodiscard]] static std::byte* resize_bytes(std::byte* block, std::size_t size)
    {
        // By plain stores: the program fills the block by such next, and a word that it had written in the transaction would win.
        std::byte* const other = allocate_bytes(size);
        const std::size_t kept = std::min(size, sp_usable_size(block));
        read_in_transaction(block, other, kept);
        write_what_is_there(other, kept);
        free_in_transaction(block);
        return other;
    }
    static void free_bytes(std::byte* block) { free_in_transaction(block); }

    template <class T>
    [[nodiscard]] static T* root(const char* handle)
    {
        return PlainMemory::root<T>(handle);
    }
};

}  // namespace stillpoint::explorer
