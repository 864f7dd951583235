#include "json.hpp"

#include "output.hpp"

namespace stillpoint::tool {

namespace {

/// The string as JSON writes it. Bytes above ASCII pass as they are: paths are UTF-8, as a rule.
std::string quoted(std::string_view value)
{
    std::string out = "\"";
    for (const char c : value) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            out += text_of("\\u{:04x}", static_cast<unsigned char>(c));
        } else {
            out += c;
        }
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
