#include "descriptions.hpp"

#include <algorithm>

#include "built_in_tables.hpp"
#include "description_file.hpp"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/Support/MemoryBuffer.h"
#include "scanf_format.hpp"
#include "yaml_errors.hpp"

namespace stillpoint::nvhooks {

namespace {

/// LLVM's own knowledge of a function that only reads: it takes no lock either, since that writes.
const FunctionDescription& reader()
{
    static const FunctionDescription description = [] {
        FunctionDescription made;
        made.keeps_fase = true;
        return made;
    }();
    return description;
}

/// libc's functions that give a pointer back to the program as they got it: later, or to a function of the program.
bool hands_on_pointers(llvm::StringRef function)
{
    static constexpr llvm::StringLiteral names[] = {"pthread_create", "pthread_setspecific",
                                                    "thrd_create",    "tss_set",
                                                    "on_exit",        "__cxa_atexit",
                                                    "qsort_r",        "bsearch",
                                                    "lfind",          "lsearch",
                                                    "tsearch",        "tfind",
                                                    "tdelete",        "hsearch",
                                                    "hsearch_r"};
    return llvm::is_contained(names, function);
}

/// The name of the function that `name` is a variant of, with the same leading arguments; empty if it is none.
llvm::StringRef base_name(llvm::StringRef name)
{
    if (name.starts_with("_Z")) {
        return {};
    }
    if (name.consume_front("__isoc99_") || name.consume_front("__isoc23_")) {
        return name;
    }
    if (name.starts_with("__") && name.ends_with("_chk")) {
        return name.drop_front(2).drop_back(4);
    }
    if (name.ends_with("64")) {
        return name.drop_back(2);
    }
    return {};
}

/// Whether `call` passes what the description speaks of.
bool fits(const FunctionDescription& description, const llvm::CallBase& call)
{
    const auto has = [&](const SizeExpression& expression) { return expression.last_argument() < static_cast<int>(call.arg_size()); };
    for (const MemoryEffect& effect : description.effects) {
        if (!has(effect.pointer) || !has(effect.size) || (effect.at_most && !has(*effect.at_most))) {
            return false;
        }
        const bool gives_number = call.getType()->isIntegerTy() || call.getType()->isPointerTy();
        if (effect.size.uses_result() && !gives_number) {
            return false;
        }
        if (!call.getArgOperand(effect.pointer_argument)->getType()->isPointerTy()) {
            return false;
        }
    }
    return true;
}

const llvm::Function* callee_of(const llvm::CallBase& call)
{
    return llvm::dyn_cast<llvm::Function>(call.getCalledOperand()->stripPointerCastsAndAliases());
}

/// Instrumented itself, in this module. A body that is only there to be inlined is not what runs.
bool has_own_body(const llvm::Function& function) { return !function.isDeclaration() && !function.hasAvailableExternallyLinkage(); }

/// "file:line" of an element of llvm.global.annotations.
std::string place_of(const llvm::ConstantStruct& attribute)
{
    llvm::StringRef file;
    const auto* line = llvm::dyn_cast<llvm::ConstantInt>(attribute.getOperand(3));
    if (!llvm::getConstantStringInfo(attribute.getOperand(2), file) || line == nullptr) {
        return "<unknown>";
    }
    return (file + ":" + llvm::Twine(line->getZExtValue())).str();
}

}  // namespace

bool FunctionDescription::writes() const
{
    return llvm::any_of(effects, [](const MemoryEffect& effect) { return effect.writes; });
}

bool FunctionDescription::reads() const
{
    return llvm::any_of(effects, [](const MemoryEffect& effect) { return !effect.writes; });
}

const FunctionDescription* Descriptions::exact(llvm::StringRef name) const
{
    const auto found = functions_.find(name);
    return found == functions_.end() ? nullptr : &found->second.description;
}

const FunctionDescription* Descriptions::find(llvm::StringRef function) const
{
    function.consume_front("\01");  // An assembler name, taken literally.
    while (!function.empty()) {
        if (const FunctionDescription* found = exact(function)) {
            return found;
        }
        const auto prefix = llvm::find_if(prefixes_, [&](const std::string& one) { return function.starts_with(one); });
        if (prefix != prefixes_.end()) {
            return exact(*prefix + "*");
        }
        function = base_name(function);
    }
    return nullptr;
}

const FunctionDescription* Descriptions::find(const llvm::Function& function) const
{
    if (function.isIntrinsic() || has_own_body(function)) {
        return nullptr;
    }
    const auto attributed = attributed_.find(&function);
    if (attributed != attributed_.end()) {
        return attributed->second.get();
    }
    if (const FunctionDescription* named = find(function.getName())) {
        return named;
    }
    return function.onlyReadsMemory() ? &reader() : nullptr;
}

const FunctionDescription* Descriptions::find(const llvm::CallBase& call) const
{
    if (call.isInlineAsm()) {
        return nullptr;
    }
    const llvm::Function* callee = callee_of(call);
    if (callee != nullptr && (callee->isIntrinsic() || has_own_body(*callee))) {
        return nullptr;
    }
    const FunctionDescription* found = callee != nullptr ? find(*callee) : nullptr;
    if (found != nullptr && call.hasStructRetAttr()) {
        found = with_struct_result(*found, call);
    }
    if (found != nullptr && found->scanf_format && *found->scanf_format < call.arg_size()) {
        found = with_scanf_pointers(*found, call);
    }
    if (found != nullptr && fits(*found, call)) {
        return found;
    }
    return call.onlyReadsMemory() ? &reader() : nullptr;
}

const FunctionDescription* Descriptions::with_struct_result(const FunctionDescription& description, const llvm::CallBase& call) const
{
    const std::uint64_t bytes = call.getModule()->getDataLayout().getTypeAllocSize(call.getParamStructRetType(0)).getFixedValue();
    std::shared_ptr<FunctionDescription>& made = made_for_calls_[description.name + "|" + std::to_string(bytes)];
    if (made == nullptr) {
        made = std::make_shared<FunctionDescription>(description);
        for (MemoryEffect& effect : made->effects) {
            ++effect.pointer_argument;
            effect.pointer = effect.pointer.shifted();
            effect.size = effect.size.shifted();
            if (effect.at_most) {
                effect.at_most = effect.at_most->shifted();
            }
        }
        MemoryEffect result;
        result.writes = true;
        result.pointer = SizeExpression::argument(0);
        result.size = SizeExpression::number(bytes);
        made->effects.push_back(result);
    }
    return made.get();
}

const FunctionDescription* Descriptions::with_scanf_pointers(const FunctionDescription& description, const llvm::CallBase& call) const
{
    const unsigned place = *description.scanf_format;
    llvm::StringRef format;
    const bool known = llvm::getConstantStringInfo(call.getArgOperand(place), format);
    std::shared_ptr<FunctionDescription>& made = made_for_calls_[description.name + (known ? "|" + format.str() : "")];
    if (made == nullptr) {
        made = std::make_shared<FunctionDescription>(description);
        made->complete = known && add_scanf_pointers(format, call.getFunctionType()->getNumParams(), made->effects);
    }
    return made.get();
}

llvm::Expected<Descriptions> Descriptions::load(llvm::ArrayRef<std::string> files)
{
    Descriptions descriptions;
    for (const auto& [path, text] : built_in_tables) {
        const std::unique_ptr<llvm::MemoryBuffer> table = llvm::MemoryBuffer::getMemBuffer(text, path);
        if (llvm::Error error = read_descriptions(*table, path, descriptions.functions_)) {
            return error;
        }
    }
    for (auto& entry : descriptions.functions_) {
        entry.second.description.takes_addresses = !hands_on_pointers(entry.first());
    }
    for (const std::string& path : files) {
        auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
        if (!file) {
            return llvm::createStringError(file.getError(), "%s:1:1: error: the descriptions cannot be read: %s", path.c_str(),
                                           file.getError().message().c_str());
        }
        std::string broken;
        check_syntax(**file, path, broken);
        if (!broken.empty()) {
            return llvm::createStringError(llvm::inconvertibleErrorCode(), llvm::StringRef(broken).rtrim('\n').str());
        }
        if (llvm::Error error = read_descriptions(**file, path, descriptions.functions_)) {
            return error;
        }
    }
    for (const auto& entry : descriptions.functions_) {
        if (entry.first().ends_with("*")) {
            descriptions.prefixes_.push_back(entry.first().drop_back().str());
        }
    }
    llvm::sort(descriptions.prefixes_, [](const std::string& one, const std::string& other) { return one.size() > other.size(); });
    return descriptions;
}

llvm::Error Descriptions::add_attributes(const llvm::Module& module)
{
    attributed_.clear();
    const llvm::GlobalVariable* attributes = module.getGlobalVariable("llvm.global.annotations");
    const auto* list = attributes != nullptr ? llvm::dyn_cast<llvm::ConstantArray>(attributes->getInitializer()) : nullptr;
    if (list == nullptr) {
        return llvm::Error::success();
    }
    for (const llvm::Use& element : list->operands()) {
        const auto* attribute = llvm::dyn_cast<llvm::ConstantStruct>(element);
        const auto* function = llvm::dyn_cast<llvm::Function>(attribute->getOperand(0)->stripPointerCasts());
        llvm::StringRef text;
        if (function == nullptr || !llvm::getConstantStringInfo(attribute->getOperand(1), text)) {
            continue;
        }
        std::shared_ptr<FunctionDescription>& description = attributed_[function];
        const bool first = description == nullptr;
        if (first) {
            description = std::make_shared<FunctionDescription>();
            description->name = function->getName().str();
        }
        llvm::Expected<bool> ours = read_attribute(text, *description);
        if (!ours) {
            const std::string where = place_of(*attribute) + ": error: attribute \"" + text.str() + "\" of '" + function->getName().str();
            return llvm::createStringError(llvm::inconvertibleErrorCode(), where + "': " + llvm::toString(ours.takeError()));
        }
        if (!*ours && first) {
            attributed_.erase(function);
        }
    }
    return llvm::Error::success();
}

}  // namespace stillpoint::nvhooks
