#pragma once
// Writes JSON, the output of --json: objects, arrays and scalars, on one line.

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace stillpoint::tool {

/// Collects one JSON value. begin/end calls must pair; keys are given inside objects only.
class Json {
public:
    Json& begin_object(std::string_view key = {}) { return open(key, '{'); }
    Json& end_object() { return shut('}'); }
    Json& begin_array(std::string_view key = {}) { return open(key, '['); }
    Json& end_array() { return shut(']'); }

    Json& text(std::string_view key, std::string_view value);
    /// A name without a key: an element of an array.
    Json& element(std::string_view value);
    Json& boolean(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
    template <class Number>
        requires std::is_arithmetic_v<Number> && (!std::is_same_v<Number, bool>)
    Json& number(std::string_view key, Number value)
    {
        return raw(key, std::to_string(value));
    }

    [[nodiscard]] const std::string& str() const& { return text_; }
    [[nodiscard]] std::string str() && { return std::move(text_); }

private:
    Json& open(std::string_view key, char bracket);
    Json& shut(char bracket);
    Json& raw(std::string_view key, std::string_view value);
    void begin_value(std::string_view key);

    std::string text_;
};

}  // namespace stillpoint::tool
