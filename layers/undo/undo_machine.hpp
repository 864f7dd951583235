#pragma once
// Write back and fence, as the runtime reaches them; and the canaries: what the crash test takes out to see that it would
// notice. The test compiles the same sources with a machine of its own, which records.

#include "undo_layout.hpp"

namespace stillpoint::undo {

enum class Canary : std::uint8_t {
    none,
    log_fence,        ///< no fence between a log entry and the store that it covers
    log_write_back,   ///< entries are not written back
    data_write_back,  ///< written lines are not written back before the FASE ends
    commit_fence,     ///< no fence between the written lines and the end of the log
    commit_write_back, ///< the end of the log is not written back
    recovery_fence,   ///< recovery ends a log before what it undid is durable
    free_at_once,     ///< a block that is freed may be allocated again by the same FASE
};

}  // namespace stillpoint::undo

#ifdef STILLPOINT_UNDO_RECORDED
#include "undo_recorder.hpp"
#else

#include "arch/native.hpp"

namespace stillpoint::undo {

inline const arch::Native machine = arch::Native::detect();
constexpr bool removed(Canary) noexcept { return false; }

}  // namespace stillpoint::undo

#endif
