#include "debug_shape.hpp"

#include "llvm/BinaryFormat/Dwarf.h"

namespace stillpoint::nvhooks {

using llvm::dyn_cast;
using llvm::dyn_cast_or_null;

const llvm::DIType* without_names(const llvm::DIType* type, bool& is_weak)
{
    while (const auto* derived = dyn_cast_or_null<llvm::DIDerivedType>(type)) {
        switch (derived->getTag()) {
        case llvm::dwarf::DW_TAG_typedef:
        case llvm::dwarf::DW_TAG_const_type:
        case llvm::dwarf::DW_TAG_volatile_type:
        case llvm::dwarf::DW_TAG_restrict_type:
        case llvm::dwarf::DW_TAG_atomic_type:
            is_weak = is_weak || derived->getName() == "nvm_weak";
            type = derived->getBaseType();
            continue;
        default: return type;
        }
    }
    is_weak = is_weak || (type != nullptr && type->getName() == "nvm_weak");
    return type;
}

Shape shape_of(const llvm::DIType* type)
{
    Shape shape;
    type = without_names(type, shape.is_weak);
    while (const auto* array = dyn_cast_or_null<llvm::DICompositeType>(type)) {
        if (array->getTag() != llvm::dwarf::DW_TAG_array_type) {
            break;
        }
        shape.is_array = true;
        for (const llvm::DINode* dimension : array->getElements()) {
            const auto* range = dyn_cast_or_null<llvm::DISubrange>(dimension);
            const auto count = range != nullptr ? range->getCount() : llvm::DISubrange::BoundType();
            const auto* number = count.is<llvm::ConstantInt*>() ? count.get<llvm::ConstantInt*>() : nullptr;
            if (number == nullptr || number->getSExtValue() <= 0) {
                shape.is_open = true;
            } else {
                shape.count *= number->getZExtValue();
            }
        }
        type = without_names(array->getBaseType(), shape.is_weak);
    }
    shape.element = type;
    return shape;
}

const llvm::DICompositeType* as_record(const llvm::DIType* type)
{
    const auto* record = dyn_cast_or_null<llvm::DICompositeType>(type);
    const bool is_record = record != nullptr &&
                           (record->getTag() == llvm::dwarf::DW_TAG_structure_type || record->getTag() == llvm::dwarf::DW_TAG_class_type ||
                            record->getTag() == llvm::dwarf::DW_TAG_union_type);
    return is_record ? record : nullptr;
}

bool is_union(const llvm::DICompositeType& record) { return record.getTag() == llvm::dwarf::DW_TAG_union_type; }

std::vector<const llvm::DIDerivedType*> members_of(const llvm::DICompositeType& record)
{
    std::vector<const llvm::DIDerivedType*> members;
    for (const llvm::DINode* element : record.getElements()) {
        const auto* member = dyn_cast_or_null<llvm::DIDerivedType>(element);
        const bool has_bytes = member != nullptr && !member->isStaticMember() &&
                               (member->getTag() == llvm::dwarf::DW_TAG_member || member->getTag() == llvm::dwarf::DW_TAG_inheritance);
        if (has_bytes) {
            members.push_back(member);
        }
    }
    return members;
}

bool is_pointer(const llvm::DIType* type)
{
    if (type == nullptr) {
        return false;
    }
    switch (type->getTag()) {
    case llvm::dwarf::DW_TAG_pointer_type:
    case llvm::dwarf::DW_TAG_reference_type:
    case llvm::dwarf::DW_TAG_rvalue_reference_type:
    case llvm::dwarf::DW_TAG_ptr_to_member_type: return true;
    default: return false;
    }
}

}  // namespace stillpoint::nvhooks
