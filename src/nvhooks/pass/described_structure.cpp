#include "described_structure.hpp"

#include <algorithm>
#include <cstring>

#include "debug_shape.hpp"
#include "llvm/ADT/STLExtras.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/Support/FormatVariadic.h"

namespace stillpoint::nvhooks {

namespace {

using llvm::cast;
using llvm::dyn_cast;
using llvm::dyn_cast_or_null;
using llvm::formatv;
using llvm::isa;
using llvm::StringRef;

constexpr std::uint64_t bits_of_byte = 8;

/// When a member of a union is there.
struct Tag {
    std::uint32_t bytes = 0;
    std::uint64_t offset = 0;  ///< in the structure that is described as a type
    std::uint64_t value = 0;
};

/// A hint names a member of an array by its first element.
std::string path_of_hint(StringRef text)
{
    std::string path;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '[') {
            at = text.find(']', at);
            if (at == StringRef::npos) {
                break;
            }
        } else if (text.substr(at).starts_with("->")) {
            path += '.';
            ++at;
        } else if (text[at] != ' ') {
            path += text[at];
        }
    }
    return path;
}

std::string joined(StringRef prefix, StringRef name)
{
    return prefix.empty() ? name.str() : name.empty() ? prefix.str() : (prefix + "." + name).str();
}

class Description {
public:
    Description(StringRef name, const std::vector<nvm_field>& hints) : name_(name)
    {
        for (const nvm_field& hint : hints) {
            hints_.push_back({path_of_hint(hint.name), &hint, false});
        }
    }

    StructureDescription make(const llvm::DIType* type);

private:
    struct Hint {
        std::string path;  ///< from the described structure
        const nvm_field* field;
        bool is_used;
    };
    /// A type that is being described: the structure itself, or the elements of an array in it.
    struct Target {
        std::string name;
        std::string path;          ///< of the array; empty: the structure itself
        std::uint64_t base = 0;    ///< of its first element, in the structure
        std::uint64_t size = 0;
        std::vector<nvm_field> fields;
    };
    /// A member that is being described.
    struct Place {
        std::string path;      ///< from the structure on, for hints and messages
        std::string name;      ///< in the target
        std::uint64_t offset;  ///< in the target, in bits
        const llvm::DIDerivedType* member;
        Tag tag;
    };

    void add_record(Target& target, const llvm::DICompositeType& record, const Place& at);
    void add_union(Target& target, const llvm::DICompositeType& record, const Place& at);
    void add_member(Target& target, Place at);
    void add_element(Target& target, const Place& at, const Shape& shape);
    void add_pointer(Target& target, const Place& at, const Shape& shape);
    void add_array_of_records(Target& target, const Place& at, const Shape& shape, const llvm::DICompositeType& record);
    void add_bits(Target& target, const Place& at);
    void add_value(Target& target, const Place& at, const Shape& shape);
    nvm_field& add_field(Target& target, const Place& at, std::uint32_t kind, std::uint64_t count);
    void finish(Target& target);
    [[nodiscard]] Hint* hint(StringRef path, std::uint32_t kind);
    /// The tag of the member, by a hint, else by what it lies in.
    [[nodiscard]] bool find_tag(const Target& target, const Place& at, Tag& tag);
    [[nodiscard]] bool is_volatile(StringRef path) { return hint(path, NVM_FIELD_VOLATILE) != nullptr; }
    /// The first pointer in it; empty: there is none.
    [[nodiscard]] std::string pointer_in(const llvm::DIType* type, const std::string& path);
    void refuse(const Place& at, const llvm::Twine& text);
    void set_text(char (&to)[NVM_NAME_BYTES], StringRef text, const Place& at);

    StringRef name_;
    std::vector<Hint> hints_;
    StructureDescription made_;
};

void Description::refuse(const Place& at, const llvm::Twine& text)
{
    std::string where;
    if (at.member != nullptr && at.member->getFile() != nullptr) {
        where = formatv("{0}:{1}: ", at.member->getFilename(), at.member->getLine());
    }
    made_.errors.push_back(
        (where + "type " + name_ + ": field " + (at.path.empty() ? StringRef("(unnamed)") : StringRef(at.path)) + text).str());
}

void Description::set_text(char (&to)[NVM_NAME_BYTES], StringRef text, const Place& at)
{
    std::memset(to, 0, sizeof to);
    if (text.size() >= sizeof to) {
        refuse(at, " has a name of more than 47 bytes with what it lies in: shorten it");
        return;
    }
    std::memcpy(to, text.data(), text.size());
}

Description::Hint* Description::hint(StringRef path, std::uint32_t kind)
{
    for (Hint& each : hints_) {
        if (each.field->kind == kind && each.path == path) {
            each.is_used = true;
            return &each;
        }
    }
    return nullptr;
}

bool Description::find_tag(const Target& target, const Place& at, Tag& tag)
{
    tag = at.tag;
    const Hint* found = hint(at.path, NVM_FIELD_TAGGED);
    if (found == nullptr) {
        found = hint(at.path, NVM_FIELD_POINTER);  // NVM_HAS_PTR_IF
    }
    if (found == nullptr || found->field->tag_bytes == 0) {
        return true;
    }
    if (at.tag.bytes != 0) {
        refuse(at, " depends on two tags, its own and that of what it lies in: one tag must do");
        return false;
    }
    const std::uint64_t offset = found->field->tag_offset_bytes;
    if (offset < target.base || offset + found->field->tag_bytes > target.base + target.size) {
        refuse(at, " is an array's, and its tag lies outside of the element: the tag must lie in the same element");
        return false;
    }
    tag = {found->field->tag_bytes, offset - target.base, found->field->tag_value};
    return true;
}

nvm_field& Description::add_field(Target& target, const Place& at, std::uint32_t kind, std::uint64_t count)
{
    nvm_field field{};
    set_text(field.name, at.name, at);
    field.kind = kind;
    field.tag_bytes = at.tag.bytes;
    field.tag_offset_bytes = at.tag.offset;
    field.tag_value = at.tag.value;
    field.offset_bytes = at.offset / bits_of_byte;
    field.count = count;
    return target.fields.emplace_back(field);
}

void Description::add_bits(Target& target, const Place& at)
{
    bool is_weak = false;
    const llvm::DIType* type = without_names(at.member->getBaseType(), is_weak);
    bool is_signed = false;
    if (const auto* basic = dyn_cast_or_null<llvm::DIBasicType>(type)) {
        is_signed = basic->getSignedness() == llvm::DIBasicType::Signedness::Signed;
    } else if (const auto* composite = dyn_cast_or_null<llvm::DICompositeType>(type)) {
        const auto* base = dyn_cast_or_null<llvm::DIBasicType>(without_names(composite->getBaseType(), is_weak));
        is_signed = base != nullptr && base->getSignedness() == llvm::DIBasicType::Signedness::Signed;
    }
    const auto first = static_cast<std::uint32_t>(at.offset % bits_of_byte);
    const auto bits = static_cast<std::uint32_t>(at.member->getSizeInBits());
    if (bits > 64) {
        refuse(at, " is a bit field of more than 64 bits");
        return;
    }
    nvm_field& field = add_field(target, at, NVM_FIELD_DATA, 1);
    field.element_bytes = (first + bits + 7) / 8;
    field.encoding = (is_signed ? NVM_DATA_BITS_SIGNED : NVM_DATA_BITS_UNSIGNED) | first << 8 | bits << 16;
}

void Description::add_value(Target& target, const Place& at, const Shape& shape)
{
    std::uint32_t encoding = NVM_DATA_BYTES;
    if (const auto* composite = dyn_cast<llvm::DICompositeType>(shape.element)) {  // an enumeration
        bool is_weak = false;
        const auto* base = dyn_cast_or_null<llvm::DIBasicType>(without_names(composite->getBaseType(), is_weak));
        const bool is_signed = base != nullptr && base->getSignedness() == llvm::DIBasicType::Signedness::Signed;
        encoding = is_signed ? NVM_DATA_ENUM_SIGNED : NVM_DATA_ENUM_UNSIGNED;
    } else if (const auto* basic = dyn_cast<llvm::DIBasicType>(shape.element)) {
        switch (basic->getEncoding()) {
        case llvm::dwarf::DW_ATE_boolean: encoding = NVM_DATA_BOOL; break;
        case llvm::dwarf::DW_ATE_float: encoding = NVM_DATA_FLOAT; break;
        case llvm::dwarf::DW_ATE_signed: encoding = NVM_DATA_SIGNED; break;
        case llvm::dwarf::DW_ATE_UTF:
        case llvm::dwarf::DW_ATE_unsigned: encoding = NVM_DATA_UNSIGNED; break;
        case llvm::dwarf::DW_ATE_signed_char: encoding = basic->getName() == "char" ? NVM_DATA_CHARACTER : NVM_DATA_SIGNED; break;
        case llvm::dwarf::DW_ATE_unsigned_char: encoding = basic->getName() == "char" ? NVM_DATA_CHARACTER : NVM_DATA_UNSIGNED; break;
        default: break;
        }
    }
    const std::uint64_t bytes = shape.element->getSizeInBits() / bits_of_byte;
    const bool is_word = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
    nvm_field& field = add_field(target, at, shape.is_open ? NVM_FIELD_TAIL : NVM_FIELD_DATA, shape.is_open ? 0 : shape.count);
    field.element_bytes = static_cast<std::uint32_t>(bytes);
    field.encoding = is_word ? encoding : static_cast<std::uint32_t>(NVM_DATA_BYTES);
}

void Description::add_pointer(Target& target, const Place& at, const Shape& shape)
{
    const std::uint64_t bytes = shape.element->getSizeInBits() / bits_of_byte;
    if (is_volatile(at.path)) {
        nvm_field& field = add_field(target, at, shape.is_open ? NVM_FIELD_TAIL : NVM_FIELD_DATA, shape.is_open ? 0 : shape.count);
        field.element_bytes = static_cast<std::uint32_t>(bytes);
        field.encoding = NVM_DATA_ADDRESS;
        return;
    }
    const auto* pointer = cast<llvm::DIDerivedType>(shape.element);
    bool is_weak = false;
    const llvm::DIType* target_type = without_names(pointer->getBaseType(), is_weak);
    const bool leads_to_code = pointer->getTag() == llvm::dwarf::DW_TAG_ptr_to_member_type ||
                               (target_type != nullptr && isa<llvm::DISubroutineType>(target_type));
    if (leads_to_code) {
        refuse(at,
               " is a pointer to code, which lies elsewhere in the next run: keep a number in its place, or say with NVM_IS_VOLATILE that "
               "each run sets it before it is read");
        return;
    }
    if (at.offset % 64 != 0) {
        refuse(at, " is a pointer that does not lie at a multiple of 8 bytes: do not pack the structure");
        return;
    }
    add_field(target, at, NVM_FIELD_POINTER, shape.is_open ? 0 : shape.count);
}

void Description::add_array_of_records(Target& target, const Place& at, const Shape& shape, const llvm::DICompositeType& record)
{
    if (shape.is_open) {
        if (const std::string pointer = pointer_in(&record, at.path); !pointer.empty()) {
            refuse(at, " is an array of structures without a size that has pointers (" + pointer +
                           "): make it an array of pointers to objects, or give it a size");
            return;
        }
        nvm_field& field = add_field(target, at, NVM_FIELD_TAIL, 0);
        field.element_bytes = static_cast<std::uint32_t>(record.getSizeInBits() / bits_of_byte);
        return;
    }
    Target nested;
    nested.name = target.name + "." + at.name;
    nested.path = at.path;
    nested.base = target.base + at.offset / bits_of_byte;
    nested.size = record.getSizeInBits() / bits_of_byte;
    add_record(nested, record, {at.path, "", 0, at.member, {}});
    finish(nested);
    nvm_field& field = add_field(target, at, NVM_FIELD_STRUCT, shape.count);
    set_text(field.other, nested.name, at);
}

void Description::add_element(Target& target, const Place& at, const Shape& shape)
{
    if (shape.element == nullptr) {
        refuse(at, " has a type that cannot be described");
        return;
    }
    if (shape.is_weak) {
        if (shape.is_open) {
            refuse(at, " is an array of weak pointers without a size: give it one");
        } else {
            add_field(target, at, NVM_FIELD_WEAK, shape.count);
        }
        return;
    }
    if (is_pointer(shape.element)) {
        add_pointer(target, at, shape);
        return;
    }
    if (const llvm::DICompositeType* record = as_record(shape.element)) {
        if (record->isForwardDecl()) {
            refuse(at, " has a type that is declared only: its definition must be visible");
        } else if (record->getSizeInBits() == 0) {
            return;
        } else if (shape.is_array) {
            add_array_of_records(target, at, shape, *record);
        } else {
            add_record(target, *record, at);
        }
        return;
    }
    const bool is_enumeration = shape.element->getTag() == llvm::dwarf::DW_TAG_enumeration_type;
    if (!is_enumeration && !isa<llvm::DIBasicType>(shape.element)) {
        refuse(at, " has a type that cannot be described");
        return;
    }
    add_value(target, at, shape);
}

void Description::add_member(Target& target, Place at)
{
    if (at.member->isArtificial()) {
        refuse(at, " is made by the compiler (virtual functions), and leads elsewhere in the next run: remove them");
        return;
    }
    if (!find_tag(target, at, at.tag)) {
        return;
    }
    if (at.member->isBitField()) {
        add_bits(target, at);
        return;
    }
    const Shape shape = shape_of(at.member->getBaseType());
    if (shape.is_open && at.tag.bytes != 0) {
        refuse(at, " is an array without a size in a union: put it at the structure's end");
        return;
    }
    add_element(target, at, shape);
}

std::string Description::pointer_in(const llvm::DIType* type, const std::string& path)
{
    const Shape shape = shape_of(type);
    if (shape.is_weak || is_pointer(shape.element)) {
        return is_volatile(path) ? "" : path;
    }
    const llvm::DICompositeType* record = as_record(shape.element);
    if (record == nullptr) {
        return "";
    }
    for (const llvm::DIDerivedType* member : members_of(*record)) {
        const bool is_base = member->getTag() == llvm::dwarf::DW_TAG_inheritance;
        std::string found = pointer_in(member->getBaseType(), joined(path, is_base ? StringRef() : member->getName()));
        if (!found.empty()) {
            return found;
        }
    }
    return "";
}

void Description::add_union(Target& target, const llvm::DICompositeType& record, const Place& at)
{
    const auto members = members_of(record);
    std::vector<Place> places;
    std::size_t tagged = 0;
    for (const llvm::DIDerivedType* member : members) {
        Place place{joined(at.path, member->getName()), joined(at.name, member->getName()), at.offset + member->getOffsetInBits(), member,
                    at.tag};
        const bool has_tag = hint(place.path, NVM_FIELD_TAGGED) != nullptr || hint(place.path, NVM_FIELD_POINTER) != nullptr;
        tagged += has_tag ? 1 : 0;
        places.push_back(std::move(place));
    }
    if (tagged == places.size() || places.size() == 1) {
        for (Place& place : places) {
            add_member(target, std::move(place));
        }
        return;
    }
    if (tagged != 0) {
        refuse(at.member != nullptr && !at.path.empty() ? at : places.front(),
               " lies in a union of which some members have a tag and others have none: name all of them with NVM_TAGGED");
        return;
    }
    for (const Place& place : places) {
        if (const std::string pointer = pointer_in(place.member->getBaseType(), place.path); !pointer.empty()) {
            Place of_pointer = place;
            of_pointer.path = pointer;
            refuse(of_pointer, " is a pointer in a union, and nothing says when it is there: add NVM_TAGGED(" + name_ + ", " + place.path +
                                   ", tag, value) to NVM_AUTO_TYPE for each member of the union");
            return;
        }
    }
    Place whole = at;
    if (whole.name.empty() || whole.member == nullptr || whole.member->getName().empty()) {
        whole.name = places.front().name;  // An unnamed union is called by its first member.
    }
    nvm_field& field = add_field(target, whole, NVM_FIELD_DATA, 1);
    field.element_bytes = static_cast<std::uint32_t>(record.getSizeInBits() / bits_of_byte);
}

void Description::add_record(Target& target, const llvm::DICompositeType& record, const Place& at)
{
    if (is_union(record)) {
        if (!members_of(record).empty()) {
            add_union(target, record, at);
        }
        return;
    }
    for (const llvm::DIDerivedType* member : members_of(record)) {
        const bool is_base = member->getTag() == llvm::dwarf::DW_TAG_inheritance;
        const StringRef own = is_base ? StringRef() : member->getName();
        const bool is_unnamed_bits = member->isBitField() && own.empty();
        if (!is_unnamed_bits) {
            add_member(target, {joined(at.path, own), joined(at.name, own), at.offset + member->getOffsetInBits(), member, at.tag});
        }
    }
}

void Description::finish(Target& target)
{
    nvm_field begin{};
    set_text(begin.name, target.name, {target.path, "", 0, nullptr, {}});
    begin.kind = NVM_FIELD_TYPE;
    begin.count = target.size;
    begin.tag_value = NVM_TYPE_MAGIC;
    begin.element_bytes = sizeof begin;
    nvm_field complete{};
    std::memcpy(complete.name, "complete", sizeof "complete");
    complete.kind = NVM_FIELD_COMPLETE;
    made_.entries.push_back(begin);
    made_.entries.push_back(complete);
    made_.entries.insert(made_.entries.end(), target.fields.begin(), target.fields.end());
    const std::string prefix = target.path.empty() ? "" : target.path + ".";
    for (Hint& each : hints_) {
        nvm_field field = *each.field;
        const bool is_own = each.field->kind == NVM_FIELD_PINNED && prefix.empty();
        const bool is_for_conversion = each.field->kind == NVM_FIELD_RENAMED || each.field->kind == NVM_FIELD_DEFAULT;
        if (each.is_used || (!is_own && (!is_for_conversion || !StringRef(each.path).starts_with(prefix)))) {
            continue;
        }
        each.is_used = true;
        if (!is_own) {
            StringRef other(each.field->other);
            set_text(field.name, StringRef(each.path).drop_front(prefix.size()), {each.path, "", 0, nullptr, {}});
            set_text(field.other, prefix.empty() ? StringRef(path_of_hint(other)) : other.substr(other.rfind('.') + 1),
                     {each.path, "", 0, nullptr, {}});
        }
        made_.entries.push_back(field);
    }
}

StructureDescription Description::make(const llvm::DIType* type)
{
    bool is_weak = false;
    const llvm::DICompositeType* record = as_record(without_names(type, is_weak));
    if (record == nullptr || record->isForwardDecl()) {
        made_.errors.push_back(("type " + name_ + ": NVM_AUTO_TYPE takes a structure whose definition is visible").str());
        return made_;
    }
    Target whole;
    whole.name = name_.str();
    whole.size = record->getSizeInBits() / bits_of_byte;
    add_record(whole, *record, {"", "", 0, nullptr, {}});
    finish(whole);
    for (const Hint& each : hints_) {
        const std::uint32_t kind = each.field->kind;
        const bool should_be_used = kind == NVM_FIELD_TAGGED || kind == NVM_FIELD_VOLATILE || kind == NVM_FIELD_POINTER;
        if (should_be_used && !each.is_used && made_.errors.empty()) {
            made_.errors.push_back(
                ("type " + name_ + ": NVM_TAGGED or NVM_IS_VOLATILE names " + each.path + ", which is not a member by itself").str());
        }
        if (kind == NVM_FIELD_DATA || kind == NVM_FIELD_WEAK || kind == NVM_FIELD_STRUCT || kind == NVM_FIELD_TAIL) {
            made_.errors.push_back(
                ("type " + name_ + ": NVM_AUTO_TYPE finds " + each.path + " itself: remove its line, or use NVM_TYPE").str());
        }
    }
    return made_;
}

}  // namespace

StructureDescription describe_structure(StringRef name, const llvm::DIType* type, const std::vector<nvm_field>& hints)
{
    return Description(name, hints).make(type);
}

}  // namespace stillpoint::nvhooks
