#include "library_bodies.hpp"

#include "library_bodies_bitcode.hpp"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/Constants.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm_version.hpp"

namespace stillpoint::nvhooks {

namespace {

using Bodies = std::unique_ptr<llvm::Module>;

llvm::Expected<Bodies> read_bodies(llvm::LLVMContext& context)
{
    const llvm::StringRef bytes(reinterpret_cast<const char*>(library_bodies_bitcode), sizeof library_bodies_bitcode);
    return llvm::parseBitcodeFile(llvm::MemoryBufferRef(bytes, "libstdc++'s functions in the plugin"), context);
}

/// The bodies were compiled once, for any program: what they say of the processor and of flags is dropped.
void adapt(llvm::Module& bodies, const llvm::Module& module)
{
    bodies.setTargetTriple(module.getTargetTriple());
    bodies.setDataLayout(module.getDataLayout());
    for (const char* name : {"llvm.module.flags", "llvm.ident"}) {
        if (llvm::NamedMDNode* metadata = bodies.getNamedMetadata(name)) {
            bodies.eraseNamedMetadata(metadata);
        }
    }
    for (llvm::Function& body : bodies) {
        for (const char* attribute : {"target-cpu", "target-features", "tune-cpu", "frame-pointer"}) {
            body.removeFnAttr(attribute);
        }
    }
}

/// The module's function for which a body stands; null where the module does not use it, or defines it itself.
llvm::Function* used_declaration(llvm::Module& module, llvm::StringRef body)
{
    if (!body.consume_front(body_prefix)) {
        return nullptr;
    }
    llvm::Function* function = module.getFunction(body);
    const bool is_ours = function != nullptr && !function->use_empty() &&
                         (function->isDeclaration() || function->hasAvailableExternallyLinkage());
    return is_ours ? function : nullptr;
}

/// As an inline function: the linker keeps one of a program.
void make_inline(llvm::Function& body)
{
    body.setLinkage(llvm::GlobalValue::LinkOnceODRLinkage);
    body.setVisibility(llvm::GlobalValue::HiddenVisibility);
    body.setDSOLocal(true);
    body.setComdat(body.getParent()->getOrInsertComdat(body.getName()));
}

}  // namespace

llvm::Error use_library_bodies(llvm::Module& module)
{
    // The bodies know the layout of structures on machines with 64-bit pointers.
    if (module.getDataLayout().getPointerSizeInBits() != 64) {
        return llvm::Error::success();
    }
    auto bodies = read_bodies(module.getContext());
    if (!bodies) {
        return bodies.takeError();
    }
    adapt(**bodies, module);
    llvm::SmallVector<std::string, 8> used;
    for (const llvm::Function& body : **bodies) {
        llvm::Function* declaration = used_declaration(module, body.getName());
        if (declaration == nullptr) {
            continue;
        }
        auto* wanted = llvm::Function::Create(declaration->getFunctionType(), llvm::GlobalValue::ExternalLinkage, body.getName(), module);
        declaration->replaceAllUsesWith(wanted);
        used.push_back(body.getName().str());
    }
    if (used.empty()) {
        return llvm::Error::success();
    }
    if (llvm::Linker::linkModules(module, std::move(*bodies), llvm::Linker::Flags::LinkOnlyNeeded)) {
        return llvm::createStringError(llvm::inconvertibleErrorCode(), "the plugin's bodies of libstdc++'s functions do not fit in");
    }
    for (const std::string& name : used) {
        make_inline(*module.getFunction(name));
    }
    return llvm::Error::success();
}

}  // namespace stillpoint::nvhooks
