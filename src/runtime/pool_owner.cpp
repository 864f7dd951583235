#include "runtime/pool_owner.hpp"

#include <atomic>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <unistd.h>

#include "os/environment.hpp"
#include "os/log.hpp"

namespace stillpoint {

namespace {

/// The process that opened the pool: its descendants by fork and exec inherit this, and stay out.
constexpr const char* owner_variable = "STILLPOINT_OWNER";

/// Digits that are written in place: setenv is not safe beside threads that read the environment.
constexpr std::size_t owner_digits = 10;
constinit char owner_text[] = "STILLPOINT_OWNER=0000000000";
static_assert(sizeof owner_text == sizeof "STILLPOINT_OWNER=" + owner_digits);

}  // namespace

pid_t process_in(const char* variable) noexcept
{
    const char* const text = os::environment_variable(variable);
    pid_t process = 0;
    if (text != nullptr) {
        std::from_chars(text, text + std::strlen(text), process);
    }
    return process;
}

bool owned_by_another_process() noexcept
{
    const pid_t owner = process_in(owner_variable);
    return owner != 0 && owner != getpid();
}

bool is_later_program_of_run() noexcept { return process_in(run_variable) != 0 && os::environment_variable(owner_variable) != nullptr; }

void reserve_owner_variable() noexcept { os::put_environment_variable(owner_text); }

void announce_owner() noexcept
{
    auto rest = static_cast<unsigned long>(getpid());
    char* const digits = owner_text + sizeof "STILLPOINT_OWNER=" - 1;
    for (std::size_t i = owner_digits; i-- > 0; rest /= 10) {
        digits[i] = static_cast<char>('0' + rest % 10);
    }
}

void warn_if_owned_elsewhere() noexcept
{
    static std::atomic<bool> asked{false};
    if (asked.load(std::memory_order_relaxed) || asked.exchange(true, std::memory_order_relaxed)) {
        return;
    }
    const char* const pool = os::environment_variable(pool_variable);
    if (pool != nullptr && *pool != '\0' && owned_by_another_process()) {
        os::log(os::Severity::warning,
                "the pool {} is open in process {}, which started this one (process {}): nothing here is durable. "
                "Only one process has a pool; the one that started this uses durable memory itself",
                pool, process_in(owner_variable), getpid());
    }
}

}  // namespace stillpoint
