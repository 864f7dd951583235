#include "runtime_flags.hpp"

#include "option_flags.hpp"

namespace stillpoint::tool {

namespace {

/// Keeps a value under the option's environment variable. Returns CLI11's error text, empty if the
/// table allows the value.
std::string take(const OptionRow& row, const std::string& text, RuntimeFlags& given)
{
    std::string value = text;
    if (row.kind == OptionKind::number) {
        if (const auto number = parse_quantity(row.name, text)) {
            value = std::to_string(*number);
        }
    } else if (row.name == "pool" && text.empty()) {
        return "the path of the pool is empty";
    }
    Options tried;
    if (const auto parsed = parse_option(tried, row.name, value); !parsed) {
        return std::string(parsed.error().text());
    }
    given.environment[row.environment_name()] = value;
    return {};
}

void add_option(CommandLine& line, const OptionRow& row, const std::shared_ptr<RuntimeFlags>& given)
{
    std::string sentence(row.sentence);
    if (row.kind == OptionKind::choice) {
        sentence += text_of(" One of {}.", row.words);
    }
    if (!row.default_text.empty()) {
        sentence += text_of(" Default {}.", row.default_text);
    }
    line.option(flags_of(row), value_word_of(row), [given, &row](const std::string& text) { return take(row, text, *given); }, sentence);
}

}  // namespace

void RuntimeFlags::settle(bool quiet)
{
    for (const auto& [row, is_given] : flags) {
        if (is_given || (row->name == "quiet" && quiet)) {
            environment[row->environment_name()] = "1";
        }
    }
}

void add_runtime_flags(CommandLine& line, const std::shared_ptr<RuntimeFlags>& given, const std::function<bool(const OptionRow&)>& wanted)
{
    for (const OptionRow& row : option_rows()) {
        if (!wanted(row)) {
            continue;
        }
        line.section(row.engine.empty() ? std::string{} : text_of("Options of the engine {}", row.engine));
        if (row.kind == OptionKind::flag) {
            line.flag(row.name == "quiet" ? "-q," + row.flag_name() : row.flag_name(), given->flags[&row], std::string(row.sentence));
        } else {
            add_option(line, row, given);
        }
    }
    line.section({});
}

}  // namespace stillpoint::tool
