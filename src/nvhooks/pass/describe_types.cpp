#include "describe_types.hpp"

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "described_structure.hpp"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

namespace stillpoint::nvhooks {

namespace {

llvm::cl::opt<bool> drop_debug_info("stillpoint-drop-debug-info", llvm::cl::desc("Remove debug information, which only types needed"));

/// The variables of one NVM_AUTO_TYPE.
struct Request {
    llvm::GlobalVariable* shape;  ///< whose first member is a pointer to the structure
    llvm::GlobalVariable* type;   ///< the nvm_type
    llvm::GlobalVariable* hints;
};

constexpr unsigned place_of_fields = 2;  ///< in an nvm_type
constexpr unsigned place_of_count = 3;

llvm::GlobalVariable* variable_of(llvm::Constant* pointer)
{
    return llvm::dyn_cast_or_null<llvm::GlobalVariable>(pointer != nullptr ? pointer->stripPointerCasts() : nullptr);
}

llvm::Constant* operand(const llvm::GlobalVariable& variable, unsigned place)
{
    const llvm::Constant* const value = variable.hasInitializer() ? variable.getInitializer() : nullptr;
    return value != nullptr ? value->getAggregateElement(place) : nullptr;
}

std::vector<Request> requests_of(llvm::Module& module)
{
    std::vector<Request> requests;
    for (llvm::GlobalVariable& variable : module.globals()) {
        if (variable.getSection() != NVM_SHAPES_SECTION) {
            continue;
        }
        llvm::GlobalVariable* const type = variable_of(operand(variable, 1));
        llvm::GlobalVariable* const hints = type != nullptr ? variable_of(operand(*type, place_of_fields)) : nullptr;
        if (hints != nullptr && hints->hasInitializer()) {
            requests.push_back({&variable, type, hints});
        }
    }
    return requests;
}

/// The bytes of a constant without addresses; false: it has one.
bool append_bytes(const llvm::Constant& value, const llvm::DataLayout& layout, std::string& bytes)
{
    const std::size_t begin = bytes.size();
    const std::size_t size = layout.getTypeAllocSize(value.getType());
    if (value.isNullValue() || llvm::isa<llvm::UndefValue>(value)) {
        bytes.append(size, '\0');
        return true;
    }
    if (const auto* number = llvm::dyn_cast<llvm::ConstantInt>(&value)) {
        for (std::size_t i = 0; i < size; ++i) {
            bytes += static_cast<char>(number->getZExtValue() >> 8 * i);
        }
        return true;
    }
    const auto* structure = llvm::dyn_cast<llvm::StructType>(value.getType());
    const auto* array = llvm::dyn_cast<llvm::ArrayType>(value.getType());
    if (structure == nullptr && array == nullptr) {
        return false;
    }
    const std::uint64_t count = structure != nullptr ? structure->getNumElements() : array->getNumElements();
    for (unsigned i = 0; i < count; ++i) {
        if (structure != nullptr) {
            bytes.resize(begin + layout.getStructLayout(const_cast<llvm::StructType*>(structure))->getElementOffset(i));
        }
        const llvm::Constant* const element = value.getAggregateElement(i);
        if (element == nullptr || !append_bytes(*element, layout, bytes)) {
            return false;
        }
    }
    bytes.resize(begin + size);
    return true;
}

/// The program's own words on the type: the entries after the first two.
std::optional<std::vector<nvm_field>> read_hints(const llvm::GlobalVariable& variable, std::string& name)
{
    std::string bytes;
    const bool is_read = append_bytes(*variable.getInitializer(), variable.getParent()->getDataLayout(), bytes);
    if (!is_read || bytes.size() % sizeof(nvm_field) != 0 || bytes.size() < 2 * sizeof(nvm_field)) {
        return std::nullopt;
    }
    std::vector<nvm_field> entries(bytes.size() / sizeof(nvm_field));
    std::memcpy(entries.data(), bytes.data(), bytes.size());
    if (entries[1].kind != NVM_FIELD_BY_COMPILER) {
        return std::nullopt;
    }
    name.assign(entries[0].name, strnlen(entries[0].name, sizeof entries[0].name));
    entries.erase(entries.begin(), entries.begin() + 2);
    return entries;
}

/// The structure that the first member of the variable points to.
const llvm::DIType* structure_of(const llvm::GlobalVariable& shape)
{
    llvm::SmallVector<llvm::DIGlobalVariableExpression*, 1> expressions;
    shape.getDebugInfo(expressions);
    if (expressions.empty()) {
        return nullptr;
    }
    const auto* holder = llvm::dyn_cast_or_null<llvm::DICompositeType>(expressions.front()->getVariable()->getType());
    if (holder == nullptr || holder->getElements().empty()) {
        return nullptr;
    }
    const auto* member = llvm::dyn_cast<llvm::DIDerivedType>(holder->getElements()[0]);
    const auto* pointer = member != nullptr ? llvm::dyn_cast_or_null<llvm::DIDerivedType>(member->getBaseType()) : nullptr;
    return pointer != nullptr ? pointer->getBaseType() : nullptr;
}

void set_fields(llvm::Module& module, llvm::GlobalVariable& type, const std::vector<nvm_field>& entries)
{
    llvm::LLVMContext& context = module.getContext();
    const llvm::StringRef bytes(reinterpret_cast<const char*>(entries.data()), entries.size() * sizeof entries[0]);
    llvm::Constant* const content = llvm::ConstantDataArray::getString(context, bytes, /*AddNull=*/false);
    auto* const fields = new llvm::GlobalVariable(module, content->getType(), /*isConstant=*/true, llvm::GlobalValue::InternalLinkage,
                                                  content, "nvm_fields_by_compiler");
    fields->setSection(NVM_TYPES_SECTION);
    fields->setAlignment(llvm::Align(16));
    llvm::appendToUsed(module, {fields});
    auto* const before = llvm::cast<llvm::ConstantStruct>(type.getInitializer());
    llvm::SmallVector<llvm::Constant*, 8> values;
    for (const llvm::Use& value : before->operands()) {
        values.push_back(llvm::cast<llvm::Constant>(value.get()));
    }
    values[place_of_fields] = fields;
    values[place_of_count] = llvm::ConstantInt::get(values[place_of_count]->getType(), entries.size());
    type.setInitializer(llvm::ConstantStruct::get(before->getType(), values));
}

/// Describes the type; its errors.
std::vector<std::string> fulfil(llvm::Module& module, const Request& request)
{
    std::string name;
    const auto hints = read_hints(*request.hints, name);
    if (!hints) {
        return {"NVM_AUTO_TYPE: the headers of Stillpoint are of another version than its compiler: install both again"};
    }
    const llvm::DIType* const type = structure_of(*request.shape);
    if (type == nullptr) {
        return {"type " + name + ": NVM_AUTO_TYPE needs debug information of types: compile without -g0, -g1 and -gline-tables-only"};
    }
    StructureDescription described = describe_structure(name, type, *hints);
    if (described.errors.empty()) {
        set_fields(module, *request.type, described.entries);
    }
    return described.errors;
}

}  // namespace

llvm::PreservedAnalyses DescribeTypesPass::run(llvm::Module& module, llvm::ModuleAnalysisManager&)
{
    const std::vector<Request> requests = requests_of(module);
    if (requests.empty()) {
        return llvm::PreservedAnalyses::all();
    }
    for (const Request& request : requests) {
        for (const std::string& error : fulfil(module, request)) {
            module.getContext().emitError("stillpoint: " + error);
        }
    }
    llvm::removeFromUsedLists(module, [&](llvm::Constant* constant) {
        const auto* const variable = variable_of(constant);
        return variable != nullptr && variable->getSection() == NVM_SHAPES_SECTION;
    });
    for (const Request& request : requests) {
        request.shape->removeDeadConstantUsers();  // lists that it was taken from
        if (request.shape->use_empty()) {
            request.shape->eraseFromParent();
        }
    }
    return llvm::PreservedAnalyses::none();
}

llvm::PreservedAnalyses DropDebugInfoPass::run(llvm::Module& module, llvm::ModuleAnalysisManager&)
{
    const bool changed = drop_debug_info && llvm::StripDebugInfo(module);
    return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
}

}  // namespace stillpoint::nvhooks
