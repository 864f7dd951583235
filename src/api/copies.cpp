// The C API: a copy of an open pool, or what has changed in it since one.

#include <cerrno>
#include <new>
#include <string>
#include <unistd.h>

#include "api/session.hpp"
#include "media/file_names.hpp"
#include "media/pool_file_copy.hpp"
#include "pool/pool_increment.hpp"
#include "runtime/api_export.hpp"
#include "runtime/session_state.hpp"
#include "runtime/session_waits.hpp"
#include "stillpoint/stillpoint.h"

namespace stillpoint {

namespace {

/// The path of the program's pool, where there is one and the copy's name is free.
Result<std::string> pool_to_copy(const std::string& new_path)
{
    const auto session = session_to_make_durable();
    if (!session) {
        return pass_on(session.error());
    }
    if (auto free = check_name_is_free(new_path); !free) {
        return pass_on(free.error());
    }
    return (*session)->pool;
}

/// By the file's name, as another process copies it: the session's own lock and turns hold for this copier too.
Result<void> copy_open_pool(const std::string& new_path)
{
    const AtRest here(used_session());
    const auto path = pool_to_copy(new_path);
    if (!path) {
        return pass_on(path.error());
    }
    const std::string unfinished = unfinished_name(new_path);
    auto copy = CopiedFile::open(unfinished, mode_of(*path));
    if (!copy) {
        return pass_on(copy.error());
    }
    if (auto copied = copy_pool_file(*path, *copy, {}); !copied) {
        return pass_on(copied.error());
    }
    if (auto done = copy->finish(); !done) {
        return done;
    }
    auto named = give_name(unfinished, new_path);
    return named ? copy->remove_mark() : named;
}

/// As copy_open_pool().
Result<void> copy_changes(const std::string& new_path, const std::string& base_path)
{
    const AtRest here(used_session());
    const auto path = pool_to_copy(new_path);
    if (!path) {
        return pass_on(path.error());
    }
    const auto base = IncrementBase::read(base_path);
    if (!base) {
        return pass_on(base.error());
    }
    const std::string unfinished = unfinished_name(new_path);
    auto increment = NewIncrement::open(unfinished, mode_of(*path));
    if (!increment) {
        return pass_on(increment.error());
    }
    const auto made = make_increment({*path, unfinished, {}}, *base, *increment);
    auto named = made ? give_name(unfinished, new_path) : Result<void>{pass_on(made.error())};
    if (!named) {
        unlink(unfinished.c_str());
    }
    return named;
}

/// The code of what `copy` returns, which copies to `new_path`.
template <class Copy>
int code_of(Copy copy, const char* new_path)
{
    try {
        auto copied = copy();
        return copied ? static_cast<int>(SP_OK) : report(copied.error());
    } catch (const std::bad_alloc&) {
        return report(fail(SP_E_NO_MEMORY, ENOMEM, "no memory to copy to {}", new_path).value());
    }
}

}  // namespace

}  // namespace stillpoint

STILLPOINT_API int sp_copy(const char* new_path)
{
    if (new_path == nullptr || *new_path == '\0') {
        return stillpoint::report(stillpoint::fail(SP_E_INVALID_ARGUMENT, 0, "sp_copy needs a path").value());
    }
    return stillpoint::code_of([=] { return stillpoint::copy_open_pool(new_path); }, new_path);
}

STILLPOINT_API int sp_copy_since(const char* new_path, const char* base_path)
{
    if (new_path == nullptr || *new_path == '\0' || base_path == nullptr || *base_path == '\0') {
        return stillpoint::report(stillpoint::fail(SP_E_INVALID_ARGUMENT, 0, "sp_copy_since needs a path, and that of a base").value());
    }
    return stillpoint::code_of([=] { return stillpoint::copy_changes(new_path, base_path); }, new_path);
}
