#pragma once
// For tests: a durable object that adds numbers up, and one operation on it through the C interface.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <new>
#include <stdexcept>

#include "stillpoint/pronto.h"
#include "stillpoint/stillpoint.h"

namespace stillpoint::pronto {

/// Adds numbers up; the bytes after a number are ballast that must come back as they were.
struct Sum {
    std::uint64_t count;
    std::uint64_t total;
    std::uint64_t ballast;  ///< a sum over all bytes of ballast
    std::uint64_t from_elsewhere;
};

inline std::uint64_t outside = 0;  ///< what an operation must not depend on

inline void add_to(Sum& sum, const std::byte* arguments, std::size_t bytes)
{
    std::uint64_t number = 0;
    std::memcpy(&number, arguments, sizeof number);
    ++sum.count;
    sum.total += number;
    for (std::size_t i = sizeof number; i < bytes; ++i) {
        sum.ballast += static_cast<std::uint8_t>(arguments[i]);
    }
}

inline int replay_add(void* object, const void* arguments, std::size_t bytes)
{
    add_to(*static_cast<Sum*>(object), static_cast<const std::byte*>(arguments), bytes);
    return SP_OK;
}

inline int replay_peek(void* object, const void*, std::size_t)
{
    static_cast<Sum*>(object)->from_elsewhere = outside;
    return SP_OK;
}

inline int replay_nothing(void*, const void*, std::size_t) { return SP_OK; }

inline void construct(void* memory, const void*, std::size_t) { new (memory) Sum{}; }
inline void destroy(void*) {}
inline int equal(const void* one, const void* other) { return std::memcmp(one, other, sizeof(Sum)) == 0 ? 1 : 0; }

enum Method : std::uint32_t { add, add_or_throw, peek };

inline constexpr sp_pronto_method sum_methods[] = {{"add", "(u64)", 0, &replay_add},
                                                   {"add_or_throw", "(u64)", SP_PRONTO_UNCHANGED_BY_EXCEPTION, &replay_add},
                                                   {"peek", "()", 0, &replay_peek}};
inline constexpr sp_pronto_type sum_type{"sum",      sizeof(Sum), alignof(Sum), sum_methods, std::size(sum_methods),
                                         &construct, &destroy,    &equal};

inline Sum& open_sum(const char* name = "sum", const sp_pronto_type& type = sum_type)
{
    static_cast<void>(sp_pronto_register(&type));
    void* const object = sp_pronto_object(&type, name, 0, nullptr, 0, nullptr);
    if (object == nullptr) {
        throw std::runtime_error(sp_last_error());
    }
    return *static_cast<Sum*>(object);
}

/// One operation, begun, done and committed; `inside` runs before the commit.
inline int do_add(Sum& sum, std::uint64_t number, std::size_t ballast = 0, std::uint32_t method = add,
                  const std::function<void()>& inside = {})
{
    sp_pronto_operation operation;
    int error = SP_OK;
    auto* const place = static_cast<std::byte*>(sp_pronto_begin(&operation, &sum, method, sizeof number + ballast, &error));
    if (place == nullptr) {
        return error;
    }
    std::memcpy(place, &number, sizeof number);
    std::memset(place + sizeof number, static_cast<int>(number % 251), ballast);
    sp_pronto_start_logging(&operation);
    try {
        add_to(sum, place, sizeof number + ballast);
        if (inside) {
            inside();
        }
    } catch (...) {
        static_cast<void>(sp_pronto_end(&operation, 1));
        throw;
    }
    const int committed = sp_pronto_commit(&operation);
    const int ended = sp_pronto_end(&operation, 0);
    return committed != SP_OK ? committed : ended;
}

}  // namespace stillpoint::pronto
