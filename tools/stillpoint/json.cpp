#include "json.hpp"

#include "output.hpp"
#include "utf8.hpp"

namespace stillpoint::tool {

namespace {

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
