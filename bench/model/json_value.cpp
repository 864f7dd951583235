#include "json_value.hpp"

#include <cctype>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <fmt/format.h>

namespace bench::model {
namespace {

constexpr int depth_max = 20;

class Reader {
public:
    explicit Reader(std::string_view text) : text_(text) {}

    JsonValue whole()
    {
        JsonValue value = any(0);
        skip_space();
        if (at_ != text_.size()) {
            refuse("text after the end of the value");
        }
        return value;
    }

private:
    [[noreturn]] void refuse(std::string_view why) const { throw std::runtime_error(fmt::format("not JSON at byte {}: {}", at_, why)); }

    void skip_space()
    {
        while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) {
            ++at_;
        }
    }

    /// The next character that is not space, 0 at the end.
    char next()
    {
        skip_space();
        return at_ < text_.size() ? text_[at_] : '\0';
    }

    bool take(char wanted)
    {
        if (next() != wanted) {
            return false;
        }
        ++at_;
        return true;
    }

    void expect(char wanted)
    {
        if (!take(wanted)) {
            refuse(fmt::format("expected '{}'", wanted));
        }
    }

    JsonValue any(int depth)
    {
        if (depth > depth_max) {
            refuse("nested too deeply");
        }
        switch (next()) {
        case '{': return object(depth);
        case '[': return array(depth);
        case '"': return JsonValue(string());
        default: return JsonValue(number());
        }
    }

    JsonValue object(int depth)
    {
        JsonValue::Object members;
        expect('{');
        while (!take('}')) {
            if (!members.empty()) {
                expect(',');
            }
            if (next() != '"') {
                refuse("expected a name in quotation marks");
            }
            std::string name = string();
            expect(':');
            if (!members.emplace(std::move(name), any(depth + 1)).second) {
                refuse("a name that this object has already");
            }
        }
        return JsonValue(std::move(members));
    }

    JsonValue array(int depth)
    {
        JsonValue::Array values;
        expect('[');
        while (!take(']')) {
            if (!values.empty()) {
                expect(',');
            }
            values.push_back(any(depth + 1));
        }
        return JsonValue(std::move(values));
    }

    std::string string()
    {
        std::string found;
        expect('"');
        while (at_ < text_.size() && text_[at_] != '"') {
            if (text_[at_] == '\\') {
                ++at_;
                if (at_ == text_.size() || std::string_view("\"\\/").find(text_[at_]) == std::string_view::npos) {
                    refuse("an escape other than \\\" \\\\ \\/");
                }
            }
            found.push_back(text_[at_++]);
        }
        if (at_ == text_.size()) {
            refuse("a string without an end");
        }
        ++at_;
        return found;
    }

    double number()
    {
        double value = 0;
        const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
        if (error != std::errc{} || !std::isfinite(value)) {
            refuse("expected a number, a string, an array or an object");
        }
        at_ = static_cast<std::size_t>(end - text_.data());
        return value;
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace

void JsonValue::expect(Kind kind, std::string_view what) const
{
    constexpr const char* names[] = {"a number", "a text", "an array", "an object"};
    if (kind_ != kind) {
        throw std::runtime_error(fmt::format("{} is not {}", what, names[static_cast<std::size_t>(kind)]));
    }
}

double JsonValue::number(std::string_view what) const
{
    expect(Kind::number, what);
    return number_;
}

const std::string& JsonValue::text(std::string_view what) const
{
    expect(Kind::text, what);
    return text_;
}

const JsonValue::Array& JsonValue::array(std::string_view what) const
{
    expect(Kind::array, what);
    return array_;
}

const JsonValue::Object& JsonValue::object(std::string_view what) const
{
    expect(Kind::object, what);
    return object_;
}

const JsonValue& JsonValue::member(std::string_view name) const
{
    const Object& members = object(name);
    const auto found = members.find(name);
    if (found == members.end()) {
        throw std::runtime_error(fmt::format("\"{}\" is missing", name));
    }
    return found->second;
}

JsonValue parse_json(std::string_view text) { return Reader(text).whole(); }

JsonValue read_json_file(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file) {
        throw std::runtime_error(fmt::format("{} cannot be read", path));
    }
    try {
        return parse_json(text);
    } catch (const std::runtime_error& error) {
        throw std::runtime_error(fmt::format("{}: {}", path, error.what()));
    }
}

std::string quoted(std::string_view text)
{
    std::string out = "\"";
    for (const char letter : text) {
        if (letter == '"' || letter == '\\') {
            out.push_back('\\');
        }
        if (static_cast<unsigned char>(letter) >= 0x20) {
            out.push_back(letter);
        }
    }
    return out + "\"";
}

}  // namespace bench::model
