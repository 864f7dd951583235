#include "counters.hpp"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "../engines/current.hpp"
#include "../harness/answer.hpp"

namespace bench {

namespace {

constexpr const char* engine_counters[] = {"checkpoints",   "stretched_intervals", "withdrawn_attempts", "dirty_pages_total",
                                           "bytes_written", "medium_syncs",        "lines_written_back", "fences"};

}  // namespace

Counters::Counters()
{
    for (const char* name : engine_counters) {
        if (const auto value = current_statistic(name)) {
            values_.push_back({name, *value});
        }
    }
    // The bytes that the kernel received, and those that it sent to a disk: how a peer without counters is seen.
    if (std::FILE* file = std::fopen("/proc/self/io", "re")) {
        char line[128];
        std::uint64_t value = 0;
        while (std::fgets(line, sizeof line, file) != nullptr) {
            if (std::sscanf(line, "wchar: %" SCNu64, &value) == 1) {
                values_.push_back({"bytes_in_write_calls", value});
            } else if (std::sscanf(line, "write_bytes: %" SCNu64, &value) == 1) {
                values_.push_back({"bytes_to_disk", value});
            }
        }
        std::fclose(file);
    }
}

void Counters::add_growth(const Counters& before, Answer& answer) const
{
    for (const Value& now : values_) {
        const auto same = [&](const Value& value) { return std::strcmp(value.name, now.name) == 0; };
        const auto found = std::find_if(before.values_.begin(), before.values_.end(), same);
        if (found != before.values_.end()) {
            answer.number(now.name, now.value - found->value);
        }
    }
}

std::uint64_t Counters::value(std::string_view name) const noexcept
{
    const auto found = std::find_if(values_.begin(), values_.end(), [name](const Value& one) { return one.name == name; });
    return found != values_.end() ? found->value : 0;
}

void add_recovery_time(Answer& answer)
{
    if (const auto recovery_ns = current_statistic("recovery_ns")) {
        answer.number("recovery_ns", *recovery_ns);
    }
}

StopTimes::StopTimes()
{
    if (const auto interval_ns = current_statistic("interval_ns")) {
        look_every_ns_ = std::max<std::uint64_t>(*interval_ns / 4, 500'000);
        restart();
    }
}

void StopTimes::restart()
{
    stops_ns_.clear();
    epochs_ns_.clear();
    epoch_ = current_statistic("epoch").value_or(0);
    captured_ns_ = current_statistic("last_durable_ns").value_or(0);
    has_capture_ = false;
}

void StopTimes::look()
{
    const std::uint64_t epoch = current_statistic("epoch").value_or(0);
    if (epoch != epoch_) {
        epoch_ = epoch;
        stops_ns_.push_back(current_statistic("stop_ns_last").value_or(0));
    }
    // The first capture of a slice ends an epoch that has the time between the slices in it.
    if (const std::uint64_t captured_ns = current_statistic("last_durable_ns").value_or(0); captured_ns != captured_ns_) {
        if (has_capture_) {
            epochs_ns_.push_back(captured_ns - captured_ns_);
        }
        captured_ns_ = captured_ns;
        has_capture_ = true;
    }
}

std::uint64_t anonymous_bytes()
{
    std::uint64_t sum_kib = 0;
    std::FILE* const file = std::fopen("/proc/self/smaps", "re");
    if (file == nullptr) {
        return 0;
    }
    char line[4096 + 128];
    bool is_nameless = false;  // shared memory of no file that has a name
    std::uint64_t value = 0;
    while (std::fgets(line, sizeof line, file) != nullptr) {
        if (std::sscanf(line, "%*x-%*x %*4s %*x %*x:%*x %" SCNu64, &value) == 1) {
            is_nameless = std::strstr(line, " /memfd:") != nullptr || std::strstr(line, " /dev/zero (deleted)") != nullptr;
        } else if (is_nameless ? std::sscanf(line, "Pss: %" SCNu64, &value) == 1 : std::sscanf(line, "Anonymous: %" SCNu64, &value) == 1) {
            sum_kib += value;
        }
    }
    std::fclose(file);
    return sum_kib * 1024;
}

}  // namespace bench
