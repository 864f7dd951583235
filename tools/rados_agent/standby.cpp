#include "standby.hpp"

#include <cerrno>
#include <poll.h>
#include <sysexits.h>
#include <unistd.h>

namespace stillpoint::rados {

namespace {

constexpr int look_ms = 50;
constexpr int look_after_failure_ms = 1000;

bool may_pass(const Failure& failure)
{
    return failure.code == SP_E_TIMED_OUT || (failure.code == SP_E_IO && failure.os_error != ESHUTDOWN);
}

/// Sleeps, unless the program that waits has ended: then so does this process.
void sleep_while_wanted(int ms)
{
    pollfd watched[] = {{socket_descriptor, POLLIN, 0}, {program_descriptor, POLLIN, 0}};
    if (poll(watched, 2, ms) > 0) {
        _exit(EX_OK);  // Nothing is owned yet, and the program has nothing to say.
    }
}

}  // namespace

Result<void> await_ownership(Ownership& ownership, WarmCache& cache)
{
    for (;;) {
        const auto taken = ownership.try_take_free([](const char*) {});
        if (taken && *taken) {
            return {};
        }
        if (!taken && !may_pass(taken.error())) {
            return pass_on(taken.error());
        }
        if (taken) {
            cache.follow(ownership.head().size_bytes);
        }
        sleep_while_wanted(taken ? look_ms : look_after_failure_ms);
    }
}

}  // namespace stillpoint::rados
