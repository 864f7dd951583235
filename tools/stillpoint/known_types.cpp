// Types of libraries that are shown as what they mean: logged variables, and strings, vectors and maps of libstdc++ with any allocator.

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "output.hpp"
#include "value_tree.hpp"

namespace stillpoint::tool {

namespace {

constexpr unsigned bases_max = 8;
constexpr std::uint64_t characters_max = 1024;
// Nodes of libstdc++: colour, parent, left and right, value; next, value.
constexpr std::uint64_t tree_left_offset = 16;
constexpr std::uint64_t tree_right_offset = 24;
constexpr std::uint64_t tree_value_offset = 32;
constexpr std::uint64_t hash_value_offset = 8;
constexpr std::size_t tree_height_max = 128;  ///< twice the logarithm of all nodes that there can be

struct Located {
    TypeId type;
    std::uint64_t offset;
};

/// A member of that name, in the record or in one of its bases.
std::optional<Located> member_of(ProgramTypes& program, TypeId record, std::string_view name, unsigned depth)
{
    const ProgramType& type = program.type(record);
    for (const TypeMember& member : type.members) {
        if (member.name == name && !member.is_base) {
            return Located{member.type, member.offset};
        }
    }
    for (const TypeMember& member : type.members) {
        const auto found = member.is_base && depth < bases_max ? member_of(program, member.type, name, depth + 1) : std::nullopt;
        if (found) {
            return Located{found->type, found->offset + member.offset};
        }
    }
    return std::nullopt;
}

/// A member of a member of a member.
std::optional<Located> locate(ProgramTypes& program, TypeId record, std::initializer_list<std::string_view> names)
{
    Located place{record, 0};
    for (const std::string_view name : names) {
        const auto found = member_of(program, place.type, name, 0);
        if (!found) {
            return std::nullopt;
        }
        place = {found->type, place.offset + found->offset};
    }
    return place;
}

bool is_of_template(const ProgramType& type, std::string_view name)
{
    return type.name.starts_with(name) && type.name.substr(name.size()).starts_with('<');
}

}  // namespace

bool ValueReader::read_logged(ValueNode& node, TypeId id, Place place, const Path& path)
{
    const auto slots = locate(program_, id, {"slots_"});
    const auto value = slots ? locate(program_, program_.type(slots->type).target, {"value"}) : std::nullopt;
    if (!value) {
        return false;
    }
    ValueNode inner = read_value(node.name, program_.type(value->type).name, value->type, {place.address + slots->offset, place.end}, path);
    inner.type = text_of("logged<{}>", inner.type);
    node = std::move(inner);
    return true;
}

bool ValueReader::read_string(ValueNode& node, TypeId id, Place place)
{
    const auto pointer = locate(program_, id, {"_M_dataplus", "_M_p"});
    const auto length = locate(program_, id, {"_M_string_length"});
    if (!pointer || !length || program_.type(program_.type(pointer->type).target).kind != TypeKind::character) {
        return false;
    }
    const std::uint64_t begin = number_at(place.address + pointer->offset, sizeof begin);
    const std::uint64_t count = number_at(place.address + length->offset, sizeof count);
    const LiveBlock block = image_.block_of(begin);
    const std::uint64_t left = begin >= place.address && begin < place.end ? place.end - begin
                               : block                                     ? block.address + block.bytes - begin
                                                                           : 0;
    if (count > left) {
        node.note = image_.holds(begin) ? "its characters lie in no live block" : "its characters lie outside the pool";
        return true;
    }
    node.text = text_of_characters(image_.at(begin, count), characters_max);
    return true;
}

bool ValueReader::read_vector(ValueNode& node, TypeId id, const Path& path)
{
    const auto start = locate(program_, id, {"_M_impl", "_M_start"});
    const auto finish = locate(program_, id, {"_M_impl", "_M_finish"});
    if (!start || !finish) {
        return false;
    }
    const TypeId element = program_.type(start->type).target;
    const std::uint64_t size = program_.type(element).size;
    const std::uint64_t begin = number_at(node.address + start->offset, sizeof begin);
    const std::uint64_t end = number_at(node.address + finish->offset, sizeof end);
    const LiveBlock block = image_.block_of(begin);
    node.is_array = true;
    if (begin == end) {
        return true;
    }
    if (size == 0 || end < begin || !block || end > block.address + block.bytes) {
        node.note = image_.holds(begin) ? "its elements lie in no live block" : "its elements lie outside the pool";
        return true;
    }
    read_elements(node, element, (end - begin) / size, {begin, end}, path);
    return true;
}

void ValueReader::add_node(ValueNode& node, TypeId value, std::uint64_t address, const Path& path)
{
    const LiveBlock block = image_.block_of(address);
    const std::string name = text_of("[{}]", node.members.size());
    const Path below{path.text + name, path.nesting, path.pointers};
    const std::uint64_t end = block.address + block.bytes;
    node.members.push_back(read_value(name, program_.type(value).name, value, {address, end}, below));
}

bool ValueReader::read_tree(ValueNode& node, TypeId id, const Path& path)
{
    const auto tree = locate(program_, id, {"_M_t"});
    const auto header = locate(program_, id, {"_M_t", "_M_impl", "_M_header", "_M_parent"});
    const auto count = locate(program_, id, {"_M_t", "_M_impl", "_M_node_count"});
    if (!tree || !header || !count || program_.type(tree->type).arguments.size() < 2) {
        return false;
    }
    const TypeId value = program_.type(tree->type).arguments[1];
    const std::uint64_t nodes = number_at(node.address + count->offset, sizeof nodes);
    std::vector<std::uint64_t> waiting;  // The way to the node that comes next.
    std::uint64_t at = number_at(node.address + header->offset, sizeof at);
    node.is_array = true;
    std::uint64_t seen = 0;
    const std::uint64_t wanted = std::min(nodes, limits_.elements);
    while (seen < wanted && values_ <= limits_.values && waiting.size() <= tree_height_max && (at != 0 || !waiting.empty())) {
        if (at != 0) {
            if (!image_.block_of(at)) {
                node.note = "a node of it lies in no live block";
                return true;
            }
            waiting.push_back(at);
            at = number_at(at + tree_left_offset, sizeof at);
            continue;
        }
        const std::uint64_t next = waiting.back();
        waiting.pop_back();
        add_node(node, value, next + tree_value_offset, path);
        ++seen;
        at = number_at(next + tree_right_offset, sizeof at);
    }
    node.left_out = nodes - seen;
    has_more_ = has_more_ || node.left_out != 0;
    return true;
}

bool ValueReader::read_hash(ValueNode& node, TypeId id, const Path& path)
{
    const auto table = locate(program_, id, {"_M_h"});
    const auto first = locate(program_, id, {"_M_h", "_M_before_begin", "_M_nxt"});
    const auto count = locate(program_, id, {"_M_h", "_M_element_count"});
    if (!table || !first || !count || program_.type(table->type).arguments.size() < 2) {
        return false;
    }
    const TypeId value = program_.type(table->type).arguments[1];
    const std::uint64_t nodes = number_at(node.address + count->offset, sizeof nodes);
    std::uint64_t at = number_at(node.address + first->offset, sizeof at);
    node.is_array = true;
    std::uint64_t seen = 0;
    for (; at != 0 && seen < std::min(nodes, limits_.elements) && values_ <= limits_.values; ++seen) {
        if (!image_.block_of(at)) {
            node.note = "a node of it lies in no live block";
            return true;
        }
        add_node(node, value, at + hash_value_offset, path);
        at = number_at(at, sizeof at);
    }
    node.left_out = nodes - seen;
    has_more_ = has_more_ || node.left_out != 0;
    return true;
}

bool ValueReader::read_shards(ValueNode& node, TypeId id, const Path& path)
{
    const auto shards = locate(program_, id, {"shards_", "_M_elems"});
    const auto values = shards ? locate(program_, program_.type(shards->type).target, {"values"}) : std::nullopt;
    if (!values) {
        return false;
    }
    const ProgramType& array = program_.type(shards->type);
    const std::uint64_t step = program_.type(array.target).size;
    node.is_array = true;
    for (std::uint64_t i = 0; i < array.count && (i + 1) * step <= node.size_bytes; ++i) {
        ValueNode shard;
        shard.address = node.address + shards->offset + i * step + values->offset;
        if (!read_hash(shard, values->type, path)) {
            return false;
        }
        node.left_out += shard.left_out;
        node.note = node.note.empty() ? shard.note : node.note;
        for (ValueNode& entry : shard.members) {
            if (node.members.size() < limits_.elements) {
                entry.name = text_of("[{}]", node.members.size());
                node.members.push_back(std::move(entry));
            } else {
                ++node.left_out;
            }
        }
    }
    has_more_ = has_more_ || node.left_out != 0;
    return true;
}

bool ValueReader::read_known(ValueNode& node, TypeId id, Place place, const Path& path)
{
    const ProgramType& type = program_.type(id);
    if (type.name.starts_with("stillpoint::respct::") && type.name.substr(0, type.name.find('<')).ends_with("::logged")) {
        return read_logged(node, id, place, path);
    }
    if (type.name == "stillpoint::durable::string_map") {
        return read_shards(node, id, path);
    }
    if (is_of_template(type, "std::__cxx11::basic_string")) {
        return read_string(node, id, {place.address, place.address + type.size});
    }
    if (is_of_template(type, "std::vector")) {
        return read_vector(node, id, path);
    }
    if (is_of_template(type, "std::map") || is_of_template(type, "std::set") || is_of_template(type, "std::multimap") ||
        is_of_template(type, "std::multiset")) {
        return read_tree(node, id, path);
    }
    return (is_of_template(type, "std::unordered_map") || is_of_template(type, "std::unordered_set")) && read_hash(node, id, path);
}

}  // namespace stillpoint::tool
