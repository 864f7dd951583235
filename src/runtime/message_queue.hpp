#pragma once
// Messages on their way to the program's callback: kept in memory that is there from the start, and delivered by a thread of their own,
// so that the callback may take any lock and call any function, whatever the runtime held when it had something to say.

#include "core/result.hpp"
#include "stillpoint/stillpoint.h"

namespace stillpoint::message_queue {

/// From now on, one call at a time, in the order of the messages; nullptr: messages go to standard error again. When it returns, the
/// callback of before is not running and will not be called, unless the caller is that callback. Errors are told on standard error, too:
/// the process may end right after one. So is what finds the queue full. Any thread. Errors: no_memory.
[[nodiscard]] Result<void> set_callback(sp_log_callback callback, void* context);

/// Waits until all messages are delivered, at most a second: before the process ends. Nothing on the thread of the callback.
void flush() noexcept;

/// In a child made by fork there is no thread for them: messages go to standard error.
void reset_after_fork() noexcept;

}  // namespace stillpoint::message_queue
