#include "runtime/volatile_roots.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <new>
#include <string>

#include "os/futex.hpp"

namespace stillpoint {

namespace {

os::FutexLock roots_lock;

/// Never destroyed: a program's own destructors may still ask.
std::map<std::string, VolatileRoot, std::less<>>& roots()
{
    static auto* const map = new std::map<std::string, VolatileRoot, std::less<>>();
    return *map;
}

}  // namespace

VolatileRoot find_volatile_root(std::string_view handle) noexcept
{
    const std::lock_guard guard(roots_lock);
    const auto found = roots().find(handle);
    return found == roots().end() ? VolatileRoot{} : found->second;
}

bool put_volatile_root(std::string_view handle, VolatileRoot root) noexcept
{
    const std::lock_guard guard(roots_lock);
    try {
        roots()[std::string(handle)] = root;
    } catch (const std::bad_alloc&) {
        return false;
    }
    return true;
}

VolatileRoot erase_volatile_root(std::string_view handle) noexcept
{
    const std::lock_guard guard(roots_lock);
    const auto found = roots().find(handle);
    if (found == roots().end()) {
        return {};
    }
    const VolatileRoot root = found->second;
    roots().erase(found);
    return root;
}

void forget_volatile_root_of(const void* address) noexcept
{
    const std::lock_guard guard(roots_lock);
    std::erase_if(roots(), [&](const auto& root) { return root.second.address == address; });
}

}  // namespace stillpoint
