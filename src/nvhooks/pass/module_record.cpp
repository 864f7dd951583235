#include "module_record.hpp"

#include "llvm/IR/Constants.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"
#include "nvhooks/abi/nvhooks_abi.h"

namespace stillpoint::nvhooks {

namespace {

/// The text, cut at its front where it is too long, filled up with zeroes.
llvm::Constant* text_of(llvm::LLVMContext& context, llvm::StringRef text, std::size_t bytes)
{
    std::string padded = text.take_back(bytes - 1).str();
    padded.resize(bytes, '\0');
    return llvm::ConstantDataArray::getString(context, padded, /*AddNull=*/false);
}

}  // namespace

void add_module_record(llvm::Module& module, const Layer& layer, unsigned hooks)
{
    llvm::LLVMContext& context = module.getContext();
    llvm::Type* i64 = llvm::Type::getInt64Ty(context);
    llvm::Type* i32 = llvm::Type::getInt32Ty(context);
    const bool marks = layer.marks == Marks::cards;
    llvm::Constant* fields[] = {
        llvm::ConstantInt::get(i64, NVHOOKS_MODULE_MAGIC),
        llvm::ConstantInt::get(i32, NVHOOKS_ABI_VERSION),
        llvm::ConstantInt::get(i32, marks ? NVHOOKS_MODULE_MARKS_CARDS : NVHOOKS_MODULE_CALLS_HOOKS),
        llvm::ConstantInt::get(i32, marks ? layer.cards->shift : 0),
        llvm::ConstantInt::get(i32, hooks),
        text_of(context, layer.name, sizeof(nvhooks_module::layer)),
        text_of(context, module.getSourceFileName(), sizeof(nvhooks_module::source)),
    };
    llvm::Constant* record = llvm::ConstantStruct::getAnon(context, fields);
    auto* variable = new llvm::GlobalVariable(module, record->getType(), /*isConstant=*/true, llvm::GlobalValue::PrivateLinkage, record,
                                              "nvhooks.module");
    variable->setSection(NVHOOKS_MODULE_SECTION);
    variable->setAlignment(llvm::Align(8));
    llvm::appendToUsed(module, {variable});
}

void keep_apart(llvm::Function& function)
{
    if (!function.hasLinkOnceODRLinkage()) {
        return;
    }
    const std::string name = function.getName().str() + ".nvhooks";
    const llvm::Comdat* comdat = function.getComdat();
    function.setName(name);
    if (comdat != nullptr) {
        llvm::Comdat* own = function.getParent()->getOrInsertComdat(function.getName());
        own->setSelectionKind(comdat->getSelectionKind());
        function.setComdat(own);
    }
}

}  // namespace stillpoint::nvhooks
