#include "command_line.hpp"

#include <charconv>
#include <string_view>

namespace bench {

namespace {

template <class Number>
bool parse_number(std::string_view text, Number minimum, Number maximum, Number& out)
{
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), out);
    return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && out >= minimum && out <= maximum;
}

bool parse_flag(std::string_view text, bool& out)
{
    out = text == "1";
    return text == "0" || text == "1";
}

/// False: no such name, or not a value for it.
bool set(Shape& shape, std::string_view name, std::string_view value)
{
    if (name == "threads") {
        return parse_number(value, 1u, 64u, shape.threads);
    }
    if (name == "reads") {
        return parse_number(value, 0u, 100u, shape.read_percent);
    }
    if (name == "value_bytes") {
        return parse_number(value, std::size_t{8}, std::size_t{8192}, shape.value_bytes);
    }
    if (name == "size") {
        return parse_number(value, std::uint64_t{0}, std::uint64_t{1} << 32, shape.size);
    }
    if (name == "operation_size") {
        return parse_number(value, std::uint64_t{0}, std::uint64_t{1} << 32, shape.operation_size);
    }
    if (name == "pool_mib") {
        return parse_number(value, std::uint64_t{16}, std::uint64_t{1} << 20, shape.pool_mib);
    }
    if (name == "smoke") {
        return parse_flag(value, shape.is_smoke);
    }
    if (name == "large") {
        return parse_flag(value, shape.is_large);
    }
    if (name == "pinned") {
        return parse_flag(value, shape.is_pinned);
    }
    if (name == "folder") {
        shape.folder = value;
        return true;
    }
    if (name == "durability") {
        shape.durability = value;
        return value == "process" || value == "power";
    }
    return false;
}

std::string names_of_workloads()
{
    std::string names;
    for (const WorkloadRow& row : workload_rows()) {
        if (row.why_not != nullptr) {
            continue;
        }
        names += names.empty() ? "" : ", ";
        names += row.name;
    }
    return names;
}

}  // namespace

std::optional<WorkerCall> parse_worker_call(int count, char** words, std::string& error)
{
    WorkerCall call;
    if (count < 2) {
        error = "usage: bench_worker_ENGINE --list | WORKLOAD [name=value ...]; `stillpoint bench` starts it so";
        return std::nullopt;
    }
    if (std::string_view(words[1]) == "--list") {
        call.lists = true;
        return call;
    }
    for (const WorkloadRow& row : workload_rows()) {
        if (std::string_view(words[1]) == row.name) {
            call.row = &row;
        }
    }
    if (call.row == nullptr) {
        error = "this engine has no workload \"" + std::string(words[1]) + "\"; it has " + names_of_workloads();
        return std::nullopt;
    }
    if (call.row->why_not != nullptr) {
        error = "this engine cannot do \"" + std::string(words[1]) + "\": " + call.row->why_not;
        return std::nullopt;
    }
    for (int i = 2; i < count; ++i) {
        const std::string_view word = words[i];
        const std::size_t equals = word.find('=');
        if (equals == std::string_view::npos || !set(call.shape, word.substr(0, equals), word.substr(equals + 1))) {
            error = "\"" + std::string(word) + "\" is not a setting of a worker, or out of its bounds";
            return std::nullopt;
        }
    }
    return call;
}

}  // namespace bench
