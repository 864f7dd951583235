#pragma once
// Memory models: what a workload's durable memory is made of, so that each is written once and runs on every engine.
//
// A workload is a template over one. What it overwrites while it is part of the state is a Field; what it fills before any thread finds
// it, and never again, is plain. stored() follows each store to Fields, and filled() each filling of plain members.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>

#include "core/units.hpp"
#include "stillpoint/nvhooks.h"
#include "stillpoint/respct.hpp"
#include "stillpoint/stillpoint.h"

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

    template <class T>
    [[nodiscard]] static T* root(const char* handle)
    {
        return static_cast<T*>(sp_respct_root(handle, &respct::layout_of<T>(), 1));
    }
};

}  // namespace stillpoint::explorer
