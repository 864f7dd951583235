#include "description_file.hpp"

#include <algorithm>
#include <vector>

#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/YAMLTraits.h"
#include "llvm/Support/raw_ostream.h"

namespace stillpoint::nvhooks {

namespace {

/// yes or no; nothing where the key is absent.
struct YesOrNo {
    std::optional<bool> value;
};

/// The mapping under `functions`, and the lists beside it, go straight into the table.
struct Functions {};
struct HarmlessName {};
struct FaseChanger {};

struct DescriptionFile {
    YesOrNo keeps_fase;
    Functions functions;
    std::vector<HarmlessName> harmless;
    std::vector<FaseChanger> changes_fase;
};

/// The context that reading a part needs: the context of llvm::yaml::Input.
struct Reading {
    DescriptionTable& table;
    std::string path;
    bool keeps_fase = false;      ///< for functions that do not say
    std::string function;         ///< that is being read
    std::string complaints;       ///< all that was wrong
    std::string message;          ///< outlives the trait that made it
    std::size_t offset = 0;       ///< of the error inside the scalar at hand
};

/// Adds a whole description; what is wrong if there is another one already.
std::string add(Reading& reading, const FunctionDescription& function)
{
    const auto [entry, added] = reading.table.try_emplace(function.name, DescribedFunction{function, reading.path});
    FunctionDescription same = function;
    same.takes_addresses = entry->second.description.takes_addresses;  // files do not say
    if (added || entry->second.description == same) {
        return {};
    }
    return "'" + function.name + "' is described twice, and differently; the other one is in " + entry->second.path;
}

/// The error in an effect besides its parts; empty if nothing is.
std::string complaint_about(const MemoryEffect& effect)
{
    if (effect.pointer.uses_result() || (effect.at_most && effect.at_most->uses_result())) {
        return "pointer and at-most are needed before the call: they cannot use the result";
    }
    if (!effect.pointer.first_argument()) {
        return "a pointer begins with an argument: arg0, arg0 + 8, load64(arg0)";
    }
    if (effect.size.uses_result() && !effect.at_most) {
        return "a size that uses the result needs at-most: an upper bound that is known before the call";
    }
    return {};
}

void complete_pointer(MemoryEffect& effect, bool writes)
{
    effect.writes = writes;
    effect.pointer_argument = effect.pointer.first_argument().value_or(0);
    effect.indirect = !effect.pointer.starts_with_argument();
}

/// LLVM gives the place of a scalar; the error is `offset` bytes into it.
void append_complaint(const llvm::SMDiagnostic& diagnostic, void* context)
{
    Reading& reading = *static_cast<Reading*>(context);
    int column = diagnostic.getColumnNo();
    const llvm::StringRef line = diagnostic.getLineContents();
    if (reading.offset != 0 && column >= 0) {
        const std::size_t start = static_cast<std::size_t>(column);
        const bool quoted = start < line.size() && (line[start] == '"' || line[start] == '\'');
        column += static_cast<int>(reading.offset) + (quoted ? 1 : 0);
    }
    reading.offset = 0;
    const llvm::SMDiagnostic placed(*diagnostic.getSourceMgr(), diagnostic.getLoc(), diagnostic.getFilename(), diagnostic.getLineNo(),
                                    column, diagnostic.getKind(), diagnostic.getMessage(), line, {});
    llvm::raw_string_ostream out(reading.complaints);
    placed.print(nullptr, out, /*ShowColors=*/false);
}

Reading& reading_of(void* context) { return *static_cast<Reading*>(context); }

/// A function that is named in a list.
llvm::StringRef add_named(llvm::StringRef name, void* context, bool keeps_fase)
{
    Reading& reading = reading_of(context);
    FunctionDescription function;
    function.name = name.str();
    function.keeps_fase = keeps_fase;
    reading.message = add(reading, function);
    return reading.message;
}

}  // namespace

}  // namespace stillpoint::nvhooks

LLVM_YAML_IS_SEQUENCE_VECTOR(stillpoint::nvhooks::MemoryEffect)
LLVM_YAML_IS_SEQUENCE_VECTOR(stillpoint::nvhooks::HarmlessName)
LLVM_YAML_IS_SEQUENCE_VECTOR(stillpoint::nvhooks::FaseChanger)

namespace nvhooks = stillpoint::nvhooks;

namespace llvm::yaml {

/// The common part of all scalars of the format: they are read only.
struct ReadOnlyScalar {
    static QuotingType mustQuote(StringRef) { return QuotingType::None; }
    template <typename Value>
    static void output(const Value&, void*, raw_ostream&)
    {
    }
};

template <>
struct ScalarTraits<nvhooks::YesOrNo> : ReadOnlyScalar {
    static void output(const nvhooks::YesOrNo&, void*, raw_ostream&) {}
    static StringRef input(StringRef text, void*, nvhooks::YesOrNo& answer)
    {
        answer.value = text == "yes" || text == "true" || text == "on";
        return *answer.value || text == "no" || text == "false" || text == "off" ? StringRef() : StringRef("expected yes or no");
    }
};

template <>
struct ScalarTraits<nvhooks::HarmlessName> : ReadOnlyScalar {
    static void output(const nvhooks::HarmlessName&, void*, raw_ostream&) {}
    static StringRef input(StringRef text, void* context, nvhooks::HarmlessName&)
    {
        return nvhooks::add_named(text, context, nvhooks::reading_of(context).keeps_fase);
    }
};

template <>
struct ScalarTraits<nvhooks::FaseChanger> : ReadOnlyScalar {
    static void output(const nvhooks::FaseChanger&, void*, raw_ostream&) {}
    static StringRef input(StringRef text, void* context, nvhooks::FaseChanger&) { return nvhooks::add_named(text, context, false); }
};

template <>
struct ScalarTraits<nvhooks::SizeExpression> : ReadOnlyScalar {
    static void output(const nvhooks::SizeExpression&, void*, raw_ostream&) {}
    static StringRef input(StringRef text, void* context, nvhooks::SizeExpression& value)
    {
        nvhooks::ExpressionError error;
        if (std::optional<nvhooks::SizeExpression> expression = nvhooks::SizeExpression::parse(text, error)) {
            value = *expression;
            return {};
        }
        nvhooks::Reading& reading = nvhooks::reading_of(context);
        reading.offset = error.offset;
        reading.message = error.message;
        return reading.message;
    }
};

template <>
struct MappingTraits<nvhooks::MemoryEffect> {
    static void mapping(IO& io, nvhooks::MemoryEffect& effect)
    {
        io.mapRequired("pointer", effect.pointer);
        io.mapRequired("size", effect.size);
        io.mapOptional("at-most", effect.at_most);
    }
    static std::string validate(IO& io, nvhooks::MemoryEffect& effect)
    {
        // Where a part is wrong already, a second complaint would only be about what is missing.
        return nvhooks::reading_of(io.getContext()).complaints.empty() ? nvhooks::complaint_about(effect) : "";
    }
};

template <>
struct MappingTraits<nvhooks::FunctionDescription> {
    static void mapping(IO& io, nvhooks::FunctionDescription& function)
    {
        std::vector<nvhooks::MemoryEffect> writes;
        std::vector<nvhooks::MemoryEffect> reads;
        nvhooks::YesOrNo keeps_fase;
        nvhooks::YesOrNo complete;
        std::optional<nvhooks::SizeExpression> format;
        std::optional<nvhooks::SizeExpression> rest;
        io.mapOptional("writes", writes);
        io.mapOptional("reads", reads);
        io.mapOptional("keeps-fase", keeps_fase);
        io.mapOptional("complete", complete);
        io.mapOptional("scanf-format", format);
        io.mapOptional("rest", rest);
        for (std::vector<nvhooks::MemoryEffect>* effects : {&writes, &reads}) {
            for (nvhooks::MemoryEffect& effect : *effects) {
                nvhooks::complete_pointer(effect, effects == &writes);
                function.effects.push_back(effect);
            }
        }
        const nvhooks::Reading& reading = nvhooks::reading_of(io.getContext());
        function.name = reading.function;
        function.keeps_fase = keeps_fase.value.value_or(reading.keeps_fase);
        function.complete = complete.value.value_or(true);
        if (format) {
            function.scanf_format = format->first_argument();
        }
        if (rest) {
            function.complete = false;
            function.rest_argument = rest->first_argument();
        }
    }
    static std::string validate(IO& io, nvhooks::FunctionDescription& function)
    {
        nvhooks::Reading& reading = nvhooks::reading_of(io.getContext());
        return reading.complaints.empty() ? nvhooks::add(reading, function) : "";
    }
};

template <>
struct CustomMappingTraits<nvhooks::Functions> {
    static void inputOne(IO& io, StringRef key, nvhooks::Functions&)
    {
        nvhooks::reading_of(io.getContext()).function = key.str();
        nvhooks::FunctionDescription function;
        io.mapRequired(key.str().c_str(), function);
    }
    static void output(IO&, nvhooks::Functions&) {}
};

template <>
struct MappingTraits<nvhooks::DescriptionFile> {
    static void mapping(IO& io, nvhooks::DescriptionFile& file)
    {
        io.mapOptional("keeps-fase", file.keeps_fase);
        nvhooks::reading_of(io.getContext()).keeps_fase = file.keeps_fase.value.value_or(false);
        io.mapOptional("functions", file.functions);
        io.mapOptional("harmless", file.harmless);
        io.mapOptional("changes-fase", file.changes_fase);
    }
};

}  // namespace llvm::yaml

namespace stillpoint::nvhooks {

llvm::Error read_descriptions(const llvm::MemoryBuffer& file, llvm::StringRef path, DescriptionTable& table)
{
    Reading reading{table, path.str(), false, {}, {}, {}, 0};
    llvm::yaml::Input input(llvm::MemoryBufferRef(file.getBuffer(), path), &reading, &append_complaint, &reading);
    DescriptionFile contents;
    input >> contents;
    if (!input.error()) {
        return llvm::Error::success();
    }
    if (reading.complaints.empty()) {
        reading.complaints = path.str() + ":1:1: error: expected a mapping with `functions:`, `harmless:` or `changes-fase:`\n";
    }
    return llvm::createStringError(input.error(), llvm::StringRef(reading.complaints).rtrim('\n').str());
}

llvm::Expected<bool> read_attribute(llvm::StringRef text, FunctionDescription& function)
{
    if (text == "nvm_harmless" || text == "nvm_keeps_fase") {
        function.keeps_fase = function.keeps_fase || text == "nvm_keeps_fase";
        return true;
    }
    llvm::SmallVector<llvm::StringRef, 4> parts;
    text.split(parts, ':');
    if (parts.front() != "nvm_write" && parts.front() != "nvm_read") {
        return false;
    }
    const auto refuse = [](const llvm::Twine& message) { return llvm::createStringError(llvm::inconvertibleErrorCode(), message); };
    if (parts.size() != 3 && parts.size() != 4) {
        return refuse("expected " + parts.front() + ":POINTER:SIZE or " + parts.front() + ":POINTER:SIZE:AT-MOST");
    }
    llvm::SmallVector<SizeExpression, 3> expressions;
    for (const llvm::StringRef part : llvm::ArrayRef(parts).drop_front()) {
        ExpressionError error;
        const std::optional<SizeExpression> expression = SizeExpression::parse(part, error);
        if (!expression) {
            const std::size_t column = static_cast<std::size_t>(part.data() - text.data()) + error.offset + 1;
            return refuse("column " + llvm::Twine(column) + ": " + error.message);
        }
        expressions.push_back(*expression);
    }
    MemoryEffect effect;
    effect.pointer = expressions[0];
    effect.size = expressions[1];
    if (expressions.size() == 3) {
        effect.at_most = expressions[2];
    }
    const std::string complaint = complaint_about(effect);
    if (!complaint.empty()) {
        return refuse(complaint);
    }
    complete_pointer(effect, parts.front() == "nvm_write");
    function.effects.push_back(effect);
    return true;
}

}  // namespace stillpoint::nvhooks
