#include "prometheus.hpp"

#include <algorithm>
#include <chrono>

#include "os/clock.hpp"
#include "output.hpp"
#include "stillpoint/stillpoint.h"
#include "utf8.hpp"

namespace stillpoint::tool {

namespace {

/// A label's value. A byte that is no UTF-8, as a path may have, becomes U+FFFD.
std::string escaped(std::string_view value)
{
    std::string out;
    while (!value.empty()) {
        const std::size_t length = sequence_bytes(value);
        if (length == 0) {
            out += "\xef\xbf\xbd";
        } else if (value.front() == '\\' || value.front() == '"') {
            out += text_of("\\{}", value.front());
        } else if (value.front() == '\n') {
            out += "\\n";
        } else {
            out += value.substr(0, length);
        }
        value.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return out;
}

/// A point in time on the monotonic clock, among those of the other pools.
bool is_a_moment(const StatisticRow& row) { return row.name == "last_durable_ns"; }

/// "stop_ns_max" is stillpoint_stop_max_seconds, "checkpoints" is stillpoint_checkpoints_total.
std::string family_of(const StatisticRow& row)
{
    std::string name = "stillpoint_" + std::string(row.name);
    if (const std::size_t unit = name.find("_ns"); row.unit == "ns" && unit != std::string::npos) {
        name.erase(unit, 3);
        name += is_a_moment(row) ? "_timestamp_seconds" : "_seconds";
    }
    return row.only_grows && !name.ends_with("_total") ? name + "_total" : name;
}

std::string seconds_text(std::uint64_t ns) { return text_of("{}.{:09}", ns / 1'000'000'000, ns % 1'000'000'000); }

/// Since 1970, of a moment on the monotonic clock; 0 where there was none.
std::uint64_t unix_ns(std::uint64_t monotonic_ns)
{
    using namespace std::chrono;
    const auto now_ns = static_cast<std::uint64_t>(duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count());
    const std::uint64_t moment_ns = now_ns - (os::monotonic_ns() - monotonic_ns);
    return monotonic_ns == 0 ? 0 : moment_ns - moment_ns % 1'000'000;  // The two clocks drift: whole milliseconds stay the same.
}

class Exposition {
public:
    void family(const std::string& name, std::string_view type, std::string_view help)
    {
        text_ += text_of("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
    }
    void sample(const std::string& name, const WatchedPool& pool, std::string_view value, std::string_view more_labels = {})
    {
        text_ += text_of("{}{{pool=\"{}\"{}}} {}\n", name, escaped(pool.path), more_labels, value);
    }
    void remark(std::string_view text) { text_ += text_of("# {}\n", printable(text)); }
    [[nodiscard]] std::string take() { return std::move(text_); }

private:
    std::string text_;
};

void tell_of_programs(Exposition& out, const std::vector<WatchedPool>& pools)
{
    out.family("stillpoint_pool_open", "gauge", "1 if a program has the pool open and its figures can be read, else 0.");
    for (const WatchedPool& pool : pools) {
        out.sample("stillpoint_pool_open", pool, pool.view ? "1" : "0");
        if (!pool.problem.empty()) {
            out.remark(text_of("problem with {}: {}", pool.path, pool.problem));
        }
    }
    if (std::ranges::none_of(pools, [](const WatchedPool& pool) { return pool.view.has_value(); })) {
        return;
    }
    out.family("stillpoint_program_info", "gauge", "The program that has the pool open, and the pool's engine.");
    for (const WatchedPool& pool : pools) {
        if (pool.view) {
            const auto labels = text_of(",program=\"{}\",engine=\"{}\"", escaped(pool.view->program_name()),
                                        escaped(pool.view->engine_name()));
            out.sample("stillpoint_program_info", pool, "1", labels);
        }
    }
    out.family("stillpoint_started_timestamp_seconds", "gauge", "Unix time at which the program opened the pool.");
    for (const WatchedPool& pool : pools) {
        if (pool.view) {
            out.sample("stillpoint_started_timestamp_seconds", pool, seconds_text(unix_ns((*pool.view)->started_ns)));
        }
    }
}

std::string value_text(const StatisticRow& row, std::uint64_t value)
{
    if (row.unit != "ns") {
        return std::to_string(value);
    }
    return seconds_text(is_a_moment(row) ? unix_ns(value) : value);
}

}  // namespace

std::string exposition_of(const std::vector<WatchedPool>& pools)
{
    Exposition out;
    tell_of_programs(out, pools);
    // All rows of a pool at one moment: a figure is never shown larger than one that bounds it.
    std::vector<std::vector<std::uint64_t>> values;
    values.reserve(pools.size());
    for (const WatchedPool& pool : pools) {
        values.push_back(pool.view ? read_statistics(**pool.view) : std::vector<std::uint64_t>{});
    }
    const auto rows = statistic_rows();
    for (std::size_t number = 0; number < rows.size(); ++number) {
        const StatisticRow& row = rows[number];
        const auto has_it = [&](const WatchedPool& pool) {
            return pool.view && (row.engine.empty() || row.engine == pool.view->engine_name());
        };
        // An address is not a measure.
        if (row.unit == "address" || std::ranges::none_of(pools, has_it)) {
            continue;
        }
        const std::string name = family_of(row);
        const std::string_view help = is_a_moment(row) ? "Unix time of the newest durable epoch's memory; 0 if no epoch is durable yet."
                                                       : row.sentence;
        out.family(name, row.only_grows ? "counter" : "gauge", help);
        for (std::size_t pool = 0; pool < pools.size(); ++pool) {
            if (has_it(pools[pool])) {
                out.sample(name, pools[pool], value_text(row, values[pool][number]));
            }
        }
    }
    return out.take();
}

}  // namespace stillpoint::tool
