#include "engines/breeze/type_comparison.hpp"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "core/formatted.hpp"
#include "stillpoint/typed_fields.h"

namespace stillpoint::breeze {

namespace {

bool is_same(const PointerRun& a, const PointerRun& b) noexcept
{
    const bool same_tag = a.tag_bytes == b.tag_bytes && (a.tag_bytes == 0 || (a.tag_offset == b.tag_offset && a.tag_value == b.tag_value));
    return a.name == b.name && a.offset == b.offset && a.count == b.count && a.stride == b.stride && a.kind == b.kind && same_tag;
}

/// By their places; those of a union by their tags.
std::vector<PointerRun> in_order(const Type& type)
{
    std::vector<PointerRun> runs = type.runs;
    std::ranges::sort(runs, {}, [](const PointerRun& run) { return std::tuple(run.offset, run.tag_value, run.name); });
    return runs;
}

std::string difference_of_pointers(const Type& first, const Type& second, std::string_view there, std::string_view here)
{
    const std::vector<PointerRun> theirs = in_order(first);
    const std::vector<PointerRun> ours = in_order(second);
    for (std::size_t i = 0; i < std::max(theirs.size(), ours.size()); ++i) {
        if (i >= theirs.size()) {
            return formatted("{} it has a pointer {}, which is new", here, ours[i].name);
        }
        if (i >= ours.size()) {
            return formatted("{} it has a pointer {}, which is gone", there, theirs[i].name);
        }
        if (!is_same(theirs[i], ours[i])) {
            return formatted("{} it has a pointer {} at byte {}, {} {} at byte {}", there, theirs[i].name, theirs[i].offset, here,
                             ours[i].name, ours[i].offset);
        }
    }
    return "";
}

/// A field of values, arrays of structures by their first element.
struct Leaf {
    std::string name;
    std::uint64_t offset;
    const Field* field;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> arrays;  ///< count and stride of those that it lies in
};

void add_leaves(const Type& type, const Leaf& in, std::vector<Leaf>& leaves)
{
    for (const Field& field : type.fields) {
        Leaf leaf{in.name.empty() ? field.name : in.name + "." + field.name, in.offset + field.offset, &field, in.arrays};
        if (field.kind == NVM_FIELD_DATA || field.kind == NVM_FIELD_TAIL) {
            leaves.push_back(std::move(leaf));
        } else if (field.kind == NVM_FIELD_STRUCT) {
            if (field.count != 1) {
                leaf.arrays.emplace_back(field.count, field.element_bytes);
            }
            add_leaves(*field.nested, leaf, leaves);
        }
    }
}

/// Encodings whose values have the same bytes.
std::uint32_t bytes_form_of(const Field& field) noexcept
{
    switch (field.encoding & 0xff) {
    case NVM_DATA_ENUM_SIGNED: return NVM_DATA_SIGNED;
    case NVM_DATA_ENUM_UNSIGNED:
    case NVM_DATA_BOOL: return NVM_DATA_UNSIGNED;
    default: return field.encoding;
    }
}

bool is_same(const Leaf& a, const Leaf& b) noexcept
{
    if (a.field->kind == NVM_FIELD_TAIL && b.field->kind == NVM_FIELD_TAIL) {
        const bool knows_values = a.field->encoding != NVM_DATA_BYTES && b.field->encoding != NVM_DATA_BYTES;
        return a.offset == b.offset &&
               (!knows_values || (bytes_form_of(*a.field) == bytes_form_of(*b.field) && a.field->element_bytes == b.field->element_bytes));
    }
    return a.offset == b.offset && a.field->kind == b.field->kind && a.field->count == b.field->count && a.arrays == b.arrays &&
           a.field->element_bytes == b.field->element_bytes && bytes_form_of(*a.field) == bytes_form_of(*b.field) &&
           a.field->tag_bytes == b.field->tag_bytes && (a.field->tag_bytes == 0 || a.field->tag_value == b.field->tag_value);
}

std::string difference_of_data(const Type& first, const Type& second, std::string_view there, std::string_view here)
{
    std::vector<Leaf> theirs;
    std::vector<Leaf> ours;
    add_leaves(first, {}, theirs);
    add_leaves(second, {}, ours);
    for (const Leaf& leaf : ours) {
        const auto same = std::ranges::find(theirs, leaf.name, &Leaf::name);
        if (same != theirs.end() && !is_same(*same, leaf)) {
            return formatted("{} it has {} {} at byte {}, {} {} at byte {}", there, text_of_field_type(*same->field), leaf.name,
                             same->offset, here, text_of_field_type(*leaf.field), leaf.offset);
        }
        if (same == theirs.end() && first.is_complete) {
            return formatted("{} it has a field {}, which is new", here, leaf.name);
        }
    }
    for (const Leaf& leaf : theirs) {
        if (second.is_complete && std::ranges::find(ours, leaf.name, &Leaf::name) == ours.end()) {
            return formatted("{} it has a field {}, which is gone", there, leaf.name);
        }
    }
    return "";
}

}  // namespace

std::string text_of_field_type(const Field& field)
{
    std::string text;
    const std::uint64_t bits = field.element_bytes * 8;
    switch (field.kind) {
    case NVM_FIELD_POINTER: text = "pointer"; break;
    case NVM_FIELD_WEAK: text = "nvm_weak"; break;
    case NVM_FIELD_STRUCT: text = formatted("struct of {} bytes", field.element_bytes); break;
    default:
        switch (field.encoding & 0xff) {
        case NVM_DATA_SIGNED: text = formatted("int{}_t", bits); break;
        case NVM_DATA_UNSIGNED: text = formatted("uint{}_t", bits); break;
        case NVM_DATA_FLOAT:
            text = bits == 32 ? "float" : bits == 64 ? "double" : formatted("float of {} bytes", field.element_bytes);
            break;
        case NVM_DATA_CHARACTER: text = "char"; break;
        case NVM_DATA_BOOL: text = "bool"; break;
        case NVM_DATA_ENUM_SIGNED:
        case NVM_DATA_ENUM_UNSIGNED: text = formatted("enum of {} bytes", field.element_bytes); break;
        case NVM_DATA_BITS_SIGNED: text = formatted("int:{}", bits_of(field.encoding)); break;
        case NVM_DATA_BITS_UNSIGNED: text = formatted("unsigned:{}", bits_of(field.encoding)); break;
        case NVM_DATA_ADDRESS: text = "volatile pointer"; break;
        default: text = field.element_bytes == 1 ? "bytes" : formatted("{} bytes", field.element_bytes);
        }
    }
    return field.is_tail() ? text + "[]" : field.count == 1 ? text : formatted("{}[{}]", text, field.count);
}

std::string difference(const Type& first, const Type& second, std::string_view there, std::string_view here)
{
    if (first.record == second.record) {
        return "";
    }
    if (first.size != second.size) {
        return formatted("{} it has {} bytes, {} {}", there, first.size, here, second.size);
    }
    if (std::string pointers = difference_of_pointers(first, second, there, here); !pointers.empty()) {
        return pointers;
    }
    if (first.has_tail != second.has_tail || first.is_pinned != second.is_pinned) {
        return first.has_tail != second.has_tail ? formatted("only {} it has a tail", first.has_tail ? there : here)
                                                 : formatted("only {} its objects are pinned", first.is_pinned ? there : here);
    }
    return difference_of_data(first, second, there, here);
}

}  // namespace stillpoint::breeze
