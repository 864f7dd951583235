#include "size_expression.hpp"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace stillpoint::nvhooks {

namespace {

using Operation = SizeExpression::Operation;

constexpr unsigned arguments_max = 64;
constexpr unsigned nesting_max = 64;

struct Function {
    Operation operation;
    unsigned operands;
};

std::optional<Function> function_called(llvm::StringRef name)
{
    return llvm::StringSwitch<std::optional<Function>>(name)
        .Case("min", Function{Operation::minimum, 2})
        .Case("max", Function{Operation::maximum, 2})
        .Case("if", Function{Operation::choose, 3})
        .Case("strlen", Function{Operation::string_length, 1})
        .Case("strnlen", Function{Operation::bounded_string_length, 2})
        .Case("wcslen", Function{Operation::wide_string_length, 1})
        .Case("load32", Function{Operation::load32, 1})
        .Case("load64", Function{Operation::load64, 1})
        .Case("formatted", Function{Operation::formatted, 1})
        .Case("vformatted", Function{Operation::formatted_list, 2})
        .Default(std::nullopt);
}

unsigned operands_of(Operation operation)
{
    switch (operation) {
    case Operation::number:
    case Operation::argument:
    case Operation::result:
    case Operation::failed: return 0;
    case Operation::string_length:
    case Operation::wide_string_length:
    case Operation::load32:
    case Operation::load64:
    case Operation::formatted: return 1;
    case Operation::choose: return 3;
    default: return 2;
    }
}

}  // namespace

/// Recursive descent; the text is short and comes from a file, so depth is bounded.
class ExpressionParser {
public:
    ExpressionParser(llvm::StringRef text, ExpressionError& error) : text_(text), error_(error) {}

    bool whole(SizeExpression& expression)
    {
        if (!comparison(expression)) {
            return false;
        }
        skip_space();
        return at_ == text_.size() || fail("expected an operator (+ - * == <) or the end");
    }

private:
    bool fail(const llvm::Twine& message)
    {
        error_.offset = at_;
        error_.message = message.str();
        return false;
    }

    void skip_space()
    {
        while (at_ < text_.size() && llvm::isSpace(text_[at_])) {
            ++at_;
        }
    }

    bool take(llvm::StringRef token)
    {
        skip_space();
        if (!text_.substr(at_).starts_with(token)) {
            return false;
        }
        at_ += token.size();
        return true;
    }

    static bool push(SizeExpression& expression, Operation operation, std::uint64_t value = 0)
    {
        expression.steps_.push_back({operation, value});
        return true;
    }

    bool comparison(SizeExpression& expression)
    {
        if (depth_ == nesting_max) {
            return fail("nested too deeply");
        }
        ++depth_;
        const bool understood = compared(expression);
        --depth_;
        return understood;
    }

    bool compared(SizeExpression& expression)
    {
        if (!sum(expression)) {
            return false;
        }
        if (take("==")) {
            return sum(expression) && push(expression, Operation::equal);
        }
        if (take("<")) {
            return sum(expression) && push(expression, Operation::less);
        }
        return true;
    }

    bool sum(SizeExpression& expression)
    {
        if (!product(expression)) {
            return false;
        }
        while (true) {
            const bool add = take("+");
            if (!add && !take("-")) {
                return true;
            }
            if (!product(expression)) {
                return false;
            }
            push(expression, add ? Operation::add : Operation::subtract);
        }
    }

    bool product(SizeExpression& expression)
    {
        if (!atom(expression)) {
            return false;
        }
        while (take("*")) {
            if (!atom(expression)) {
                return false;
            }
            push(expression, Operation::multiply);
        }
        return true;
    }

    bool atom(SizeExpression& expression)
    {
        skip_space();
        if (take("(")) {
            return comparison(expression) && (take(")") || fail("expected ')'"));
        }
        const std::size_t start = at_;
        while (at_ < text_.size() && (llvm::isAlnum(text_[at_]) || text_[at_] == '_')) {
            ++at_;
        }
        const llvm::StringRef word = text_.slice(start, at_);
        if (word.empty()) {
            return fail("expected a number, argN, return, or a function such as strlen(arg1)");
        }
        if (llvm::isDigit(word.front())) {
            std::uint64_t value = 0;
            at_ = word.getAsInteger(0, value) ? start : at_;
            return at_ != start ? push(expression, Operation::number, value) : fail("'" + word + "' is not a number");
        }
        return named(expression, word, start);
    }

    bool named(SizeExpression& expression, llvm::StringRef word, std::size_t start)
    {
        if (word == "return") {
            return push(expression, Operation::result);
        }
        if (word == "failed") {
            return push(expression, Operation::failed);
        }
        llvm::StringRef digits = word;
        unsigned index = 0;
        if (digits.consume_front("arg") && !digits.empty() && llvm::all_of(digits, llvm::isDigit)) {
            if (digits.getAsInteger(10, index) || index >= arguments_max) {
                at_ = start;
                return fail("argument index out of range: '" + word + "'; arg0 to arg" + llvm::Twine(arguments_max - 1));
            }
            return push(expression, Operation::argument, index);
        }
        const std::optional<Function> function = function_called(word);
        if (!function) {
            at_ = start;
            return fail("unknown name '" + word +
                        "'; known are argN, return, failed, min, max, if, strlen, strnlen, wcslen, load32, load64, formatted, vformatted");
        }
        return operands(expression, word, *function);
    }

    bool operands(SizeExpression& expression, llvm::StringRef word, Function function)
    {
        if (!take("(")) {
            return fail("expected '(' after " + word);
        }
        for (unsigned operand = 0; operand < function.operands; ++operand) {
            if (operand != 0 && !take(",")) {
                return fail("expected ',': " + word + " takes " + llvm::Twine(function.operands) +
                            " operands (inside { } an expression with commas needs quotes)");
            }
            if (!comparison(expression)) {
                return false;
            }
        }
        if (!take(")")) {
            return fail("expected ')': " + word + " takes " + llvm::Twine(function.operands) +
                        (function.operands == 1 ? " operand" : " operands"));
        }
        const bool of_arguments = function.operation == Operation::formatted || function.operation == Operation::formatted_list;
        for (unsigned back = 1; of_arguments && back <= function.operands; ++back) {
            if (expression.steps_[expression.steps_.size() - back].operation != Operation::argument) {
                return fail(word + " takes arguments of the call only: " + word + "(argN)");
            }
        }
        return push(expression, function.operation);
    }

    llvm::StringRef text_;
    ExpressionError& error_;
    std::size_t at_ = 0;
    unsigned depth_ = 0;
};

std::optional<SizeExpression> SizeExpression::parse(llvm::StringRef text, ExpressionError& error)
{
    SizeExpression expression;
    if (!ExpressionParser(text, error).whole(expression)) {
        return std::nullopt;
    }
    return expression;
}

llvm::Expected<SizeExpression> SizeExpression::parse(llvm::StringRef text)
{
    ExpressionError error;
    if (std::optional<SizeExpression> expression = parse(text, error)) {
        return *expression;
    }
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "column " + llvm::Twine(error.offset + 1) + ": " + error.message);
}

SizeExpression SizeExpression::argument(unsigned index)
{
    SizeExpression expression;
    expression.steps_.push_back({Operation::argument, index});
    return expression;
}

SizeExpression SizeExpression::number(std::uint64_t value)
{
    SizeExpression expression;
    expression.steps_.push_back({Operation::number, value});
    return expression;
}

bool SizeExpression::uses_result() const
{
    return llvm::any_of(steps_,
                        [](const Step& step) { return step.operation == Operation::result || step.operation == Operation::failed; });
}

bool SizeExpression::reads_memory() const
{
    return llvm::any_of(steps_, [](const Step& step) { return step.operation >= Operation::string_length; });
}

std::optional<std::uint64_t> SizeExpression::constant() const
{
    if (steps_.size() == 1 && steps_.front().operation == Operation::number) {
        return steps_.front().value;
    }
    return std::nullopt;
}

int SizeExpression::last_argument() const
{
    int last = -1;
    for (const Step& step : steps_) {
        if (step.operation == Operation::argument) {
            last = std::max(last, static_cast<int>(step.value));
        }
    }
    return last;
}

SizeExpression SizeExpression::shifted() const
{
    SizeExpression moved = *this;
    for (Step& step : moved.steps_) {
        step.value += step.operation == Operation::argument ? 1 : 0;
    }
    return moved;
}

std::optional<unsigned> SizeExpression::first_argument() const
{
    if (!steps_.empty() && steps_.front().operation == Operation::argument) {
        return static_cast<unsigned>(steps_.front().value);
    }
    return std::nullopt;
}

bool SizeExpression::starts_with_argument() const
{
    unsigned operands = 0;
    for (const Step& step : steps_) {
        operands = operands + 1 - operands_of(step.operation);
        if (step.operation == Operation::choose || (step.operation == Operation::load64 && operands == 1)) {
            return false;
        }
    }
    return first_argument().has_value();
}

}  // namespace stillpoint::nvhooks
