#include "json.hpp"

#include "output.hpp"

namespace stillpoint::tool {

namespace {

/// How many bytes the UTF-8 sequence has that `text` begins with; 0: none that is valid.
std::size_t sequence_bytes(std::string_view text)
{
    const auto byte = [text](std::size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u; };
    const unsigned first = byte(0);
    const std::size_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    for (std::size_t at = 1; at < length; ++at) {
        if ((byte(at) & 0xc0) != 0x80) {
            return 0;
        }
    }
    const bool is_overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
    const bool is_no_character = (first == 0xed && byte(1) >= 0xa0) || (first == 0xf4 && byte(1) >= 0x90);
    return is_overlong || is_no_character ? 0 : length;
}

/// The string as JSON writes it. A byte that is no UTF-8, as a path may have, becomes U+FFFD.
std::string quoted(std::string_view value)
{
    std::string out = "\"";
    while (!value.empty()) {
        const char c = value.front();
        const std::size_t length = sequence_bytes(value);
        if (length == 0) {
            out += "\\ufffd";
        } else if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            out += text_of("\\u{:04x}", static_cast<unsigned char>(c));
        } else {
            out += value.substr(0, length);
        }
        value.remove_prefix(length == 0 ? 1 : length);
    }
    return out + "\"";
}

}  // namespace

void Json::begin_value(std::string_view key)
{
    if (!text_.empty() && text_.back() != '{' && text_.back() != '[') {
        text_ += ", ";
    }
    if (!key.empty()) {
        text_ += quoted(key) + ": ";
    }
}

Json& Json::open(std::string_view key, char bracket)
{
    begin_value(key);
    text_ += bracket;
    return *this;
}

Json& Json::shut(char bracket)
{
    text_ += bracket;
    return *this;
}

Json& Json::raw(std::string_view key, std::string_view value)
{
    begin_value(key);
    text_ += value;
    return *this;
}

Json& Json::text(std::string_view key, std::string_view value) { return raw(key, quoted(value)); }

Json& Json::element(std::string_view value) { return raw({}, quoted(value)); }

}  // namespace stillpoint::tool
