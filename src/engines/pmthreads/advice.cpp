#include "engines/pmthreads/advice.hpp"

#include "core/formatted.hpp"
#include "core/units.hpp"
#include "engines/pmthreads/own_statistics.hpp"

namespace stillpoint::pmthreads {

namespace {

struct Figures {
    explicit Figures(const Statistics& page) : page_(page) {}

    [[nodiscard]] std::uint64_t operator()(const std::atomic<std::uint64_t> Statistics::* word) const noexcept
    {
        return (page_.*word).load(std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t operator()(OwnStatistic word) const noexcept
    {
        return page_.engine_words[static_cast<std::size_t>(word)].load(std::memory_order_relaxed);
    }

private:
    const Statistics& page_;
};

std::string of_stops(const Figures& figures, std::uint64_t dirty_pages, TrackerNumber tracker)
{
    const double stop_ms = static_cast<double>(figures(&Statistics::stop_ns_p99)) / 1e6;
    if (2 * figures(&Statistics::quiesce_ns_last) > figures(&Statistics::stop_ns_last)) {
        return formatted("stops take up to {:.0f} ms (99th percentile), most of it until every thread has left its section: make sections "
                         "shorter, or call sp_fase_pause around calls that block",
                         stop_ms);
    }
    const std::uint64_t early = figures(OwnStatistic::precopied_pages_total);
    if (4 * early < dirty_pages) {
        return formatted("stops take up to {:.0f} ms (99th percentile), because most pages are written again while they are copied ahead: "
                         "try a shorter --interval{}",
                         stop_ms, tracker == TrackerNumber::hooks ? ", or --tracker=uffd" : "");
    }
    return formatted("stops take up to {:.0f} ms (99th percentile): try a shorter --interval, and leave a CPU free for sp-checkpoint",
                     stop_ms);
}

std::string of_faults(std::uint64_t pages, TrackerNumber tracker)
{
    if (tracker == TrackerNumber::mprotect && pages >= AdviceBounds::faults_of_mprotect) {
        return formatted(
            "each of some {} pages that are written in an interval costs a signal: the tracker uffd (Linux 6.7 or later) needs "
            "none, and `stillpoint cc` with --tracker=hooks has no faults at all",
            pages);
    }
    if (tracker == TrackerNumber::uffd && pages >= AdviceBounds::faults_of_uffd) {
        return formatted("each of some {} pages that are written in an interval costs a page fault: compile with `stillpoint cc` and use "
                         "--tracker=hooks, which has none, or try a longer --interval",
                         pages);
    }
    return {};
}

}  // namespace

TrackerNumber number_of_tracker(std::string_view name) noexcept
{
    return name == "uffd"       ? TrackerNumber::uffd
           : name == "mprotect" ? TrackerNumber::mprotect
           : name == "hooks"    ? TrackerNumber::hooks
                                : TrackerNumber::unknown;
}

std::string advice(const Statistics& page)
{
    const Figures figures(page);
    const std::uint64_t checkpoints = figures(&Statistics::checkpoints);
    if (checkpoints < AdviceBounds::checkpoints_min) {
        return {};
    }
    const auto tracker = static_cast<TrackerNumber>(figures(OwnStatistic::tracker));
    const std::uint64_t dirty_pages = figures(&Statistics::dirty_pages_total);
    const std::uint64_t pages = dirty_pages / checkpoints;
    const std::uint64_t withdrawn = figures(&Statistics::withdrawn_attempts);
    if (withdrawn > checkpoints) {
        return formatted(
            "{} attempts at a stop were withdrawn because a thread stayed in its section (blocker_thread_id, blocker_lock): make "
            "sections shorter, call sp_fase_pause around calls that block, or sp_lock_ignore for a lock that guards nothing "
            "durable",
            withdrawn);
    }
    if (const std::uint64_t stretched = figures(&Statistics::stretched_intervals); 4 * stretched > checkpoints) {
        return formatted(
            "writing took longer than the interval {} times in {} checkpoints: try a longer --interval, a faster disk, or write "
            "fewer pages",
            stretched, checkpoints);
    }
    if (figures(&Statistics::stop_ns_p99) >= AdviceBounds::stop_p99_ns) {
        return of_stops(figures, dirty_pages, tracker);
    }
    if (const std::uint64_t unchanged = figures(OwnStatistic::unchanged_pages_total) / checkpoints;
        2 * unchanged > pages && pages >= AdviceBounds::faults_of_mprotect) {
        return formatted("of some {} pages that are written in an interval {} end as they began: locks lie in them, or fields that get the "
                         "value they have; keep locks beside each other, away from data, or in ordinary memory",
                         pages, unchanged);
    }
    if (std::string faults = of_faults(pages, tracker); !faults.empty()) {
        return faults;
    }
    if (pages >= AdviceBounds::pages_of_a_large_epoch && 2 * pages * page_bytes > figures(&Statistics::image_bytes)) {
        return formatted("{} of {} pages of durable memory are written in each interval: try a longer --interval, keep fields that change "
                         "often beside each other, or take an engine that stores lines (docs/guide/engines.md)",
                         pages, figures(&Statistics::image_bytes) / page_bytes);
    }
    return {};
}

}  // namespace stillpoint::pmthreads
