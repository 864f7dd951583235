#include "engines/breeze/type_change.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/formatted.hpp"
#include "engines/breeze/type_comparison.hpp"
#include "stillpoint/typed_fields.h"

namespace stillpoint::breeze {

namespace {

/// The field's name in the older program: by its own renaming, or by that of a structure that it lies in.
std::string old_name_of(const std::string& name, const std::vector<DescribedType::Renamed>& renamed)
{
    std::string best = name;
    std::size_t length = 0;
    for (const DescribedType::Renamed& each : renamed) {
        const bool is_own = name == each.now || (name.starts_with(each.now) && name[each.now.size()] == '.');
        if (is_own && each.now.size() >= length) {
            length = each.now.size();
            best = each.before + name.substr(length);
        }
    }
    return best;
}

const Field* field_named(const Type& type, const std::string& name) noexcept
{
    const auto found = std::ranges::find(type.fields, name, &Field::name);
    return found == type.fields.end() ? nullptr : &*found;
}

bool is_data(const Field& field) noexcept { return field.kind == NVM_FIELD_DATA || field.kind == NVM_FIELD_TAIL; }

bool is_zero(const std::byte* bytes, std::uint64_t size) noexcept
{
    return std::all_of(bytes, bytes + size, [](std::byte one) { return one == std::byte{0}; });
}

const Field* tail_of(const Type& type) noexcept
{
    const auto found = std::ranges::find_if(type.fields, &Field::is_tail);
    return found == type.fields.end() ? nullptr : &*found;
}

}  // namespace

const DescribedType* NewTypes::find(std::uint32_t id) const noexcept
{
    const auto found = std::ranges::find(types, id, [](const DescribedType& type) { return type.type->id; });
    return found == types.end() ? nullptr : &*found;
}

TypeChange::TypeChange(std::shared_ptr<const Type> from, const DescribedType& to, NewTypes& program) : from_(std::move(from)), to_(to.type)
{
    const std::string differs = difference(*from_, *to_, "in the pool", "in the program");
    const bool both_complete = from_->is_complete && to_->is_complete;
    if (differs.empty() && (to.renamed.empty() || !both_complete)) {
        to_ = to_->is_complete || !from_->is_complete ? to_ : from_;
        return;
    }
    if (!both_complete) {
        const char* const advice = from_->is_complete
                                       ? "in the program not all of its fields are described: use NVM_AUTO_TYPE, or NVM_HAS_DATA "
                                         "and NVM_IS_COMPLETE"
                                       : "in the pool not all of its fields are described: open the pool once with the older "
                                         "program, compiled with NVM_AUTO_TYPE or NVM_IS_COMPLETE";
        differences_.push_back({formatted("{}; {}", differs, advice), true});
        return;
    }
    plan_ = plan(*from_, to, program);
    is_identity_ = differences_.empty() && fields_moved_ == 0 && from_->size == to_->size;
    if (from_->is_pinned != to_->is_pinned) {
        differences_.push_back({to_->is_pinned ? "objects are pinned now" : "objects are not pinned any more", false});
    }
    if (fields_moved_ != 0) {
        differences_.push_back({formatted("{} field{} elsewhere", fields_moved_, fields_moved_ == 1 ? " lies" : "s lie"), false});
    }
}

void TypeChange::tell(const std::string& type, const std::string& field, const std::string& text, bool is_refused)
{
    const std::string prefix = type == from_->name                   ? ""
                               : type.starts_with(from_->name + ".") ? type.substr(from_->name.size() + 1) + "."
                                                                     : type + ".";
    differences_.push_back({prefix + field + ": " + text, is_refused});
}

std::shared_ptr<const TypeChange::Plan> TypeChange::plan(const Type& from, const DescribedType& to, NewTypes& program)
{
    auto made = std::make_shared<Plan>();
    made->from = &from;
    std::set<const Field*> used;
    for (const Field& field : to.type->fields) {
        const std::string old_name = old_name_of(field.name, to.renamed);
        const Field* old_field = field_named(from, old_name);
        if (old_field == nullptr || used.contains(old_field)) {
            old_field = field_named(from, field.name);  // The pool may have the new name already.
        }
        if (old_field == nullptr || used.contains(old_field)) {
            add_new_field(*made, to, field);
            continue;
        }
        used.insert(old_field);
        if (old_field->name != field.name) {
            tell(from.name, field.name, "was called " + old_field->name, false);
        }
        add_field(*made, from, old_field, field, program);
    }
    check_removed(from, used, program);
    check_tags(*made, from.name);
    return made;
}

void TypeChange::add_new_field(Plan& made, const DescribedType& to, const Field& field)
{
    const auto found = std::ranges::find(to.defaults, field.name, &DescribedType::Default::field);
    const std::string type = text_of_field_type(field);
    if (found == to.defaults.end()) {
        tell(to.type->name, field.name, formatted("new, {}, zero", type), false);
        return;
    }
    alignas(16) std::byte value[16] = {};
    const auto number = static_cast<std::int64_t>(found->value);
    const bool fits = is_data(field) && !field.is_tail() && is_integer(field) &&
                      (write_integer(field, value, number) || write_integer(field, value, WideInteger{found->value}));
    tell(to.type->name, field.name,
         fits ? formatted("new, {}, {}", type, text_of_value(field, value)) : formatted("new, and its default does not fit into {}", type),
         !fits);
    if (fits) {
        made.defaults.emplace_back(&field, found->value);
    }
}

void TypeChange::add_field(Plan& made, const Type& from, const Field* old_field, const Field& field, NewTypes& program)
{
    const std::string before = text_of_field_type(*old_field);
    const std::string after = text_of_field_type(field);
    const auto refuse = [&](const std::string& text) { tell(from.name, field.name, formatted("{} -> {}: {}", before, after, text), true); };
    if (old_field->kind != field.kind || old_field->is_tail() != field.is_tail()) {
        refuse("another kind of field; give it another name, and drop the old one");
        return;
    }
    const bool has_tag = old_field->tag_bytes != 0;
    if (has_tag != (field.tag_bytes != 0) || (has_tag && old_field->tag_value != field.tag_value)) {
        refuse("it is there for another value of its tag");
        return;
    }
    Move move{old_field, &field, std::min(old_field->count, field.count), nullptr};
    bool is_told = false;
    if (is_data(field)) {
        const ValueChange change = change_of_values(*old_field, field);
        if (change == ValueChange::refused) {
            refuse("values of these forms cannot be converted");
            return;
        }
        is_told = change != ValueChange::same;
        if (is_told) {
            tell(from.name, field.name,
                 formatted("{} -> {}, {}", before, after, change == ValueChange::widened ? "widened" : "narrowed: every value must fit"),
                 false);
        }
    }
    if (field.kind == NVM_FIELD_STRUCT) {
        const DescribedType* const described = program.find(field.nested->id);
        const std::size_t told = differences_.size();
        const std::uint64_t moved = fields_moved_;
        move.nested = plan(*old_field->nested, described != nullptr ? *described : DescribedType{field.nested, {}, {}}, program);
        is_told = differences_.size() != told || fields_moved_ != moved;
    }
    if (old_field->count != field.count) {
        tell(from.name, field.name,
             formatted("{} -> {} elements{}", old_field->count, field.count,
                       field.count < old_field->count ? ": the last ones must be zero" : ""),
             false);
        is_told = true;
    }
    if (!is_told &&
        (old_field->offset != field.offset || old_field->element_bytes != field.element_bytes || old_field->encoding != field.encoding)) {
        ++fields_moved_;
    }
    made.moves.push_back(std::move(move));
}

void TypeChange::check_removed(const Type& from, const std::set<const Field*>& used, NewTypes& program)
{
    for (const Field& field : from.fields) {
        if (used.contains(&field)) {
            continue;
        }
        const std::string name = from.name + "." + field.name;
        const bool is_allowed = program.drops.contains(name);
        if (is_allowed) {
            program.drops_used.insert(name);
        }
        tell(from.name, field.name,
             is_allowed ? formatted("gone, {}, dropped", text_of_field_type(field))
                        : formatted("gone, {}: its data would be lost; --drop {} allows that, and NVM_RENAMED names its new place",
                                    text_of_field_type(field), name),
             !is_allowed);
    }
}

void TypeChange::check_tags(const Plan& plan, const std::string& type)
{
    for (const Move& move : plan.moves) {
        if (move.from->tag_bytes == 0) {
            continue;
        }
        bool is_same = false;
        for (const Move& tag : plan.moves) {
            const std::uint64_t inside = move.from->tag_offset - tag.from->offset;
            is_same = is_same || (is_data(*tag.from) && move.from->tag_offset >= tag.from->offset && inside < tag.from->element_bytes &&
                                  tag.to->offset + inside == move.to->tag_offset);
        }
        if (!is_same) {
            tell(type, move.to->name, "another field is its tag now", true);
        }
    }
}

std::uint64_t TypeChange::size_after(std::uint64_t size) const noexcept
{
    if (is_identity_) {
        return size;
    }
    if (!from_->has_tail || !to_->has_tail) {
        return from_->has_tail || to_->has_tail ? to_->size : size / from_->size * to_->size;
    }
    const Field& before = *tail_of(*from_);
    const Field& after = *tail_of(*to_);
    const std::uint64_t extra = size - from_->size;  // Programs count from sizeof, or from the tail's own offset.
    const std::uint64_t elements = (size - before.offset) / before.element_bytes;
    const std::uint64_t by_size =
        to_->size + (before.element_bytes == after.element_bytes ? extra : extra / before.element_bytes * after.element_bytes);
    return std::max(by_size, after.offset + elements * after.element_bytes);
}

void TypeChange::set_defaults(const Plan& plan, std::byte* made) noexcept
{
    for (const auto& [field, value] : plan.defaults) {
        for (std::uint64_t i = 0; i < field->count; ++i) {
            std::byte* const place = made + field->offset + i * field->element_bytes;
            // One of both was found to fit.
            if (!write_integer(*field, place, static_cast<std::int64_t>(value))) {
                (void)write_integer(*field, place, WideInteger{value});
            }
        }
    }
    for (const Move& move : plan.moves) {
        for (std::uint64_t i = 0; move.nested != nullptr && i < move.to->count; ++i) {
            set_defaults(*move.nested, made + move.to->offset + i * move.to->element_bytes);
        }
    }
}

/// Elements that have no place in a shorter array, and members of unions that no tag names.
void TypeChange::check_lost(const Plan& plan, const std::byte* element, ConversionProblems& problems)
{
    for (const Move& move : plan.moves) {
        const Field& field = *move.from;
        if (!is_there(field, element)) {
            continue;
        }
        const std::byte* const rest = element + field.offset + move.count * field.element_bytes;
        if (!field.is_tail() && move.count < field.count && !is_zero(rest, (field.count - move.count) * field.element_bytes)) {
            problems.tell(formatted("its array {} has elements beyond the new {}", field.name, move.to->count));
        }
    }
    for (const Field& field : plan.from->fields) {
        if (field.tag_bytes == 0) {
            continue;
        }
        const bool is_named = std::ranges::any_of(plan.from->fields, [&](const Field& other) {
            return other.tag_bytes != 0 && other.tag_offset == field.tag_offset && is_there(other, element);
        });
        if (!is_named && !is_zero(element + field.offset, field.count * field.element_bytes)) {
            problems.tell(formatted("the tag of {} has the value {}, which no field has", field.name,
                                    Type::tag_at(element + field.tag_offset, field.tag_bytes)));
            return;
        }
    }
}

void TypeChange::check_nested(const Plan& plan, const std::byte* element, ConversionProblems& problems)
{
    check_lost(plan, element, problems);
    for (const Move& move : plan.moves) {
        for (std::uint64_t i = 0; move.nested != nullptr && is_there(*move.from, element) && i < move.count; ++i) {
            check_nested(*move.nested, element + move.from->offset + i * move.from->element_bytes, problems);
        }
    }
}

void TypeChange::convert(const std::byte* object, std::uint64_t size, std::byte* made, ConversionProblems& problems) const
{
    if (is_identity_) {
        std::memcpy(made, object, size);
        return;
    }
    if (!from_->has_tail && to_->has_tail && size != from_->size) {
        problems.tell("it is an array, and objects of the new type have a tail");
        return;
    }
    const std::uint64_t elements = from_->has_tail ? 1 : size / from_->size;
    for (std::uint64_t i = 0; i < elements; ++i) {
        set_defaults(*plan_, made + i * to_->size);
        check_nested(*plan_, object + i * from_->size, problems);
    }
    visit_moves({object, size}, [&](const Move& move, std::uint64_t old_offset, std::uint64_t new_offset, std::uint64_t count) {
        for (std::uint64_t i = 0; is_data(*move.from) && i < count; ++i) {
            const std::byte* const old_place = object + old_offset + i * move.from->element_bytes;
            std::byte* const new_place = made + new_offset + i * move.to->element_bytes;
            if (!convert_value(*move.from, old_place, *move.to, new_place)) {
                problems.tell(formatted("its field {} has the value {}, which does not fit into {}", move.from->name,
                                        text_of_value(*move.from, old_place), text_of_field_type(*move.to)));
            }
        }
    });
}

std::optional<std::uint64_t> TypeChange::new_place_in(const Plan& plan, const std::byte* element, std::uint64_t end,
                                                      std::uint64_t offset) noexcept
{
    for (const Move& move : plan.moves) {
        const Field& from = *move.from;
        const std::uint64_t count = from.is_tail() ? (end - from.offset) / from.element_bytes : move.count;
        if (offset < from.offset || offset - from.offset >= count * from.element_bytes || !is_there(from, element)) {
            continue;
        }
        const std::uint64_t index = (offset - from.offset) / from.element_bytes;
        const std::uint64_t inside = (offset - from.offset) % from.element_bytes;
        const std::uint64_t begin = move.to->offset + index * move.to->element_bytes;
        if (move.nested != nullptr && inside != 0) {
            const std::byte* const nested = element + from.offset + index * from.element_bytes;
            const auto place = new_place_in(*move.nested, nested, from.element_bytes, inside);
            return place ? std::optional(begin + *place) : std::nullopt;
        }
        const bool keeps_bytes = !is_data(from) || change_of_values(from, *move.to) == ValueChange::same;
        return inside == 0 || keeps_bytes ? std::optional(begin + inside) : std::nullopt;
    }
    return std::nullopt;
}

std::optional<std::uint64_t> TypeChange::new_place_of(const std::byte* object, std::uint64_t size, std::uint64_t offset) const noexcept
{
    if (is_identity_ || offset == 0) {
        return offset;
    }
    if (offset >= size) {
        return size_after(size) + (offset - size);  // Past its end, as a program may compute it.
    }
    if (from_->has_tail) {
        return new_place_in(*plan_, object, size, offset);
    }
    const std::uint64_t element = offset / from_->size;
    const std::uint64_t inside = offset % from_->size;
    if (inside == 0) {
        return element * to_->size;
    }
    const auto place = new_place_in(*plan_, object + element * from_->size, from_->size, inside);
    return place ? std::optional(element * to_->size + *place) : std::nullopt;
}

}  // namespace stillpoint::breeze
