#include "os/service_manager.hpp"

#include <atomic>
#include <dlfcn.h>
#include <unistd.h>

#include "os/environment.hpp"

namespace stillpoint::os {

namespace {

using Notify = int (*)(int unset_environment, const char* state);

constinit std::atomic<Notify> notify{nullptr};
constinit std::atomic<pid_t> home_process{0};

}  // namespace

Result<bool> find_service_manager()
{
    const char* const socket = environment_variable("NOTIFY_SOCKET");
    if (socket == nullptr || *socket == '\0') {
        return false;
    }
    void* const library = dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL);
    void* const function = library != nullptr ? dlsym(library, "sd_notify") : nullptr;
    if (function == nullptr) {
        const char* const reason = dlerror();
        return fail(SP_E_UNSUPPORTED, 0, "systemd cannot be told that the program is ready ({}): install libsystemd0",
                    reason != nullptr ? reason : "libsystemd.so.0 has no sd_notify");
    }
    home_process.store(getpid(), std::memory_order_relaxed);
    notify.store(reinterpret_cast<Notify>(function), std::memory_order_release);
    return true;
}

void tell_service_manager(const char* state) noexcept
{
    if (const Notify tell = notify.load(std::memory_order_acquire);
        tell != nullptr && getpid() == home_process.load(std::memory_order_relaxed)) {
        static_cast<void>(tell(0, state));
    }
}

}  // namespace stillpoint::os
