#pragma once
// memcached's text and meta protocols, as far as the load generator speaks them: get and set of one key, one reply to each.
//
// The items of a run: keys `key-%08d`, whose values tell whose they are and whether they are whole. So a reply that
// belongs to another key, or mixes two updates, is noticed.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace bench {

enum class Protocol { text, meta };

struct Request {
    std::uint32_t key = 0;  ///< below keys_max
    bool is_update = false;
    std::uint64_t intended_ns = 0;  ///< when it should have been sent, on the monotonic clock
};

constexpr std::uint32_t keys_max = 100'000'000;  // eight digits
constexpr std::size_t value_bytes_min = 16;
constexpr std::size_t value_bytes_max = 1000 * 1000;  // below memcached's own limit of 1 MiB for an item
/// The longest line of a reply that is waited for.
constexpr std::size_t line_bytes_max = 512;

/// A value of `key`: its number, `version`, and words that follow from both.
void write_value(std::span<char> value, std::uint32_t key, std::uint64_t version) noexcept;
/// The fault in `value` as a value of `key`; nullptr: none.
[[nodiscard]] const char* fault_of_value(std::string_view value, std::uint32_t key) noexcept;

/// Appends a request to `out`; `version` goes into an update's value.
void append_request(std::string& out, Protocol protocol, const Request& request, std::size_t value_bytes, std::uint64_t version);

struct Reply {
    enum class Kind { incomplete, hit, miss, stored, wrong };

    Kind kind = Kind::incomplete;
    std::size_t bytes = 0;  ///< of the input that it takes up
    std::string fault = {};  ///< of a wrong one: what is wrong with it
};

/// The reply to `request` at the beginning of `input`.
[[nodiscard]] Reply parse_reply(std::string_view input, Protocol protocol, const Request& request, std::size_t value_bytes);

}  // namespace bench
