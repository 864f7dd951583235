// The objects of a pool whose engine knows their types, from a root, with their fields.

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "command.hpp"
#include "damaged_objects.hpp"
#include "dump.hpp"
#include "json.hpp"
#include "pool_access.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::uint64_t bytes_of_row = 16;
constexpr std::uint64_t objects_default = 1000;

struct Printing {
    const DumpArguments& arguments;
    Json json;
};

std::string_view text_of_target(PointerTarget target)
{
    switch (target) {
    case PointerTarget::none: return "null";
    case PointerTarget::object: return "object";
    case PointerTarget::freed: return "freed";
    case PointerTarget::unknown: break;
    }
    return "unknown";
}

std::string hexadecimal(std::span<const std::byte> bytes, std::string_view separator)
{
    std::string text;
    for (const std::byte one : bytes) {
        text += text.empty() ? "" : separator;
        text += text_of("{:02x}", std::to_integer<unsigned>(one));
    }
    return text;
}

/// The bytes of which the type says nothing; padding is left out where that is known.
std::vector<std::pair<std::uint64_t, std::uint64_t>> data_of(const ShownObject& object)
{
    constexpr std::uint64_t pointer_bytes = sizeof(std::uint64_t);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> known;  // Begin and end.
    for (const ShownPointer& pointer : object.pointers) {
        known.emplace_back(pointer.offset, pointer.offset + pointer_bytes * (pointer.is_weak ? 2 : 1));
    }
    for (const ShownField& field : object.fields) {
        known.emplace_back(field.offset, field.offset + field.bytes);
    }
    std::ranges::sort(known);
    known.emplace_back(object.is_complete ? 0 : object.bytes.size(), object.bytes.size());
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
    std::uint64_t begin = object.is_complete ? object.bytes.size() : 0;
    for (const auto& [from, to] : known) {
        if (from > begin) {
            ranges.emplace_back(begin, from);
        }
        begin = std::max(begin, to);
    }
    return ranges;
}

std::string text_of_pointer(const ShownPointer& pointer)
{
    std::string text = pointer.is_weak ? "~> " : "-> ";
    text += pointer.target == PointerTarget::object ? text_of("object {}", pointer.object) : std::string(text_of_target(pointer.target));
    return pointer.inside == 0 ? text : text + text_of(" + {}", pointer.inside);
}

void print_data(const ShownObject& object, std::uint64_t bytes_max)
{
    std::uint64_t left = bytes_max;
    for (const auto& [begin, end] : data_of(object)) {
        for (std::uint64_t row = begin; row < end && left != 0; row += bytes_of_row) {
            const std::uint64_t count = std::min({bytes_of_row, end - row, left});
            const auto bytes = object.bytes.subspan(row, count);
            std::string characters;
            for (const std::byte one : bytes) {
                const auto character = std::to_integer<unsigned char>(one);
                characters += character >= 0x20 && character < 0x7f ? static_cast<char>(character) : '.';
            }
            print("  {:>6}  {:<47}  |{}|\n", row, hexadecimal(bytes, " "), characters);
            left -= count;
        }
    }
}

void print_object(const ShownObject& object, std::uint64_t bytes_max)
{
    const std::uint64_t elements = object.bytes.size() / object.element_bytes;
    print("object {}  {}{}, {} bytes, {} reference{}, depth {}\n", object.place, printable(object.type),
          elements > 1 ? text_of("[{}]", elements) : "", object.bytes.size(), object.references, object.references == 1 ? "" : "s",
          object.depth);
    for (const ShownPointer& pointer : object.pointers) {
        print("  {:>6}  {} {}\n", pointer.offset, printable(pointer.field), text_of_pointer(pointer));
    }
    std::uint64_t left = bytes_max;
    for (const ShownField& field : object.fields) {
        if (left == 0) {
            return;
        }
        print("  {:>6}  {} = {}\n", field.offset, printable(field.field), printable(field.value));
        left -= std::min(left, field.bytes);
    }
    print_data(object, left);
}

void add_object(Json& json, const ShownObject& object, std::uint64_t bytes_max)
{
    json.begin_object()
        .number("object", object.place)
        .text("type", object.type)
        .number("size_bytes", object.bytes.size())
        .number("element_bytes", object.element_bytes)
        .number("references", object.references)
        .number("depth", object.depth)
        .begin_array("pointers");
    for (const ShownPointer& pointer : object.pointers) {
        json.begin_object()
            .text("field", pointer.field)
            .number("offset", pointer.offset)
            .boolean("weak", pointer.is_weak)
            .text("target", text_of_target(pointer.target));
        if (pointer.target == PointerTarget::object) {
            json.number("object", pointer.object).number("inside", pointer.inside);
        }
        json.end_object();
    }
    json.end_array().begin_array("fields");
    std::uint64_t left = bytes_max;
    for (const ShownField& field : object.fields) {
        if (left != 0) {
            json.begin_object().text("field", field.field).number("offset", field.offset).text("value", field.value).end_object();
        }
        left -= std::min(left, field.bytes);
    }
    json.end_array().begin_array("data");
    for (const auto& [begin, end] : data_of(object)) {
        const std::uint64_t count = std::min(end - begin, left);
        if (count != 0) {
            json.begin_object().number("offset", begin).text("bytes", hexadecimal(object.bytes.subspan(begin, count), "")).end_object();
        }
        left -= count;
    }
    json.end_array().end_object();
}

void show(void* context, const ShownObject& object)
{
    Printing& printing = *static_cast<Printing*>(context);
    if (printing.arguments.json) {
        add_object(printing.json, object, printing.arguments.bytes);
    } else {
        print_object(object, printing.arguments.bytes);
    }
}

/// The number of an object; nullopt: the text is none.
std::optional<std::uint64_t> object_number(const std::string& text)
{
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return text.empty() || (error == std::errc() && end == text.data() + text.size()) ? std::optional(number) : std::nullopt;
}

}  // namespace

int dump_objects(const DumpArguments& arguments, const OpenedPool& opened)
{
    if (!arguments.program.empty() || !arguments.types.empty()) {
        return report_error(exit_codes::usage,
                            text_of("{}: pools of {} have the types of their objects in them: leave --program and --type out",
                                    arguments.path, opened.driver->format.name));
    }
    const auto root = object_number(arguments.root);
    if (!root) {
        return report_error(exit_codes::usage, text_of("--root: \"{}\" is not a whole number", arguments.root));
    }
    Printing printing{arguments, {}};
    if (arguments.json) {
        printing.json.begin_object().text("pool", arguments.path).text("engine", opened.driver->format.name).begin_array("objects");
    }
    DamagedObjects damaged;
    const std::uint64_t limit = arguments.limit.value_or(objects_default);
    const ObjectRequest request{*root, limit == 0 ? UINT64_MAX : limit, arguments.depth.value_or(UINT64_MAX)};
    const auto figures = opened.driver->show_objects(opened.pool, request, damaged, &show, &printing);
    if (!figures) {
        return report_failure(figures.error());
    }
    if (arguments.json) {
        printing.json.end_array().boolean("has_more", figures->has_more).begin_array("damaged");
        for (const Failure& failure : damaged.kept) {
            printing.json.element(failure.text());
        }
        printing.json.end_array();
        answer(std::move(printing.json));
    } else if (!figures->has_root) {
        print("{}: the pool has no root\n", arguments.path);
    } else if (figures->has_more) {
        print("more objects can be reached: raise --limit or --depth\n");
    }
    if (damaged.damages() != 0) {
        for (const Failure& failure : damaged.kept) {
            if (&failure != &damaged.kept.front()) {
                print_error("stillpoint: also: {}\n", printable(failure.text()));
            }
        }
        return report_failure(damaged.kept.front());
    }
    return exit_codes::ok;
}

}  // namespace stillpoint::tool
