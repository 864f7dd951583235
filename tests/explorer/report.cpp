#include "report.hpp"

#include <unistd.h>

#include <fmt/core.h>
#include <fmt/ranges.h>

namespace stillpoint::explorer {

namespace {

double percent(std::uint64_t part, std::uint64_t whole)
{
    return whole == 0 ? 100.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string escaped(const std::string& text)
{
    std::string out;
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
        }
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return out;
}

}  // namespace

void Report::campaign_ended(const std::string& name, const CampaignResult& result, std::size_t done, std::size_t of)
{
    ++campaigns_;
    total_.add(result.figures);
    for (Violation violation : result.violations) {
        violation.campaign = name;
        violations_.push_back(std::move(violation));
    }
    if (!result.skipped.empty()) {
        ++skipped_;
    }
    if (json_ || quiet_) {
        return;
    }
    if (done == 1) {
        fmt::print("{:<44} {:>9} {:>9} {:>8} {:>6} {:>5} {:>7}\n", "campaign", "states", "distinct", "moments", "all", "runs", "s");
    }
    if (!result.skipped.empty()) {
        fmt::print("{:<44} skipped: {}\n", name, result.skipped);
    } else {
        const Figures& figures = result.figures;
        fmt::print("{:<44} {:>9} {:>9} {:>8} {:>5.0f}% {:>5} {:>7.1f}{}{}\n", name, figures.states, figures.recoveries, figures.moments,
                   percent(figures.exhausted, figures.moments), figures.runs, figures.seconds, figures.violations != 0 ? "  VIOLATION" : "",
                   figures.cut_short ? "  out of time" : "");
    }
    if (isatty(STDOUT_FILENO) != 0 && done < of) {
        fmt::print(stderr, "{} of {} campaigns\r", done, of);
    }
    std::fflush(stdout);
}

void Report::summary(double wall_seconds, unsigned jobs, const std::string& command, bool interrupted) const
{
    const double per_core = total_.seconds > 0 ? static_cast<double>(total_.states) / total_.seconds : 0;
    if (json_) {
        fmt::print("{{\"states\": {}, \"distinct_images\": {}, \"moments\": {}, \"moments_exhausted\": {}, \"runs\": {}, "
                   "\"violations\": {}, \"campaigns\": {}, \"skipped\": {}, \"seconds\": {:.1f}, "
                   "\"states_per_second_and_process\": {:.0f}, \"interrupted\": {}, \"findings\": [",
                   total_.states, total_.recoveries, total_.moments, total_.exhausted, total_.runs, total_.violations, campaigns_, skipped_,
                   wall_seconds, per_core, interrupted);
        for (std::size_t i = 0; i < violations_.size(); ++i) {
            fmt::print("{}{{\"campaign\": \"{}\", \"history\": \"{}\", \"what\": \"{}\"}}", i == 0 ? "" : ", ",
                       escaped(violations_[i].campaign), escaped(violations_[i].history), escaped(violations_[i].what));
        }
        fmt::print("]}}\n");
        return;
    }
    for (const Violation& violation : violations_) {
        fmt::print("\nVIOLATION in {}\n  history: {}\n  state:   {}\n  repeat:  {} --campaign {}\n", violation.campaign, violation.history,
                   violation.what, command, violation.campaign);
    }
    fmt::print("\n{} crash states ({} distinct images) at {} moments, {:.1f} % of them exhaustively; {} runs; {} "
               "violations\n{} campaigns{} in {:.1f} s with {} processes: {:.0f} states a second and process{}\n",
               total_.states, total_.recoveries, total_.moments, percent(total_.exhausted, total_.moments), total_.runs, total_.violations,
               campaigns_, skipped_ != 0 ? fmt::format(" ({} skipped)", skipped_) : "", wall_seconds, jobs, per_core,
               interrupted ? "; interrupted" : "");
}

void Report::canary_ended(const CanaryEntry& canary, const std::string& caught_by, std::size_t done, std::size_t of)
{
    if (caught_by.empty()) {
        survivors_.push_back(canary.name);
    } else {
        ++killed_;
    }
    if (!json_ && !quiet_) {
        fmt::print("{:>3}/{} {:<26} {}\n", done, of, canary.name,
                   caught_by.empty() ? "SURVIVED: " + canary.what : "killed by " + caught_by);
        std::fflush(stdout);
    }
}

void Report::canary_summary(double wall_seconds) const
{
    const std::size_t tried = killed_ + survivors_.size();
    if (json_) {
        fmt::print("{{\"canaries\": {}, \"killed\": {}, \"survivors\": [{}], \"seconds\": {:.1f}}}\n", tried, killed_,
                   survivors_.empty() ? "" : fmt::format("\"{}\"", fmt::join(survivors_, "\", \"")), wall_seconds);
        return;
    }
    fmt::print("\n{} of {} canaries killed in {:.1f} s\n", killed_, tried, wall_seconds);
    if (!survivors_.empty()) {
        fmt::print("SURVIVED: {}\n", fmt::join(survivors_, ", "));
    }
}

}  // namespace stillpoint::explorer
