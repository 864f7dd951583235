#include "scanf_format.hpp"

#include "llvm/ADT/StringExtras.h"

namespace stillpoint::nvhooks {

namespace {

/// One conversion, from after its `%`.
struct Conversion {
    bool assigns = true;
    bool allocates = false;
    bool by_position = false;
    std::uint64_t width = 0;
    std::uint64_t integer_bytes = 4;
    std::uint64_t float_bytes = 4;
    std::uint64_t character_bytes = 1;
    char kind = 0;
};

void take_length(llvm::StringRef& rest, Conversion& conversion)
{
    if (rest.consume_front("hh")) {
        conversion.integer_bytes = 1;
    } else if (rest.consume_front("h")) {
        conversion.integer_bytes = 2;
    } else if (rest.consume_front("ll") || rest.consume_front("q") || rest.consume_front("L")) {
        conversion.integer_bytes = 8;
        conversion.float_bytes = sizeof(long double);
    } else if (rest.consume_front("l")) {
        conversion.integer_bytes = 8;
        conversion.float_bytes = 8;
        conversion.character_bytes = sizeof(wchar_t);
    } else if (rest.consume_front("j") || rest.consume_front("z") || rest.consume_front("t")) {
        conversion.integer_bytes = 8;
    }
}

/// The set of `%[...]`: a `]` that comes first belongs to it.
void skip_set(llvm::StringRef& rest)
{
    rest.consume_front("^");
    rest.consume_front("]");
    const std::size_t end = rest.find(']');
    rest = end == llvm::StringRef::npos ? llvm::StringRef() : rest.drop_front(end + 1);
}

Conversion take_conversion(llvm::StringRef& rest)
{
    Conversion conversion;
    conversion.assigns = !rest.consume_front("*");
    rest.consume_front("'");
    rest.consumeInteger(10, conversion.width);
    conversion.by_position = rest.consume_front("$");
    conversion.allocates = rest.consume_front("m");
    take_length(rest, conversion);
    if (!rest.empty()) {
        conversion.kind = rest.front();
        rest = rest.drop_front();
    }
    if (conversion.kind == '[') {
        skip_set(rest);
    }
    return conversion;
}

/// The most that it writes; nothing if there is no bound.
std::optional<std::uint64_t> bytes_of(const Conversion& conversion)
{
    if (conversion.allocates || conversion.kind == 'p') {
        return sizeof(void*);
    }
    switch (conversion.kind) {
    // clang-format off
    case 'a': case 'A': case 'e': case 'E': case 'f': case 'F': case 'g': case 'G': return conversion.float_bytes;
    // clang-format on
    case 'C': return sizeof(wchar_t);
    case 'c':
        return std::max<std::uint64_t>(conversion.width, 1) * conversion.character_bytes;
    // clang-format off
    case 's': case '[':
        return conversion.width == 0 ? std::nullopt : std::optional((conversion.width + 1) * conversion.character_bytes);
    case 'd': case 'i': case 'u': case 'o': case 'x': case 'X': case 'n': return conversion.integer_bytes;
    // clang-format on
    default: return std::nullopt;
    }
}

}  // namespace

bool add_scanf_pointers(llvm::StringRef format, unsigned first, llvm::SmallVectorImpl<MemoryEffect>& effects)
{
    bool complete = true;
    unsigned argument = first;
    for (std::size_t percent = format.find('%'); percent != llvm::StringRef::npos; percent = format.find('%')) {
        format = format.drop_front(percent + 1);
        if (format.consume_front("%")) {
            continue;
        }
        const Conversion conversion = take_conversion(format);
        if (conversion.by_position) {
            return false;
        }
        if (!conversion.assigns) {
            continue;
        }
        if (const std::optional<std::uint64_t> bytes = bytes_of(conversion)) {
            MemoryEffect effect;
            effect.writes = true;
            effect.pointer_argument = argument;
            effect.pointer = SizeExpression::argument(argument);
            effect.size = SizeExpression::number(*bytes);
            effects.push_back(effect);
        } else {
            complete = false;
        }
        ++argument;
    }
    return complete;
}

}  // namespace stillpoint::nvhooks
