#pragma once
// How the objects of one type become those of another description of it: field by field, by their names.

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engines/breeze/type_descriptions.hpp"
#include "engines/breeze/value_forms.hpp"
#include "runtime/pool_conversion.hpp"

namespace stillpoint::breeze {

/// Contents of a program's file: what it says of its types, and what the user allows.
struct NewTypes {
    std::vector<DescribedType> types;
    std::set<std::string> drops;       ///< "Type.field"
    std::set<std::string> drops_used;  ///< of those

    /// nullptr: the program does not describe it.
    [[nodiscard]] const DescribedType* find(std::uint32_t id) const noexcept;
};

/// Gets what does not fit.
class ConversionProblems {
public:
    virtual void tell(const std::string& text) = 0;

protected:
    ~ConversionProblems() = default;
};

class TypeChange {
public:
    TypeChange(std::shared_ptr<const Type> from, const DescribedType& to, NewTypes& program);

    [[nodiscard]] const std::vector<TypeDifference>& differences() const noexcept { return differences_; }
    /// Objects keep their bytes, but for their pointers.
    [[nodiscard]] bool is_identity() const noexcept { return is_identity_; }
    /// The description that objects have afterwards.
    [[nodiscard]] const std::shared_ptr<const Type>& to() const noexcept { return to_; }
    [[nodiscard]] std::uint64_t size_after(std::uint64_t size) const noexcept;

    /// Calls visit(old offset, new offset, kind) for each pointer of the object that is kept.
    template <class Visit>
    void visit_pointers(const std::byte* object, std::uint64_t size, Visit&& visit) const
    {
        if (is_identity_) {
            from_->visit_pointers(object, size, [&](std::uint64_t offset, const PointerRun& run) { visit(offset, offset, run.kind); });
            return;
        }
        visit_moves({object, size}, [&](const Move& move, std::uint64_t old_offset, std::uint64_t new_offset, std::uint64_t count) {
            const bool is_pointer = move.from->kind == NVM_FIELD_POINTER || move.from->kind == NVM_FIELD_WEAK;
            for (std::uint64_t i = 0; is_pointer && i < count; ++i) {
                visit(old_offset + i * move.from->element_bytes, new_offset + i * move.to->element_bytes,
                      move.from->kind == NVM_FIELD_WEAK ? PointerKind::weak : PointerKind::strong);
            }
        });
    }
    /// Writes the object's values, but for pointers, to zeroed bytes.
    void convert(const std::byte* object, std::uint64_t size, std::byte* made, ConversionProblems& problems) const;
    /// Where a pointer to that byte of the object leads afterwards; none: what lies there is not carried over.
    [[nodiscard]] std::optional<std::uint64_t> new_place_of(const std::byte* object, std::uint64_t size,
                                                            std::uint64_t offset) const noexcept;

private:
    struct Plan;
    struct Move {
        const Field* from;
        const Field* to;
        std::uint64_t count;  ///< elements that are carried over; of a tail 0
        std::shared_ptr<const Plan> nested;
    };
    struct Plan {
        std::vector<Move> moves;
        std::vector<std::pair<const Field*, std::uint64_t>> defaults;
        const Type* from;
    };
    struct Object {
        const std::byte* bytes;
        std::uint64_t size;
    };

    std::shared_ptr<const Plan> plan(const Type& from, const DescribedType& to, NewTypes& program);
    void add_field(Plan& made, const Type& from, const Field* old_field, const Field& field, NewTypes& program);
    void add_new_field(Plan& made, const DescribedType& to, const Field& field);
    void check_removed(const Type& from, const std::set<const Field*>& used, NewTypes& program);
    void check_tags(const Plan& plan, const std::string& type);
    void tell(const std::string& type, const std::string& field, const std::string& text, bool is_refused);
    [[nodiscard]] static bool is_there(const Field& field, const std::byte* element) noexcept
    {
        return field.tag_bytes == 0 || Type::tag_at(element + field.tag_offset, field.tag_bytes) == field.tag_value;
    }
    [[nodiscard]] static std::optional<std::uint64_t> new_place_in(const Plan& plan, const std::byte* element, std::uint64_t end,
                                                                   std::uint64_t offset) noexcept;
    static void check_lost(const Plan& plan, const std::byte* element, ConversionProblems& problems);
    static void check_nested(const Plan& plan, const std::byte* element, ConversionProblems& problems);

    /// Calls visit(move, old offset, new offset, count) for each field that is there, in every element.
    template <class Visit>
    void visit_moves(Object object, Visit&& visit) const
    {
        if (from_->has_tail || to_->has_tail) {
            visit_plan(*plan_, object, 0, 0, object.size, visit);
            return;
        }
        for (std::uint64_t at = 0, made = 0; at + from_->size <= object.size; at += from_->size, made += to_->size) {
            visit_plan(*plan_, object, at, made, at + from_->size, visit);
        }
    }
    template <class Visit>
    static void visit_plan(const Plan& plan, Object object, std::uint64_t at, std::uint64_t made, std::uint64_t end, Visit&& visit)
    {
        for (const Move& move : plan.moves) {
            if (!is_there(*move.from, object.bytes + at)) {
                continue;
            }
            const std::uint64_t old_offset = at + move.from->offset;
            const std::uint64_t new_offset = made + move.to->offset;
            const std::uint64_t count = move.from->is_tail() ? (end - old_offset) / move.from->element_bytes : move.count;
            if (move.nested == nullptr) {
                visit(move, old_offset, new_offset, count);
                continue;
            }
            for (std::uint64_t i = 0; i < count; ++i) {
                const std::uint64_t begin = old_offset + i * move.from->element_bytes;
                visit_plan(*move.nested, object, begin, new_offset + i * move.to->element_bytes, begin + move.from->element_bytes, visit);
            }
        }
    }
    static void set_defaults(const Plan& plan, std::byte* made) noexcept;

    std::shared_ptr<const Type> from_;
    std::shared_ptr<const Type> to_;
    std::shared_ptr<const Plan> plan_;
    std::vector<TypeDifference> differences_;
    std::uint64_t fields_moved_ = 0;  ///< that lie elsewhere, and are as they were else
    bool is_identity_ = true;
};

}  // namespace stillpoint::breeze
