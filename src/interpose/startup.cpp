// The library's constructor: before the program's and, where the loader allows it, before those of
// other libraries. Shims that run earlier still find the real functions (real.hpp).

#include <dlfcn.h>
#include <gnu/libc-version.h>

#include "api/session.hpp"
#include "interpose/process.hpp"
#include "interpose/real.hpp"
#include "runtime/fase.hpp"
#include "runtime/fase_gate.hpp"
#include "runtime/plain_mutex.hpp"

namespace {

/// Another interposer between libc and this library wants to see every call, too.
bool comes_from_libc(const void* function) noexcept
{
    Dl_info of_function{};
    Dl_info of_libc{};
    return dladdr(function, &of_function) != 0 && dladdr(reinterpret_cast<const void*>(&gnu_get_libc_version), &of_libc) != 0 &&
           of_function.dli_fbase == of_libc.dli_fbase;
}

void choose_mutex_code() noexcept
{
    const stillpoint::MutexFunctions libc{REAL(pthread_mutex_lock), REAL(pthread_mutex_trylock), REAL(pthread_mutex_unlock)};
    if (comes_from_libc(reinterpret_cast<const void*>(libc.lock)) && stillpoint::plain_mutex_is_as_expected(libc)) {
        stillpoint::fase::gate.locks_plainly.store(true, std::memory_order_relaxed);
    } else {
        stillpoint::fase::gate.bits.fetch_or(stillpoint::fase::libc_only);
    }
}

/// 101 is the earliest priority that is not the compiler's own.
[[gnu::constructor(101)]] void start()
{
    stillpoint::real::resolve();
    choose_mutex_code();
    stillpoint::interpose::remember_home_process();
    stillpoint::interpose::register_process_handlers();
    stillpoint::set_thread_exit_hook(&stillpoint::session_thread_exit);
    stillpoint::session_process::set_replacer(&stillpoint::real::replace);
    stillpoint::session_start_from_environment();
}

}  // namespace
