#include "value_text.hpp"

#include <algorithm>
#include <cstring>

#include "output.hpp"

namespace stillpoint::tool {

namespace {

std::string in_brackets(const std::string& text) { return text.empty() ? "" : "  (" + printable(text) + ")"; }

std::string remark_on(const ValueNode& value)
{
    switch (value.points_to) {
    case PointsTo::shown_elsewhere: return in_brackets("shown at " + value.note);
    case PointsTo::cycle: return in_brackets("cycle: back to " + value.note);
    case PointsTo::too_small: return in_brackets("the block is too small: " + value.note);
    case PointsTo::freed: return in_brackets("in the pool, but in no live block");
    case PointsTo::outside: return in_brackets("outside the pool");
    case PointsTo::too_deep: return in_brackets(text_of("not followed: a block of {} bytes", value.block.bytes));
    case PointsTo::bytes: return in_brackets(text_of("a block of {} bytes", value.block.bytes));
    default: return in_brackets(value.note);
    }
}

/// Long names without the arguments of their templates.
std::string short_type(const std::string& type)
{
    constexpr std::size_t name_bytes_max = 60;
    const std::size_t open = type.find('<');
    const std::size_t close = type.rfind('>');
    if (type.size() <= name_bytes_max || open == std::string::npos || close == std::string::npos || close < open) {
        return printable(type);
    }
    return printable(type.substr(0, open) + "<...>" + type.substr(close + 1));
}

bool is_empty(const ValueNode& value) { return value.is_array && value.members.empty() && value.left_out == 0 && value.note.empty(); }

void print_node(const ValueNode& value, std::size_t indent);

bool is_plain(const ValueNode& value)
{
    return !value.text.empty() && value.note.empty() && value.pointee.empty() && value.members.empty() &&
           value.points_to == PointsTo::no_pointer;
}

/// Numbers of an array in rows, each with the place of its first; false: they are something else.
bool print_in_rows(const ValueNode& value, std::size_t indent)
{
    constexpr std::size_t columns = 80;
    if (!value.is_array || !std::ranges::all_of(value.members, is_plain)) {
        return false;
    }
    std::string row;
    for (const ValueNode& element : value.members) {
        if (row.size() + element.text.size() > columns) {
            print("{:{}}{}\n", "", indent, row);
            row.clear();
        }
        row += (row.empty() ? element.name + " = " : ", ") + printable(element.text);
    }
    print("{:{}}{}{}\n", "", indent, row, value.left_out == 0 ? "" : text_of(", ... {} more", value.left_out));
    return true;
}

/// An entry of a map in one line; false: it is something else.
bool print_entry(const ValueNode& value, std::size_t indent)
{
    const auto& parts = value.members;
    if (parts.size() != 2 || parts[0].name != "first" || parts[1].name != "second" || !is_plain(parts[0]) || !is_plain(parts[1])) {
        return false;
    }
    print("{:{}}[{}] = {}\n", "", indent, printable(parts[0].text), printable(parts[1].text));
    return true;
}

void print_members(const ValueNode& value, std::size_t indent)
{
    if (!value.members.empty() && print_in_rows(value, indent)) {
        return;
    }
    for (const ValueNode& member : value.members) {
        if (!value.is_array || !print_entry(member, indent)) {
            print_node(member, indent);
        }
    }
    if (value.left_out != 0) {
        print("{:{}}... {} more\n", "", indent, value.left_out);
    }
}

void print_node(const ValueNode& value, std::size_t indent)
{
    if (value.note == "base class") {
        print("{:{}}{}{}  (base class)\n", "", indent, short_type(value.type), value.text.empty() ? "" : " = " + printable(value.text));
        print_members(value, indent + 2);
        return;
    }
    const std::string name = value.name.empty() ? "(anonymous)" : printable(value.name);
    print("{:{}}{}: {}{}{}{}\n", "", indent, name, short_type(value.type), value.text.empty() && !is_empty(value) ? "" : " = ",
          is_empty(value) ? "empty" : printable(value.text), remark_on(value));
    print_members(value, indent + 2);
    for (const ValueNode& pointee : value.pointee) {
        if (pointee.text.empty()) {
            print_members(pointee, indent + 2);
        } else {
            print_node(pointee, indent + 2);
        }
    }
}

}  // namespace

void print_value(const ValueNode& value)
{
    if (value.members.empty() && value.left_out == 0) {
        print("  = {}{}\n", printable(value.text), remark_on(value));
        for (const ValueNode& pointee : value.pointee) {
            print_members(pointee, 4);
        }
        return;
    }
    if (!value.text.empty()) {
        print("  = {}\n", printable(value.text));
    }
    print_members(value, 2);
}

void print_rows(const PoolImage& image, std::uint64_t address, std::span<const std::byte> bytes)
{
    constexpr std::size_t bytes_of_row = 16;
    constexpr std::size_t word_bytes = 8;
    for (std::size_t row = 0; row < bytes.size(); row += bytes_of_row) {
        const auto part = bytes.subspan(row, std::min(bytes_of_row, bytes.size() - row));
        std::string digits;
        std::string characters;
        std::string pointers;
        for (const std::byte one : part) {
            const auto character = std::to_integer<unsigned char>(one);
            digits += text_of("{}{:02x}", digits.empty() ? "" : " ", character);
            characters += character >= 0x20 && character < 0x7f ? static_cast<char>(character) : '.';
        }
        for (std::size_t at = 0; (address + row) % word_bytes == 0 && at + word_bytes <= part.size(); at += word_bytes) {
            std::uint64_t word = 0;
            std::memcpy(&word, part.data() + at, sizeof word);
            if (const LiveBlock block = image.block_of(word)) {
                pointers += text_of("  +{} -> {:#x}, a block of {}", row + at, word, block.bytes);
            }
        }
        print("  {:>6}  {:<47}  |{}|{}\n", row, digits, characters, pointers);
    }
}

}  // namespace stillpoint::tool
