#pragma once
// Which engines the handlers of SIGSEGV and SIGBUS ask. session.hpp declares what they call.

namespace stillpoint {

class Engine;

/// The engine of the session of that number, from before it writes durable memory for the first time, which is earlier than the session
/// is open; nullptr: it is asked no more.
void set_fault_engine(unsigned number, Engine* engine) noexcept;

}  // namespace stillpoint
