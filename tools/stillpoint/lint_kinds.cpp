#include "lint_kinds.hpp"

#include <algorithm>
#include <array>

namespace stillpoint::tool {

namespace {

using lint::Kind;

constexpr std::array kinds{
    LintKindWords{Kind::store, "durable store outside a FASE", "store-outside-fase", ""},
    LintKindWords{Kind::pointer, "pointer out of durable memory", "pointer-out", ""},
    LintKindWords{Kind::possible_pointer, "possible pointer out of durable memory", "possible-pointer-out", ""},
    LintKindWords{Kind::found_pointer, "possible pointer, stored without a hook", "possible-pointer-found", ""},
    LintKindWords{
        Kind::unlogged, "durable store that needs logging", "store-needs-logging",
        "a thread that continues at that restart point after a crash may read the new value: make it a logged<T>, or write it before it is read"},
    LintKindWords{
        Kind::untracked, "durable store that is not tracked", "store-not-tracked",
        "no add_modified of it before the thread's next restart point, so a crash may lose it: call it after the store, or make it "
        "a logged<T>"},
    LintKindWords{Kind::restart_point_in_section, "restart point inside a critical section", "restart-point-in-section",
                  "a crash would bring back half of the section: release the lock before the restart point"},
    LintKindWords{Kind::blocking_call, "blocking call between restart points", "blocking-call",
                  "it holds every checkpoint off: put it between the calls checkpoint_allow and checkpoint_prevent (C++: blocking_call; "
                  "for a condition, critical_section::wait)"},
    LintKindWords{
        Kind::store_at_restart_point, "durable store at a restart point", "store-at-restart-point",
        "a checkpoint may be taken in the middle: store after checkpoint_prevent, or after the thread's first call of the engine"},
};

}  // namespace

const LintKindWords& words_for(Kind kind)
{
    const auto* const found = std::find_if(kinds.begin(), kinds.end(), [kind](const LintKindWords& words) { return words.kind == kind; });
    return found != kinds.end() ? *found : kinds.front();
}

}  // namespace stillpoint::tool
