#include "os/environment.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sys/auxv.h>
#include <unistd.h>

namespace stillpoint::os {

namespace {

/// The place of NAME in the vector, or nullptr.
char** find_variable(const char* name, std::size_t length) noexcept
{
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        if (std::strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') {
            return entry;
        }
    }
    return nullptr;
}

}  // namespace

bool environment_is_foreign() noexcept { return getauxval(AT_SECURE) != 0; }

const char* environment_variable(const char* name) noexcept
{
    if (environment_is_foreign()) {
        return nullptr;
    }
    const std::size_t length = std::strlen(name);
    char** const found = find_variable(name, length);
    return found != nullptr ? *found + length + 1 : nullptr;
}

bool put_environment_variable(char* text) noexcept
{
    const auto length = static_cast<std::size_t>(std::strchr(text, '=') - text);
    if (char** const found = find_variable(text, length); found != nullptr) {
        *found = text;
        return true;
    }
    std::size_t count = 0;
    while (environ != nullptr && environ[count] != nullptr) {
        ++count;
    }
    // Never freed: the vector may have been copied by address. libc makes its own where it changes something.
    auto** const vector = static_cast<char**>(std::calloc(count + 2, sizeof(char*)));
    if (vector == nullptr) {
        return false;
    }
    std::copy_n(environ, count, vector);
    vector[count] = text;
    environ = vector;
    return true;
}

}  // namespace stillpoint::os
