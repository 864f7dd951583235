#include "engines/pronto/types.hpp"

#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <string>

#include "os/futex.hpp"

namespace stillpoint::pronto {

namespace {

/// Constant-initialised: types are made known by the constructors of a program's globals.
constinit os::FutexLock lock;

using Types = std::map<std::string, const sp_pronto_type*, std::less<>>;

/// Never destroyed: the destructors of a program's globals may still use objects.
Types& types()
{
    static Types* const all = new Types;
    return *all;
}

Result<void> check_text(const char* what, const char* text, std::size_t bytes_min, std::size_t bytes_max)
{
    if (text == nullptr) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "a type of durable objects has no {}", what);
    }
    const std::size_t bytes = strnlen(text, bytes_max + 1);
    if (bytes < bytes_min || bytes > bytes_max) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "the {} \"{:.80}\" of a type of durable objects must have {} to {} bytes", what, text,
                    bytes_min, bytes_max);
    }
    return {};
}

Result<void> check_methods(const sp_pronto_type& type)
{
    if (type.method_count > SP_PRONTO_METHODS_MAX || (type.method_count != 0 && type.methods == nullptr)) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "the type \"{}\" has {} methods; at most {} are possible", type.name, type.method_count,
                    int{SP_PRONTO_METHODS_MAX});
    }
    std::set<std::string_view> names;
    for (std::size_t i = 0; i < type.method_count; ++i) {
        const sp_pronto_method& method = type.methods[i];
        if (auto checked = check_text("method name", method.name, 1, SP_PRONTO_NAME_BYTES_MAX); !checked) {
            return checked;
        }
        if (auto checked = check_text("signature", method.signature, 0, SP_PRONTO_SIGNATURE_BYTES_MAX); !checked) {
            return checked;
        }
        if (method.replay == nullptr || !names.insert(method.name).second) {
            return fail(SP_E_INVALID_ARGUMENT, 0, "the method \"{}\" of the type \"{}\" {}", method.name, type.name,
                        method.replay == nullptr ? "cannot be run again: it has no `replay`" : "is there twice");
        }
    }
    return {};
}

Result<void> check_type(const sp_pronto_type& type)
{
    if (auto checked = check_text("name", type.name, 1, SP_PRONTO_NAME_BYTES_MAX); !checked) {
        return checked;
    }
    const std::size_t alignment = type.alignment_bytes;
    if (type.size_bytes == 0 || alignment == 0 || alignment > 64 || (alignment & (alignment - 1)) != 0 || type.construct == nullptr ||
        type.destroy == nullptr) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "the type \"{}\" needs a size, an alignment of at most 64, `construct` and `destroy`",
                    type.name);
    }
    return check_methods(type);
}

}  // namespace

Result<void> register_type(const sp_pronto_type& type)
{
    try {
        if (auto checked = check_type(type); !checked) {
            return checked;
        }
        const std::lock_guard guard(lock);
        const auto [known, added] = types().emplace(type.name, &type);
        if (!added && known->second != &type) {
            return fail(SP_E_INVALID_ARGUMENT, 0, "two types of durable objects are called \"{}\"", type.name);
        }
        return {};
    } catch (const std::bad_alloc&) {
        return fail(SP_E_NO_MEMORY, 0, "no memory for one more type of durable objects");
    }
}

const sp_pronto_type* find_type(std::string_view name) noexcept
{
    const std::lock_guard guard(lock);
    const auto found = types().find(name);
    return found == types().end() ? nullptr : found->second;
}

}  // namespace stillpoint::pronto
