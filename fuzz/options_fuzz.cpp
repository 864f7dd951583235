// Fuzzer: the texts that people write: options as sp_open takes them, and fault rules. Demanded: an error that says
// something, or values that lie within their bounds, that are written and read again as the same ones, and that a second
// reading of the same text gives too.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "media/fault_plan.hpp"
#include "api/options.hpp"

namespace {

using namespace stillpoint;

void demand(bool condition)
{
    if (!condition) {
        std::abort();
    }
}

void demand_sound(const Options& options)
{
    Options again;
    for (const OptionRow& row : option_rows()) {
        const std::string value = option_value(options, row);
        demand(parse_option(again, row.name, value).has_value());
        demand(option_value(again, row) == value);
        if (row.kind == OptionKind::number) {
            const std::uint64_t number = std::stoull(value);
            demand(number >= row.minimum && number <= row.maximum);
        }
    }
}

bool every_name_is_found()
{
    return std::ranges::all_of(option_rows(), [](const OptionRow& row) {
        return find_option(row.name) == &row && &nearest_option(row.name) == &row && find_option(row.flag_name().substr(2)) == &row;
    });
}

void read_options(std::string_view text)
{
    Options options;
    const auto read = parse_option_text(options, text);
    demand(read.has_value() || !read.error().text().empty());
    demand_sound(options);
    Options second;
    demand(parse_option_text(second, text).has_value() == read.has_value());
    for (const OptionRow& row : option_rows()) {
        demand(option_value(options, row) == option_value(second, row));
    }
    const bool sizes_fit = options.pool_size_mb <= options.pool_max_mb;
    const auto rows = option_rows();
    const bool hooks = own_option<std::string_view>(options, rows, "tracker") == "hooks";
    const bool marks_exist = hooks || !own_option<bool>(options, rows, "verify_marks");
    demand(check_options(options).has_value() == (sizes_fit && marks_exist));
}

void read_fault_rules(std::string_view text)
{
    auto plan = FaultPlan::parse(text);
    if (!plan) {
        demand(!plan.error().text().empty());
        return;
    }
    if (text.find("kill") != std::string_view::npos) {
        return;  // This option would be obeyed.
    }
    for (const FaultPoint point : {FaultPoint::read, FaultPoint::write, FaultPoint::sync, FaultPoint::allocate}) {
        for (unsigned call = 0; call < 4; ++call) {
            const Fault fault = plan->next(point);
            demand(!text.empty() || !fault);
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static const bool names_are_found = every_name_is_found();
    if (size == 0) {
        return 0;
    }
    demand(names_are_found);
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    if (data[0] == 'f') {
        read_fault_rules(text);
    } else {
        read_options(text);
    }
    return 0;
}
