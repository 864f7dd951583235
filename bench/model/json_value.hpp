#pragma once
// A reader for the small JSON files that describe machines, workloads and measurements. Strict: what it does not know is an error that
// names the file's text and the place in it.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench::model {

class JsonValue {
public:
    using Array = std::vector<JsonValue>;
    using Object = std::map<std::string, JsonValue, std::less<>>;

    explicit JsonValue(double value) : kind_(Kind::number), number_(value) {}
    explicit JsonValue(std::string value) : kind_(Kind::text), text_(std::move(value)) {}
    explicit JsonValue(Array values) : kind_(Kind::array), array_(std::move(values)) {}
    explicit JsonValue(Object members) : kind_(Kind::object), object_(std::move(members)) {}

    /// These throw std::runtime_error where the value is of another kind, or has no such member; `what` names it in the message.
    [[nodiscard]] double number(std::string_view what) const;
    [[nodiscard]] const std::string& text(std::string_view what) const;
    [[nodiscard]] const Array& array(std::string_view what) const;
    [[nodiscard]] const Object& object(std::string_view what) const;
    [[nodiscard]] const JsonValue& member(std::string_view name) const;

private:
    enum class Kind : std::uint8_t { number, text, array, object };

    void expect(Kind kind, std::string_view what) const;

    Kind kind_;
    double number_ = 0;
    std::string text_;
    Array array_;
    Object object_;
};

/// Throws std::runtime_error with the offset of what is wrong.
[[nodiscard]] JsonValue parse_json(std::string_view text);
/// Parses a file; messages name it.
[[nodiscard]] JsonValue read_json_file(const std::string& path);

/// As a string of JSON, with its quotation marks.
[[nodiscard]] std::string quoted(std::string_view text);

}  // namespace bench::model
