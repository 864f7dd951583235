#include "runtime/section_watch.hpp"

#include "os/log.hpp"
#include "runtime/statistics.hpp"
#include "runtime/thread_registry.hpp"

namespace stillpoint {

void SectionWatch::at_capture(bool wrote, bool by_itself) noexcept
{
    const bool begun = take_sections_begun();
    any_section_ = any_section_ || begun;
    if (!wrote) {
        return;
    }
    if (!first_ && !begun && by_itself) {
        ++epochs_;
        statistics().epochs_without_section.fetch_add(1, std::memory_order_relaxed);
    }
    first_ = false;
}

void SectionWatch::at_end() noexcept
{
    any_section_ = any_section_ || take_sections_begun();
    report_from(often_for_a_whole_run);
}

void SectionWatch::report_from(unsigned epochs) noexcept
{
    if (any_section_ || told_ || epochs_ < epochs) {
        return;
    }
    told_ = true;
    os::log(os::Severity::warning,
            "durable memory was written in {} intervals, and {}: a checkpoint can fall between any two stores, and a crash then tears what "
            "the program writes. {} (docs/guide/guarantees.md)",
            epochs_, words_.not_seen, words_.advice);
}

}  // namespace stillpoint
