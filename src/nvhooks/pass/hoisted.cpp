#include "hoisted.hpp"

#include <algorithm>

#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/Metadata.h"
#include "llvm/IR/Module.h"

namespace stillpoint::nvhooks {

namespace {

/// In a module: one access group for each kind of site.
constexpr llvm::StringRef groups_name = "stillpoint.hoisted";
constexpr unsigned kinds = static_cast<unsigned>(SiteKind::pointer_stored);

llvm::MDNode* group_of(const llvm::Module& module, SiteKind kind)
{
    const llvm::NamedMDNode* groups = module.getNamedMetadata(groups_name);
    return groups == nullptr ? nullptr : groups->getOperand(static_cast<unsigned>(kind));
}

}  // namespace

void note_hoisted(llvm::Instruction& access, SiteKind kind)
{
    llvm::Module& module = *access.getModule();
    llvm::NamedMDNode* groups = module.getOrInsertNamedMetadata(groups_name);
    while (groups->getNumOperands() < kinds) {
        groups->addOperand(llvm::MDNode::getDistinct(module.getContext(), {}));
    }
    access.setMetadata(llvm::LLVMContext::MD_access_group,
                       llvm::uniteAccessGroups(access.getMetadata(llvm::LLVMContext::MD_access_group), group_of(module, kind)));
}

bool is_hoisted(const llvm::Instruction& access, SiteKind kind)
{
    if (kind == SiteKind::pointer_stored) {
        return false;
    }
    const llvm::MDNode* of_access = access.getMetadata(llvm::LLVMContext::MD_access_group);
    const llvm::MDNode* group = of_access == nullptr ? nullptr : group_of(*access.getModule(), kind);
    if (group == nullptr) {
        return false;
    }
    return of_access == group || std::any_of(of_access->op_begin(), of_access->op_end(),
                                             [group](const llvm::MDOperand& operand) { return operand.get() == group; });
}

}  // namespace stillpoint::nvhooks
