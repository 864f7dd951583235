#include "value_tree.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "output.hpp"

namespace stillpoint::tool {

namespace {

constexpr unsigned records_in_records_max = 64;  ///< records in records, of a sound program a handful
constexpr std::uint64_t characters_max = 1024;
constexpr std::uint64_t pointer_bytes = 8;

std::string joined_path(const std::string& path, const std::string& name)
{
    return path.empty() || name.starts_with('[') || name.empty() ? path + name : path + "." + name;
}

bool is_text(std::span<const std::byte> bytes)
{
    const auto end = std::ranges::find(bytes, std::byte{0});
    const bool is_printable = std::all_of(bytes.begin(), end, [](std::byte one) {
        const auto character = std::to_integer<unsigned char>(one);
        return (character >= 0x20 && character < 0x7f) || character == '\n' || character == '\t';
    });
    return is_printable && end != bytes.begin() && std::all_of(end, bytes.end(), [](std::byte one) { return one == std::byte{0}; });
}

/// In a type of the library, parts without a value say nothing, and one part alone is the value.
void unwrap(ValueNode& node)
{
    std::erase_if(node.members, [](const ValueNode& one) {
        return one.text.empty() && one.members.empty() && !one.is_array && (one.note.empty() || one.note == "base class");
    });
    if (node.members.size() != 1) {
        return;
    }
    ValueNode only = std::move(node.members.front());
    only.name = node.name;
    only.type = node.type;
    only.note = only.note == "base class" ? "" : only.note;
    node = std::move(only);
}

}  // namespace

std::string_view word_of(PointsTo target)
{
    switch (target) {
    case PointsTo::null: return "null";
    case PointsTo::shown: return "shown";
    case PointsTo::shown_elsewhere: return "shown elsewhere";
    case PointsTo::cycle: return "cycle";
    case PointsTo::too_deep: return "not followed";
    case PointsTo::bytes: return "untyped";
    case PointsTo::freed: return "no live block";
    case PointsTo::too_small: return "block too small";
    case PointsTo::outside: return "outside";
    case PointsTo::no_pointer: break;
    }
    return "";
}

std::uint64_t ValueReader::number_at(std::uint64_t address, std::uint64_t bytes) const
{
    std::uint64_t number = 0;
    const auto found = image_.at(address, std::min(bytes, pointer_bytes));
    std::memcpy(&number, found.data(), found.size());
    return number;
}

ValueNode ValueReader::read(const std::string& name, TypeId type, std::uint64_t address, std::uint64_t bytes)
{
    shown_.try_emplace({address, type}, name);
    open_.emplace_back(address, type);
    ValueNode node = read_value(name, program_.type(type).name, type, {address, address + bytes}, {name, 0, 0});
    open_.pop_back();
    return node;
}

ValueNode ValueReader::read_value(std::string name, std::string type_name, TypeId id, Place place, const Path& path)
{
    const ProgramType& type = program_.type(id);
    ValueNode node;
    node.name = std::move(name);
    node.type = std::move(type_name);
    node.address = place.address;
    node.size_bytes = type.is_unbounded ? place.end - std::min(place.address, place.end) : type.size;
    const auto bytes = image_.at(place.address, node.size_bytes);
    if (++values_ > limits_.values || path.nesting > records_in_records_max) {
        has_more_ = true;
        node.note = "left out";
        return node;
    }
    if (place.address > place.end || node.size_bytes > place.end - place.address || bytes.size() != node.size_bytes) {
        node.note = "reaches beyond the object";
        return node;
    }
    const Path below{path.text, path.nesting + 1, path.pointers};
    switch (type.kind) {
    case TypeKind::lock: node.text = "lock"; break;
    case TypeKind::nothing: break;
    case TypeKind::pointer: read_pointer(node, type, below); break;
    case TypeKind::array: read_array(node, type, place, below); break;
    case TypeKind::record:
        if (!read_known(node, id, place, below)) {
            read_record(node, type, place, below);
        }
        break;
    default: node.text = text_of_scalar(type, bytes, 0, 0);
    }
    return node;
}

void ValueReader::read_record(ValueNode& node, const ProgramType& type, Place place, const Path& path)
{
    for (const TypeMember& member : type.members) {
        const std::uint64_t address = place.address + member.offset;
        if (member.bits != 0) {
            const ProgramType& unit = program_.type(member.type);
            const auto bytes = image_.at(address, (member.bit_offset + member.bits + 7) / 8);
            ValueNode field;
            field.name = member.name;
            field.type = text_of("{}:{}", member.type_name, member.bits);
            field.address = address;
            field.size_bytes = bytes.size();
            field.text = bytes.empty() ? "" : text_of_scalar(unit, bytes, member.bit_offset, member.bits);
            node.members.push_back(std::move(field));
            continue;
        }
        if (member.is_base && program_.type(member.type).members.empty()) {
            continue;  // An empty base has no bytes of its own.
        }
        const Path below{joined_path(path.text, member.name), path.nesting, path.pointers};
        node.members.push_back(read_value(member.name, member.type_name, member.type, {address, place.end}, below));
        if (member.is_base) {
            node.members.back().note = "base class";
        }
    }
    if (!type.variants.empty()) {
        read_variant(node, type, place, path);
    }
    if (type.name.starts_with("std::")) {
        unwrap(node);
    }
}

/// The name of the variant is the value, and its fields are the record's.
void ValueReader::read_variant(ValueNode& node, const ProgramType& type, Place place, const Path& path)
{
    const TypeVariant* const variant = type.variant_in(image_.at(place.address, type.size));
    if (variant == nullptr) {
        node.note = "its discriminant is that of no variant";
        return;
    }
    const TypeMember& member = variant->member;
    ValueNode value = read_value(member.name, member.type_name, member.type, {place.address + member.offset, place.end}, path);
    node.text = member.name;
    node.note = std::move(value.note);
    node.left_out += value.left_out;
    std::ranges::move(value.members, std::back_inserter(node.members));
}

void ValueReader::read_array(ValueNode& node, const ProgramType& type, Place place, const Path& path)
{
    const ProgramType& element = program_.type(type.target);
    const std::uint64_t count = type.is_unbounded && element.size != 0 ? node.size_bytes / element.size : type.count;
    if (type.is_unbounded) {
        node.size_bytes = count * element.size;
    }
    const auto bytes = image_.at(place.address, node.size_bytes);
    if (element.kind == TypeKind::character && count != 0 && (element.name == "char" || is_text(bytes))) {
        node.text = text_of_characters(bytes, characters_max);
        return;
    }
    read_elements(node, type.target, count, place, path);
}

void ValueReader::read_elements(ValueNode& node, TypeId element, std::uint64_t count, Place place, const Path& path)
{
    const ProgramType& type = program_.type(element);
    node.is_array = true;
    const std::uint64_t shown = type.size == 0 ? 0 : std::min(count, limits_.elements);
    node.left_out = count - shown;
    has_more_ = has_more_ || node.left_out != 0;
    for (std::uint64_t i = 0; i < shown && values_ <= limits_.values; ++i) {
        const std::string name = text_of("[{}]", i);
        const std::uint64_t begin = place.address + i * type.size;
        const Path below{joined_path(path.text, name), path.nesting, path.pointers};
        node.members.push_back(read_value(name, type.name, element, {begin, begin + type.size}, below));
    }
}

void ValueReader::read_pointer(ValueNode& node, const ProgramType& type, const Path& path)
{
    node.target = number_at(node.address, node.size_bytes);
    node.text = node.target == 0 ? "null" : text_of("{:#x}", node.target);
    if (node.target == 0) {
        node.points_to = PointsTo::null;
        return;
    }
    if (!image_.holds(node.target)) {
        node.points_to = PointsTo::outside;
        return;
    }
    node.block = image_.block_of(node.target);
    const ProgramType& target = program_.type(type.target);
    const std::uint64_t left = node.block ? node.block.address + node.block.bytes - node.target : 0;
    const std::pair key{node.target, type.target};
    if (!node.block) {
        node.points_to = PointsTo::freed;
    } else if (target.kind == TypeKind::nothing || target.kind == TypeKind::opaque) {
        node.points_to = PointsTo::bytes;
    } else if (target.size > left) {
        node.points_to = PointsTo::too_small;
        node.note = text_of("{} bytes are left of the block, the type has {}", left, target.size);
    } else if (target.kind == TypeKind::character) {
        node.points_to = PointsTo::shown;
        node.text += " " + text_of_characters(image_.at(node.target, left), characters_max);
    } else if (std::ranges::find(open_, key) != open_.end()) {
        node.points_to = PointsTo::cycle;
        node.note = shown_[key];
    } else if (const auto found = shown_.find(key); found != shown_.end()) {
        node.points_to = PointsTo::shown_elsewhere;
        node.note = found->second;
    } else if (path.pointers >= limits_.depth) {
        node.points_to = PointsTo::too_deep;
        has_more_ = true;
    } else {
        node.points_to = PointsTo::shown;
        shown_.emplace(key, path.text);
        open_.push_back(key);
        const Path below{path.text, 0, path.pointers + 1};
        node.pointee.push_back(read_value("*", target.name, type.target, {node.target, node.block.address + node.block.bytes}, below));
        open_.pop_back();
    }
}

}  // namespace stillpoint::tool
