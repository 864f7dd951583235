#pragma once
// Descriptions of functions that the pass does not compile: their effects on memory [NVHooks 4.1.1, Figure 4.3; Breeze 3.2.4].
// From three places: the built-in tables (libc.yaml, libstdcxx.yaml), the layer's files, and `annotate` attributes.
// Format: docs/guide/nvhooks-descriptions.md.

#include <memory>
#include <optional>
#include <string>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "size_expression.hpp"

namespace stillpoint::nvhooks {

/// One run of bytes that a call reads or writes.
struct MemoryEffect {
    bool writes = false;
    /// The argument that `pointer` starts from, as the call's operand index.
    unsigned pointer_argument = 0;
    /// The run begins at what lies at the argument, not at the argument (load64): whether that is on the stack is unknown.
    bool indirect = false;
    /// Where the run begins: mostly `argN`; for strcat `arg0 + strlen(arg0)`.
    SizeExpression pointer;
    SizeExpression size;
    /// An upper bound of `size` that is known before the call. Present whenever `size` needs the call's result and `writes` is set.
    std::optional<SizeExpression> at_most;

    /// Where the run begins. Emit it before the call, and use the value after it too: what it is computed from may change.
    [[nodiscard]] llvm::Value* emit_pointer(llvm::IRBuilder<>& builder, llvm::CallBase& call) const
    {
        return pointer.emit_pointer(builder, call, nullptr);
    }
    /// The run begins where the argument points.
    [[nodiscard]] bool at_argument() const { return pointer == SizeExpression::argument(pointer_argument); }
    /// The arguments that the hook before the call needs.
    [[nodiscard]] const SizeExpression& size_before() const { return at_most ? *at_most : size; }
    /// The bytes that the call will touch, or an upper bound. Emit it before the call, and where size_before().reads_memory()
    /// only under the check that the run is durable: strlen costs. The hook after the call uses this value again, unless
    /// size.uses_result(): then emit `size` there.
    [[nodiscard]] llvm::Value* emit_size_before(llvm::IRBuilder<>& builder, llvm::CallBase& call) const
    {
        return size_before().emit(builder, call, nullptr);
    }

    friend bool operator==(const MemoryEffect&, const MemoryEffect&) = default;
};

/// The description of one function.
struct FunctionDescription {
    std::string name;
    llvm::SmallVector<MemoryEffect, 2> effects;
    /// Neither begins nor ends a FASE, calls no function of the program, does not longjmp.
    bool keeps_fase = false;
    /// Touches nothing through its arguments but what `effects` says. False where a part could not be described.
    bool complete = true;
    /// The only argument through which it writes what `effects` does not say; absent: any.
    std::optional<unsigned> rest_argument;
    /// Every pointer that it is passed must be an address, not only those of `effects`: libc knows no relative pointers. Not set where
    /// it hands a pointer on to the program (pthread_create).
    bool takes_addresses = false;
    /// The argument that is a scanf format, whose pointers follow it.
    std::optional<unsigned> scanf_format;

    [[nodiscard]] bool writes() const;
    [[nodiscard]] bool reads() const;
    /// Writes nothing of the program's through its arguments.
    [[nodiscard]] bool known_harmless() const { return complete && !writes(); }

    friend bool operator==(const FunctionDescription&, const FunctionDescription&) = default;
};

/// A description, and the file that it is from.
struct DescribedFunction {
    FunctionDescription description;
    std::string path;
};
using DescriptionTable = llvm::StringMap<DescribedFunction>;

/// Every description of one compilation. Not shared between threads.
class Descriptions {
public:
    /// The built-in tables, and `files`. Errors: "path:line:column: error: ..."; a file that cannot be read. Among them an unknown
    /// key, an expression that is none, and a function that is described twice and differently.
    [[nodiscard]] static llvm::Expected<Descriptions> load(llvm::ArrayRef<std::string> files);

    /// Takes over what attributes in `module` say (annotate("nvm_write:arg0:arg2")); forgets those of a module before.
    /// Errors: what is wrong with which function's attribute.
    [[nodiscard]] llvm::Error add_attributes(const llvm::Module& module);

    /// Null: nothing is known of the callee. Also null for functions with a body in this module, indirect calls and intrinsics.
    /// The pointer is valid as long as this object.
    [[nodiscard]] const FunctionDescription* find(const llvm::CallBase& call) const;
    /// The description of a function itself, by its attributes and name; without what a call adds (scanf formats).
    [[nodiscard]] const FunctionDescription* find(const llvm::Function& function) const;
    /// The description of that name, without attributes.
    [[nodiscard]] const FunctionDescription* find(llvm::StringRef function) const;

private:
    using Cache = llvm::StringMap<std::shared_ptr<FunctionDescription>>;

    [[nodiscard]] const FunctionDescription* exact(llvm::StringRef name) const;
    [[nodiscard]] const FunctionDescription* with_struct_result(const FunctionDescription&, const llvm::CallBase&) const;
    [[nodiscard]] const FunctionDescription* with_scanf_pointers(const FunctionDescription&, const llvm::CallBase&) const;

    DescriptionTable functions_;
    llvm::SmallVector<std::string, 8> prefixes_;  ///< names that end in `*`, without it; longest first
    llvm::DenseMap<const llvm::Function*, std::shared_ptr<FunctionDescription>> attributed_;
    mutable Cache made_for_calls_;
};

}  // namespace stillpoint::nvhooks
