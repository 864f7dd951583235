#pragma once
// Errors by value. A Failure carries a public code, the system's errno and one clear message,
// in a fixed buffer: no code path that reports a failure calls malloc.

#include <cstddef>
#include <cstring>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

#include <fmt/core.h>  // Not format.h: that costs seconds in each file. text.cpp has the one copy of it.

#include "stillpoint/error.h"

namespace stillpoint {

struct Failure {
    static constexpr std::size_t message_bytes_max = 511;

    sp_error code = SP_OK;
    int os_error = 0;  ///< errno of the refused system call, 0 where there was none.
    char message[message_bytes_max + 1] = {};

    constexpr Failure() = default;
    /// Copies the text alone and not the whole buffer. That these are not trivial also makes a Result that holds no failure copy none.
    Failure(const Failure& other) noexcept { *this = other; }
    Failure& operator=(const Failure& other) noexcept
    {
        code = other.code;
        os_error = other.os_error;
        std::memmove(message, other.message, std::strlen(other.message) + 1);
        return *this;
    }
    ~Failure() = default;

    [[nodiscard]] std::string_view text() const noexcept { return message; }
};

/// Success is one byte. The library's own class fills the room for a failure with zeroes whenever `{}` is returned, which took a
/// fifth of the time of a small durable operation.
class VoidResult : public tl::expected<void, Failure> {
public:
    using tl::expected<void, Failure>::expected;
    constexpr VoidResult() noexcept {}  // NOLINT(modernize-use-equals-default): a defaulted one fills with zeroes.
};

template <class T>
struct ResultOf {
    using Type = tl::expected<T, Failure>;
};
template <>
struct ResultOf<void> {
    using Type = VoidResult;
};
template <class T>
using Result = typename ResultOf<T>::Type;

/// Makes a Failure. The message says what is wrong and what to do next; it names the file
/// and offset where there is one. A longer text than the buffer is cut.
template <class... Args>
[[nodiscard]] tl::unexpected<Failure> fail(sp_error code, int os_error, fmt::format_string<Args...> format, Args&&... args)
{
    Failure failure;
    failure.code = code;
    failure.os_error = os_error;
    const auto end = fmt::format_to_n(failure.message, Failure::message_bytes_max, format, std::forward<Args>(args)...);
    *end.out = '\0';
    return tl::unexpected<Failure>(failure);
}

/// Passes a failure of one Result type on as another's.
[[nodiscard]] inline tl::unexpected<Failure> pass_on(const Failure& failure) { return tl::unexpected<Failure>(failure); }

}  // namespace stillpoint
