#pragma once
// The expression in a description for a number of bytes, or of an address: `strlen(arg1) + 1`, `arg0 + strlen(arg0)`.
// Language: docs/guide/nvhooks-descriptions.md. Parsed once when a file is read, emitted as IR at each call.

#include <cstdint>
#include <optional>
#include <string>

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/Support/Error.h"

namespace stillpoint::nvhooks {

/// Where and why a text is not an expression.
struct ExpressionError {
    std::size_t offset = 0;  ///< Bytes from the text's start.
    std::string message;
};

/// An expression over a call's arguments and result. Unsigned 64-bit arithmetic; a difference below 0 is 0, as is
/// a negative `int` argument, and a negative result in `return`.
class SizeExpression {
public:
    /// Nothing, and `error` filled in, where `text` is not an expression.
    [[nodiscard]] static std::optional<SizeExpression> parse(llvm::StringRef text, ExpressionError& error);
    /// Parses for callers that have no place of their own to name. Errors: "column N: what is wrong".
    [[nodiscard]] static llvm::Expected<SizeExpression> parse(llvm::StringRef text);
    [[nodiscard]] static SizeExpression argument(unsigned index);
    [[nodiscard]] static SizeExpression number(std::uint64_t value);

    /// The value as an i64, for `call`, at the builder's place. `result` is the call's result, or null before the call;
    /// then uses_result() must be false. Expressions that read memory (reads_memory()) must be emitted
    /// before the call: the callee may change what they read.
    [[nodiscard]] llvm::Value* emit(llvm::IRBuilder<>& builder, llvm::CallBase& call, llvm::Value* result) const;
    /// The expression as a pointer: `arg0 + 4` becomes an address computation on arg0.
    [[nodiscard]] llvm::Value* emit_pointer(llvm::IRBuilder<>& builder, llvm::CallBase& call, llvm::Value* result) const;

    /// Needs what the call returned.
    [[nodiscard]] bool uses_result() const;
    /// Calls strlen and the like, or loads: not to be emitted where the value is not used.
    [[nodiscard]] bool reads_memory() const;
    /// The value where it is the same for each call.
    [[nodiscard]] std::optional<std::uint64_t> constant() const;
    /// Highest argument index named; -1 for none.
    [[nodiscard]] int last_argument() const;
    /// The expression with every argument index one higher.
    [[nodiscard]] SizeExpression shifted() const;
    /// The argument that the expression begins with, itself or inside a load.
    [[nodiscard]] std::optional<unsigned> first_argument() const;
    /// `argN` or a sum that begins with it: the argument is the address, not what lies there.
    [[nodiscard]] bool starts_with_argument() const;

    friend bool operator==(const SizeExpression&, const SizeExpression&) = default;

    enum class Operation : std::uint8_t {
        // clang-format off
        number, argument, result, failed,
        add, subtract, multiply, minimum, maximum, equal, less, choose,
        string_length, bounded_string_length, wide_string_length, load32, load64, formatted, formatted_list,
        // clang-format on
    };

private:
    friend class ExpressionParser;
    friend class ExpressionEmitter;

    struct Step {
        Operation operation = Operation::number;
        std::uint64_t value = 0;  ///< The number, or the argument's index.
        friend bool operator==(const Step&, const Step&) = default;
    };
    llvm::SmallVector<Step, 4> steps_;  ///< Operands before their operation.
};

}  // namespace stillpoint::nvhooks
