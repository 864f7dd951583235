// exec replaces the program: its session ends first. A session cannot begin again, so calls that will
// fail because a file is not executable are passed on untouched; if exec fails for another reason after the
// session ended, the process ends with a message rather than run on volatile.
//
// A child of fork or vfork has no session to end: its calls go straight to libc.

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sysexits.h>

#include "api/session.hpp"
#include "interpose/process.hpp"
#include "interpose/real.hpp"
#include "os/log.hpp"

namespace {

bool is_executable(int folder, const char* path, int flags) noexcept
{
    struct stat facts{};
    return path != nullptr && fstatat(folder, path, &facts, flags & AT_EMPTY_PATH) == 0 && S_ISREG(facts.st_mode) &&
           (facts.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) != 0;
}

/// Searches PATH as execvp does.
bool is_found(const char* file) noexcept
{
    if (file == nullptr || std::strchr(file, '/') != nullptr) {
        return is_executable(AT_FDCWD, file, 0);
    }
    const char* path = std::getenv("PATH");
    std::string_view folders = path == nullptr ? "/bin:/usr/bin" : path;
    while (true) {
        const auto folder = folders.substr(0, folders.find(':'));
        char candidate[PATH_MAX];
        const std::size_t name_bytes = std::strlen(file);
        if (folder.size() + 2 + name_bytes <= sizeof candidate) {
            std::memcpy(candidate, folder.data(), folder.size());
            char* name = candidate + folder.size();
            if (!folder.empty()) {
                *name++ = '/';
            }
            std::memcpy(name, file, name_bytes + 1);
            if (is_executable(AT_FDCWD, candidate, 0)) {
                return true;
            }
        }
        if (folder.size() == folders.size()) {
            return false;
        }
        folders.remove_prefix(folder.size() + 1);
    }
}

/// Ends the session if there is one and `promising`. True if it did: there is no way back.
bool end_session_before_exec(bool promising) noexcept
{
    if (!promising || !stillpoint::interpose::is_home_process() || !stillpoint::session_is_in_use()) {
        return false;
    }
    stillpoint::session_end();
    return true;
}

/// `result` is exec's: it only returns when it failed.
int settle(int result, bool ended) noexcept
{
    if (ended) {
        stillpoint::os::log(stillpoint::os::Severity::error,
                            "exec failed ({}) after the pool was closed; the process ends, because "
                            "it would continue without durable memory",
                            std::strerror(errno));
        REAL(_exit)(EX_OSERR);
    }
    return result;
}

/// Pointers that execl's vector needs, the first argument and the final nullptr included. At least two:
/// an empty list has its nullptr in the first place.
std::size_t count_arguments(const char* first, va_list arguments) noexcept
{
    std::size_t size = 2;
    while (first != nullptr && va_arg(arguments, char*) != nullptr) {
        ++size;
    }
    return size;
}

void collect_arguments(char** vector, const char* first, va_list arguments) noexcept
{
    *vector = const_cast<char*>(first);
    while (*vector != nullptr) {
        *++vector = va_arg(arguments, char*);
    }
}

}  // namespace

SHIM int execve(const char* path, char* const arguments[], char* const environment[]) noexcept
{
    const bool ended = end_session_before_exec(is_executable(AT_FDCWD, path, 0));
    return settle(REAL(execve)(path, arguments, environment), ended);
}

SHIM int execv(const char* path, char* const arguments[]) noexcept
{
    const bool ended = end_session_before_exec(is_executable(AT_FDCWD, path, 0));
    return settle(REAL(execv)(path, arguments), ended);
}

SHIM int execvp(const char* file, char* const arguments[]) noexcept
{
    const bool ended = end_session_before_exec(is_found(file));
    return settle(REAL(execvp)(file, arguments), ended);
}

SHIM int execvpe(const char* file, char* const arguments[], char* const environment[]) noexcept
{
    const bool ended = end_session_before_exec(is_found(file));
    return settle(REAL(execvpe)(file, arguments, environment), ended);
}

SHIM int fexecve(int file, char* const arguments[], char* const environment[]) noexcept
{
    const bool ended = end_session_before_exec(is_executable(file, "", AT_EMPTY_PATH));
    return settle(REAL(fexecve)(file, arguments, environment), ended);
}

SHIM int execveat(int folder, const char* path, char* const arguments[], char* const environment[], int flags) noexcept
{
    const bool ended = end_session_before_exec(is_executable(folder, path, flags));
    return settle(REAL(execveat)(folder, path, arguments, environment, flags), ended);
}

// The variadic forms: the vector lies on the stack, because a child of vfork may not call malloc.

SHIM int execl(const char* path, const char* first, ...) noexcept
{
    va_list list;
    va_start(list, first);
    auto** vector = static_cast<char**>(alloca(count_arguments(first, list) * sizeof(char*)));
    va_end(list);
    va_start(list, first);
    collect_arguments(vector, first, list);
    va_end(list);
    return execv(path, vector);
}

SHIM int execlp(const char* file, const char* first, ...) noexcept
{
    va_list list;
    va_start(list, first);
    auto** vector = static_cast<char**>(alloca(count_arguments(first, list) * sizeof(char*)));
    va_end(list);
    va_start(list, first);
    collect_arguments(vector, first, list);
    va_end(list);
    return execvp(file, vector);
}

SHIM int execle(const char* path, const char* first, ...) noexcept
{
    va_list list;
    va_start(list, first);
    auto** vector = static_cast<char**>(alloca(count_arguments(first, list) * sizeof(char*)));
    va_end(list);
    va_start(list, first);
    collect_arguments(vector, first, list);
    char* const* environment = va_arg(list, char* const*);
    va_end(list);
    return execve(path, vector, environment);
}
