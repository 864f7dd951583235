#include "api/options.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <unistd.h>

#include "api/registry.hpp"
#include "core/edit_distance.hpp"
#include "media/open.hpp"
#include "os/environment.hpp"
#include "os/log.hpp"
#include "runtime/engine.hpp"

namespace stillpoint {

namespace {

/// All rows in one place; Options::given has a bit for each.
struct AllRows {
    std::array<OptionRow, 64> rows{};
    std::size_t count = 0;

    void add(const OptionRow& row, std::string_view engine)
    {
        if (count == rows.size()) {
            std::abort();  // At the first start of a build with too many options.
        }
        rows[count] = row;
        rows[count++].engine = engine;
    }
};

AllRows collect_rows()
{
    const OptionRow general[] = {
#include "runtime/option_rows.inc"
#include "runtime/options.inc"
#include "runtime/option_macros_end.inc"
    };
    AllRows all;
    for (const OptionRow& row : general) {
        all.add(row, {});
    }
    for (const EngineDriver& driver : engine_drivers()) {
        for (const OptionRow& row : driver.options) {
            all.add(row, driver.format.name);
        }
    }
    return all;
}

std::uint64_t bit_of(const OptionRow& row) noexcept { return std::uint64_t{1} << (&row - option_rows().data()); }

/// Variables of that prefix that are not options: the session's mark of the process that opened the
/// pool, the plan of the fault injection, what the tool and the project's own tests are told.
constexpr std::string_view other_variables[] = {
    "owner",   "run",        "fault", "fault_met", "lint_report", "runtime",           "clang",
    "clangxx", "symbolizer", "build", "source",    "binaries",    "type_descriptions", "rados_standby"};

bool same_name(std::string_view row_name, std::string_view given) noexcept
{
    return std::ranges::equal(row_name, given, [](char a, char b) { return a == b || (a == '_' && b == '-'); });
}

/// Into the field of a general option.
void assign(Options& options, const OptionRow& row, const OptionValue& value)
{
#define ASSIGN(field)                                                                                                                      \
    if (row.name == #field) {                                                                                                              \
        options.field = std::get<decltype(options.field)>(value);                                                                          \
    }
#define OPTION_TEXT(option, initial, sentence) ASSIGN(option)
#define OPTION_CHOICE(option, initial, words, sentence) ASSIGN(option)
#define OPTION_NUMBER(option, initial, minimum, maximum, sentence) ASSIGN(option)
#define OPTION_FLAG(option, initial, sentence) ASSIGN(option)
#include "runtime/options.inc"
#include "runtime/option_macros_end.inc"
#undef ASSIGN
}

tl::unexpected<Failure> fail_unknown(std::string_view name)
{
    std::string all;
    for (const auto& row : option_rows()) {
        all += all.empty() ? "" : ", ";
        all += row.name;
    }
    return fail(SP_E_INVALID_ARGUMENT, 0, "there is no option '{}'; did you mean '{}'? Options: {}", name.substr(0, 64),
                nearest_option(name).name, all);
}

}  // namespace

std::span<const OptionRow> option_rows() noexcept
{
    static const AllRows all = collect_rows();
    return {all.rows.data(), all.count};
}

const OptionRow* find_option(std::string_view name) noexcept
{
    const auto rows = option_rows();
    const auto found = std::ranges::find_if(rows, [name](const OptionRow& row) { return same_name(row.name, name); });
    return found == rows.end() ? nullptr : &*found;
}

const OptionRow& nearest_option(std::string_view name) noexcept
{
    return *std::ranges::min_element(option_rows(), {}, [name](const OptionRow& row) { return edit_distance(row.name, name); });
}

Result<void> parse_option(Options& options, std::string_view name, std::string_view value)
{
    const OptionRow* row = find_option(name);
    if (row == nullptr) {
        return fail_unknown(name);
    }
    if (row->name == "engine") {
        if (const EngineDriver* const driver = find_engine(value); driver != nullptr && !driver->opened_by.empty()) {
            return fail(SP_E_INVALID_ARGUMENT, 0,
                        "option engine: pools of the engine {} are made and opened by the program itself, with {}: sp_open and `stillpoint "
                        "run` cannot",
                        driver->format.name, driver->opened_by);
        }
    }
    const auto parsed = parse_option_value(*row, value);
    if (!parsed) {
        return pass_on(parsed.error());
    }
    if (row->engine.empty()) {
        assign(options, *row, *parsed);
    } else {
        options.own.insert_or_assign(row->name, *parsed);
    }
    options.given |= bit_of(*row);
    return {};
}

bool is_given(const Options& options, std::string_view name) noexcept
{
    const OptionRow* const row = find_option(name);
    return row != nullptr && (options.given & bit_of(*row)) != 0;
}

Result<void> parse_option_text(Options& options, std::string_view text)
{
    constexpr std::string_view blanks = " \t\n";
    while (true) {
        text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
        if (text.empty()) {
            return {};
        }
        const auto item = text.substr(0, text.find_first_of(blanks));
        text.remove_prefix(item.size());
        const auto equals = item.find('=');
        const OptionRow* row = find_option(item.substr(0, equals));
        if (equals == std::string_view::npos && row != nullptr && row->kind != OptionKind::flag) {
            return fail(SP_E_INVALID_ARGUMENT, 0, "option {} needs a value: write {}=VALUE", row->name, row->name);
        }
        const auto value = equals == std::string_view::npos ? "true" : item.substr(equals + 1);
        if (auto parsed = parse_option(options, item.substr(0, equals), value); !parsed) {
            return parsed;
        }
    }
}

Result<Options> options_of_call(const char* path, const char* text)
{
    Options options;
    if (text != nullptr) {
        if (auto parsed = parse_option_text(options, text); !parsed) {
            return pass_on(parsed.error());
        }
    }
    options.pool = path;
    return options;
}

namespace {

/// The option's name in a variable "STILLPOINT_NAME", in small letters; empty: it is none of that prefix, or known not to be an option.
std::string option_in(std::string_view variable_name)
{
    if (!variable_name.starts_with(option_environment_prefix)) {
        return {};
    }
    std::string name{variable_name.substr(option_environment_prefix.size())};
    std::ranges::transform(name, name.begin(), [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
    return std::ranges::find(other_variables, name) == std::end(other_variables) ? name : std::string{};
}

}  // namespace

Result<Options> options_from_environment()
{
    Options options;
    if (os::environment_is_foreign()) {
        return options;
    }
    for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
        const std::string_view text = *variable;
        const auto equals = text.find('=');
        const auto variable_name = text.substr(0, equals);
        const std::string name = equals != std::string_view::npos ? option_in(variable_name) : std::string{};
        if (find_option(name) == nullptr) {
            continue;
        }
        if (auto parsed = parse_option(options, name, text.substr(equals + 1)); !parsed) {
            return fail(SP_E_INVALID_ARGUMENT, 0, "environment variable {}: {}", variable_name, parsed.error().text());
        }
    }
    return options;
}

void warn_of_unknown_variables()
{
    for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
        const auto variable_name = std::string_view(*variable).substr(0, std::string_view(*variable).find('='));
        const std::string name = option_in(variable_name);
        if (!name.empty() && find_option(name) == nullptr) {
            os::log(os::Severity::warning, "{} is set but names no option; did you mean {}?", variable_name.substr(0, 80),
                    nearest_option(name).environment_name());
        }
    }
}

namespace {

std::string text_of(const std::string& value) { return value; }
std::string text_of(std::string_view value) { return std::string{value}; }
std::string text_of(std::uint64_t value) { return std::to_string(value); }
std::string text_of(bool value) { return value ? "true" : "false"; }

}  // namespace

std::string option_value(const Options& options, const OptionRow& row)
{
    if (!row.engine.empty()) {
        return std::visit([](const auto& value) { return text_of(value); }, own_option_value(options, row));
    }
#define VALUE(field)                                                                                                                       \
    if (row.name == #field) {                                                                                                              \
        return text_of(options.field);                                                                                                     \
    }
#define OPTION_TEXT(option, initial, sentence) VALUE(option)
#define OPTION_CHOICE(option, initial, words, sentence) VALUE(option)
#define OPTION_NUMBER(option, initial, minimum, maximum, sentence) VALUE(option)
#define OPTION_FLAG(option, initial, sentence) VALUE(option)
#include "runtime/options.inc"
#include "runtime/option_macros_end.inc"
#undef VALUE
    return {};
}

Result<void> check_options(const Options& options)
{
    if (is_given(options, "pool_size_mb") && options.pool_size_mb > options.pool_max_mb) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "option pool_size_mb ({}) is larger than pool_max_mb ({}); raise pool_max_mb",
                    options.pool_size_mb, options.pool_max_mb);
    }
    if (!options.replica.empty() && (!lies_in_no_file(options.replica) || lies_in_no_file(options.pool))) {
        return fail(SP_E_INVALID_ARGUMENT, 0,
                    "option replica: \"{}\" is not the replica of {}: a pool in a file has one in Ceph, --pool PATH --replica "
                    "rados://CEPHPOOL/NAME",
                    options.replica, options.pool);
    }
    if (options.replica.empty() && is_given(options, "replicate")) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "option replicate: there is no replica; name one, --replica rados://CEPHPOOL/NAME");
    }
    for (const EngineDriver& driver : engine_drivers()) {
        if (auto checked = driver.check_options != nullptr ? driver.check_options(options) : Result<void>{}; !checked) {
            return checked;
        }
    }
    return {};
}

void tell_of_idle_options(const Options& options, std::string_view engine)
{
    for (const OptionRow& row : option_rows()) {
        if (!row.engine.empty() && row.engine != engine && option_value(options, row) != row.default_text) {
            os::log(os::Severity::warning, "{} has no meaning with the engine {}, and is ignored: only the engine {} has it",
                    row.flag_name(), engine, row.engine);
        }
    }
}

}  // namespace stillpoint
