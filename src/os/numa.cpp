#include "os/numa.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <string_view>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/core.h>

#include "os/descriptor.hpp"

namespace stillpoint::os {

namespace {

/// Calls `each` for every number of a list as the kernel writes it: "0-3,8".
template <class Each>
void for_each_number(std::string_view list, unsigned limit, Each each) noexcept
{
    const char* at = list.data();
    const char* const end = at + list.size();
    while (at != end) {
        unsigned first = 0;
        const auto begun = std::from_chars(at, end, first);
        if (begun.ec != std::errc{}) {
            return;
        }
        unsigned last = first;
        at = begun.ptr;
        if (at != end && *at == '-') {
            at = std::from_chars(at + 1, end, last).ptr;
        }
        for (unsigned number = first; number <= last && number < limit; ++number) {
            each(number);
        }
        if (at == end || *at != ',') {
            return;
        }
        ++at;
    }
}

/// A file's beginning, in `room`.
template <std::size_t Size>
std::string_view text_of(const char* path, char (&room)[Size]) noexcept
{
    const Descriptor file{static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC))};
    const long got = file.get() >= 0 ? syscall(SYS_read, file.get(), room, Size) : 0;
    return {room, static_cast<std::size_t>(std::max(got, 0L))};
}

}  // namespace

NumaNodes NumaNodes::read(const char* folder) noexcept
{
    NumaNodes found;
    char path[256] = {};
    char online[256];
    *fmt::format_to_n(path, sizeof path - 1, "{}/online", folder).out = '\0';
    for_each_number(text_of(path, online), nodes_max, [&](unsigned number) {
        Node& node = found.nodes_[found.count_];
        node.number = number;
        CPU_ZERO(&node.cpus);
        char list[1024];
        *fmt::format_to_n(path, sizeof path - 1, "{}/node{}/cpulist", folder, number).out = '\0';
        for_each_number(text_of(path, list), CPU_SETSIZE, [&](unsigned cpu) { CPU_SET(cpu, &node.cpus); });
        found.count_ += CPU_COUNT(&node.cpus) != 0 && found.count_ < nodes_max - 1 ? 1U : 0U;
    });
    if (found.count_ == 0) {
        found.count_ = 1;
        for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
            CPU_SET(cpu, &found.nodes_[0].cpus);
        }
    }
    return found;
}

bool NumaNodes::run_near(unsigned node) const noexcept
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        return false;
    }
    CPU_AND(&allowed, &allowed, &nodes_[node].cpus);
    return CPU_COUNT(&allowed) != 0 && sched_setaffinity(0, sizeof allowed, &allowed) == 0;
}

void NumaNodes::spread_pages(void* memory, std::size_t bytes) const noexcept
{
    if (count_ < 2) {
        return;
    }
    std::uint64_t mask = 0;
    for (unsigned node = 0; node < count_; ++node) {
        mask |= std::uint64_t{1} << nodes_[node].number;
    }
    syscall(SYS_mbind, memory, bytes, MPOL_INTERLEAVE, &mask, std::uint64_t{nodes_max + 1}, 0U);
}

}  // namespace stillpoint::os
