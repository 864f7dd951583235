#include "os/environment.hpp"

#include <cstdlib>
#include <sys/auxv.h>

namespace stillpoint::os {

bool environment_is_foreign() noexcept { return getauxval(AT_SECURE) != 0; }

const char* environment_variable(const char* name) noexcept
{
    return environment_is_foreign() ? nullptr : std::getenv(name);
}

}  // namespace stillpoint::os
