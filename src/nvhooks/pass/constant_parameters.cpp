#include "constant_parameters.hpp"

#include <cstdlib>
#include <memory>
#include <string>

#include "llvm/ADT/SmallVector.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/Function.h"

namespace stillpoint::nvhooks {

namespace {

/// "(char const*, std::map<int, int>&)" as its parts; commas inside of brackets part nothing.
llvm::SmallVector<llvm::StringRef, 6> parts_of(llvm::StringRef list)
{
    llvm::SmallVector<llvm::StringRef, 6> parts;
    if (!list.consume_front("(") || !list.consume_back(")") || list.empty()) {
        return parts;
    }
    int depth = 0;
    std::size_t begin = 0;
    for (std::size_t at = 0; at < list.size(); ++at) {
        depth += llvm::StringRef("<([{").contains(list[at]) ? 1 : llvm::StringRef(">)]}").contains(list[at]) ? -1 : 0;
        if (depth == 0 && list[at] == ',') {
            parts.push_back(list.slice(begin, at).trim());
            begin = at + 1;
        }
    }
    parts.push_back(list.drop_front(begin).trim());
    return parts;
}

}  // namespace

bool is_constant_parameter(const llvm::CallBase& call, unsigned argument)
{
    const llvm::Function* callee = call.getCalledFunction();
    if (callee == nullptr || !callee->getName().starts_with("_Z")) {
        return false;
    }
    const std::string mangled = callee->getName().str();  // The demangler refers to its characters as long as it is asked.
    llvm::ItaniumPartialDemangler name;
    if (name.partialDemangle(mangled.c_str()) || !name.isFunction()) {
        return false;
    }
    const std::unique_ptr<char, decltype(&std::free)> text(name.getFunctionParameters(nullptr, nullptr), &std::free);
    const auto parameters = parts_of(text ? text.get() : "");
    const unsigned result = call.hasStructRetAttr() ? 1 : 0;
    // A class passed in two registers, or a variable list: the places do not agree.
    const std::size_t passed = call.arg_size() - result;
    if (argument < result || (passed != parameters.size() && passed != parameters.size() + 1)) {
        return false;
    }
    const std::size_t place = argument - result;
    const bool has_object = passed == parameters.size() + 1;
    if (has_object && place == 0) {
        return name.hasFunctionQualifiers();
    }
    const llvm::StringRef parameter = parameters[place - (has_object ? 1 : 0)];
    return parameter.ends_with("const*") || parameter.ends_with("const&");
}

}  // namespace stillpoint::nvhooks
