#include "api/messages.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "runtime/api_export.hpp"
#include "runtime/message_queue.hpp"
#include "runtime/session_process.hpp"
#include "runtime/session_state.hpp"
#include "stillpoint/stillpoint.h"

namespace stillpoint {

os::Severity least_severity_of(const Options& options) noexcept
{
    constexpr std::array<std::pair<std::string_view, os::Severity>, 5> levels{{{"none", os::Severity::none},
                                                                               {"error", os::Severity::error},
                                                                               {"warning", os::Severity::warning},
                                                                               {"info", os::Severity::note},
                                                                               {"debug", os::Severity::debug}}};
    const auto* const named = std::ranges::find(levels, options.log_level, [](const auto& level) { return level.first; });
    const os::Severity least = named == levels.end() ? os::Severity::note : named->second;
    return options.quiet ? std::max(least, os::Severity::error) : least;
}

}  // namespace stillpoint

STILLPOINT_API int sp_set_log_callback(sp_log_callback callback, void* context)
{
    if (stillpoint::session_process::is_elsewhere()) {
        return stillpoint::report(
            stillpoint::fail(SP_E_UNSUPPORTED, 0, "messages of a program whose threads are processes go to standard error").value());
    }
    auto set = stillpoint::message_queue::set_callback(callback, context);
    return set ? SP_OK : stillpoint::report(set.error());
}
