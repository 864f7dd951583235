#include "protocol.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <iterator>

namespace bench {

namespace {

/// Any mixing will do that makes two updates differ in every word.
std::uint64_t filling(std::uint64_t key, std::uint64_t version) noexcept
{
    std::uint64_t word = (key + 1) * 0x9e3779b97f4a7c15u ^ (version + 1) * 0xbf58476d1ce4e5b9u;
    word ^= word >> 29;
    return word | 1;  // never the zeroes of fresh memory
}

/// Calls visit(offset, bytes) for each word after the first two; the last one may be shorter.
template <class Visit>
void for_each_word(std::size_t value_bytes, Visit visit)
{
    for (std::size_t at = value_bytes_min; at < value_bytes; at += sizeof(std::uint64_t)) {
        visit(at, std::min(sizeof(std::uint64_t), value_bytes - at));
    }
}

Reply wrong(std::string_view what, std::string_view line)
{
    std::string shown;
    for (const char c : line.substr(0, 80)) {
        shown += c >= ' ' && c < 0x7f ? c : '?';
    }
    return {Reply::Kind::wrong, 0, fmt::format("{}: \"{}\"", what, shown)};
}

/// A hit: the line that announces the value, the value, and what ends it.
Reply parse_value(std::string_view input, std::size_t line_bytes, std::string_view end, const Request& request, std::size_t value_bytes)
{
    const std::size_t whole = line_bytes + value_bytes + end.size();
    if (input.size() < whole) {
        return {};
    }
    const std::string_view value = input.substr(line_bytes, value_bytes);
    if (const char* const fault = fault_of_value(value, request.key); fault != nullptr) {
        return wrong(fmt::format("the value of key-{:08d} {}", request.key, fault), value);
    }
    if (input.substr(line_bytes + value_bytes, end.size()) != end) {
        return wrong("a value does not end where it should", input.substr(line_bytes + value_bytes, end.size()));
    }
    return {Reply::Kind::hit, whole, {}};
}

}  // namespace

void write_value(std::span<char> value, std::uint32_t key, std::uint64_t version) noexcept
{
    const std::uint64_t head[2] = {key, version};
    static_assert(sizeof head == value_bytes_min);
    std::memcpy(value.data(), head, sizeof head);
    const std::uint64_t word = filling(key, version);
    for_each_word(value.size(), [&](std::size_t at, std::size_t bytes) { std::memcpy(value.data() + at, &word, bytes); });
}

const char* fault_of_value(std::string_view value, std::uint32_t key) noexcept
{
    std::uint64_t head[2];
    if (value.size() < sizeof head) {
        return "is too short";
    }
    std::memcpy(head, value.data(), sizeof head);
    if (head[0] != key) {
        return "is of another key";
    }
    const std::uint64_t word = filling(key, head[1]);
    int difference = 0;
    for_each_word(value.size(), [&](std::size_t at, std::size_t bytes) { difference |= std::memcmp(value.data() + at, &word, bytes); });
    return difference == 0 ? nullptr : "is not whole: it is a mix of two values, or damaged";
}

void append_request(std::string& out, Protocol protocol, const Request& request, std::size_t value_bytes, std::uint64_t version)
{
    const auto to = std::back_inserter(out);
    const bool is_text = protocol == Protocol::text;
    if (!request.is_update) {
        is_text ? fmt::format_to(to, "get key-{:08d}\r\n", request.key) : fmt::format_to(to, "mg key-{:08d} k v\r\n", request.key);
        return;
    }
    is_text ? fmt::format_to(to, "set key-{:08d} 0 0 {}\r\n", request.key, value_bytes)
            : fmt::format_to(to, "ms key-{:08d} {}\r\n", request.key, value_bytes);
    const std::size_t begin = out.size();
    out.resize(begin + value_bytes);
    write_value({out.data() + begin, value_bytes}, request.key, version);
    out += "\r\n";
}

Reply parse_reply(std::string_view input, Protocol protocol, const Request& request, std::size_t value_bytes)
{
    const std::size_t end = input.substr(0, line_bytes_max).find("\r\n");
    if (end == std::string_view::npos) {
        return input.size() < line_bytes_max ? Reply{} : wrong("a reply has no end", input);
    }
    const std::string_view line = input.substr(0, end);
    const std::size_t line_bytes = end + 2;
    const bool is_text = protocol == Protocol::text;
    if (request.is_update) {
        return line == (is_text ? "STORED" : "HD") ? Reply{Reply::Kind::stored, line_bytes, {}}
                                                   : wrong(fmt::format("key-{:08d} was not stored", request.key), line);
    }
    if (line == (is_text ? "END" : "EN")) {
        return {Reply::Kind::miss, line_bytes, {}};
    }
    char wanted[64];
    const auto written = is_text ? fmt::format_to_n(wanted, sizeof wanted, "VALUE key-{:08d} 0 {}", request.key, value_bytes)
                                 : fmt::format_to_n(wanted, sizeof wanted, "VA {} kkey-{:08d}", value_bytes, request.key);
    if (line != std::string_view(wanted, written.size)) {
        return wrong(fmt::format("key-{:08d} with {} bytes was asked for, and the reply begins", request.key, value_bytes), line);
    }
    return parse_value(input, line_bytes, is_text ? "\r\nEND\r\n" : "\r\n", request, value_bytes);
}

}  // namespace bench
