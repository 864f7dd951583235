#pragma once
// What functions that the pass does not compile do to the memory that they are given [NVHooks §4.1.1, Breeze §3.2.4].

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/Support/Error.h"

namespace stillpoint::nvhooks {

/// Bytes, as an expression over a call's arguments: `strlen(arg1) + 1`, `arg1 * arg2`, `return`.
class SizeExpression {
public:
    struct Node;  ///< the parsed tree

    /// Errors: what is wrong, with the column in `text`.
    [[nodiscard]] static llvm::Expected<SizeExpression> parse(llvm::StringRef text);

    /// The value as i64. `result` is the call's result where it has returned, null before.
    [[nodiscard]] llvm::Value *emit(llvm::IRBuilder<> &builder, llvm::CallBase &call, llvm::Value *result) const;
    /// Whether it reads memory that the call may change (strlen): it must then be evaluated before the call.
    [[nodiscard]] bool reads_memory() const;
    /// Whether it needs the call's result.
    [[nodiscard]] bool uses_result() const;
    /// Highest argument index named; -1 for none.
    [[nodiscard]] int last_argument() const;

private:
    std::shared_ptr<const Node> root_;
};

/// One run of bytes that a call reads or writes: [argument + offset, + size).
struct MemoryEffect {
    bool writes = false;
    unsigned pointer_argument = 0;
    std::optional<SizeExpression> offset;   ///< none: 0. E.g. strcat: strlen(arg0)
    std::optional<SizeExpression> size;     ///< none: unknown
    std::optional<SizeExpression> at_most;  ///< for the hook before the call, where `size` uses the result
};

struct FunctionDescription {
    std::string name;
    std::vector<MemoryEffect> effects;
    bool keeps_fase = false;  ///< neither begins nor ends a FASE, and always returns (or throws)
};

class Descriptions {
public:
    /// The built-in table for libc, and `files`. Errors: "path:line:column: error: ..."; a file that cannot be read.
    [[nodiscard]] static llvm::Expected<Descriptions> load(llvm::ArrayRef<std::string> files);

    /// Null: nothing is known of the callee. Also null for functions with a body in this module.
    [[nodiscard]] const FunctionDescription *find(const llvm::CallBase &call) const;
    [[nodiscard]] const FunctionDescription *find(llvm::StringRef function) const;

    /// Takes over what attributes in `module` say (annotate("nvm_write:arg0:arg2"), stillpoint/nvhooks.h). Errors: a bad expression.
    [[nodiscard]] llvm::Error add_attributes(const llvm::Module &module);

private:
    llvm::StringMap<FunctionDescription> functions_;
};

}  // namespace stillpoint::nvhooks
