// The library's constructor: before the program's and, where the loader allows it, before those of
// other libraries. Shims that run earlier still find the real functions (real.hpp).

#include "interpose/process.hpp"
#include "interpose/real.hpp"
#include "runtime/fase.hpp"
#include "runtime/session.hpp"

namespace {

/// 101 is the earliest priority that is not the compiler's own.
[[gnu::constructor(101)]] void start()
{
    stillpoint::real::resolve();
    stillpoint::interpose::remember_home_process();
    stillpoint::interpose::register_process_handlers();
    stillpoint::set_thread_exit_hook(&stillpoint::session_thread_exit);
    stillpoint::session_start_from_environment();
}

}  // namespace
