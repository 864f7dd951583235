#include "runtime/volatile_roots.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <string>

#include "os/futex.hpp"
#include "runtime/named_blocks.hpp"

namespace stillpoint {

namespace {

os::FutexLock roots_lock;

/// Never destroyed: a program's own destructors may still ask.
std::map<std::string, VolatileRoot, std::less<>>& roots()
{
    static auto* const map = new std::map<std::string, VolatileRoot, std::less<>>();
    return *map;
}

/// Complete from the first name on; before, no object has one.
constexpr std::uint64_t names_indexed = 4096;
NamedBlocks& named()
{
    static auto* const index = new NamedBlocks();
    return *index;
}
std::atomic<bool> any{false};

void add_name(const void* address) noexcept
{
    if (!any.load(std::memory_order_relaxed) && named().reserve(names_indexed)) {
        named().complete();
    }
    named().add(reinterpret_cast<std::uintptr_t>(address));
    any.store(true, std::memory_order_release);
}

}  // namespace

bool may_have_volatile_name(const void* address) noexcept
{
    return any.load(std::memory_order_acquire) && named().may_have_name(reinterpret_cast<std::uintptr_t>(address));
}

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
        VolatileRoot& there = roots()[std::string(handle)];
        named().remove(reinterpret_cast<std::uintptr_t>(there.address));
        there = root;
        add_name(root.address);
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
    named().remove(reinterpret_cast<std::uintptr_t>(root.address));
    roots().erase(found);
    return root;
}

void forget_volatile_root_of(const void* address) noexcept
{
    const std::lock_guard guard(roots_lock);
    if (std::erase_if(roots(), [&](const auto& root) { return root.second.address == address; }) != 0) {
        named().remove(reinterpret_cast<std::uintptr_t>(address));
    }
}

void move_volatile_root(std::uintptr_t from, VolatileRoot to) noexcept
{
    if (to.address == nullptr) {
        forget_volatile_root_of(reinterpret_cast<const void*>(from));
        return;
    }
    const std::lock_guard guard(roots_lock);
    const auto found = std::ranges::find_if(
        roots(), [&](const auto& root) { return reinterpret_cast<std::uintptr_t>(root.second.address) == from; });
    if (found != roots().end()) {
        named().remove(from);
        found->second = to;
        add_name(to.address);
    }
}

}  // namespace stillpoint
