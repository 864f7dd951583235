#include "os/own_descriptors.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <fcntl.h>
#include <span>
#include <sys/resource.h>
#include <unistd.h>

namespace stillpoint::os {

namespace {

/// Each place holds a descriptor plus one; 0: nothing. Ready before any constructor has run.
constexpr int nothing = 0;
constinit std::array<std::atomic<int>, 128> places{};
/// No place from here on has ever been used: a process with one pool looks at a few.
constinit std::atomic<std::size_t> places_used{0};

std::span<std::atomic<int>> used_places() noexcept { return {places.data(), places_used.load(std::memory_order_acquire)}; }

/// Above what programs use, below what select() and the usual limit allow.
int lowest_wanted() noexcept
{
    constexpr rlim_t usual = 1024;
    rlimit limit{};
    const rlim_t most = getrlimit(RLIMIT_NOFILE, &limit) == 0 ? std::min(limit.rlim_cur, usual) : usual;
    return static_cast<int>(most - std::min<rlim_t>(most / 4, 64));
}

}  // namespace

int claim_descriptor(int fd) noexcept
{
    if (fd < 0) {
        return fd;
    }
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, lowest_wanted());
    if (moved >= 0) {
        ::close(fd);
        fd = moved;
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
        int free = nothing;
        if (places[i].compare_exchange_strong(free, fd + 1, std::memory_order_acq_rel)) {
            std::size_t used = places_used.load(std::memory_order_relaxed);
            while (used < i + 1 && !places_used.compare_exchange_weak(used, i + 1, std::memory_order_acq_rel)) {
            }
            break;
        }
    }
    return fd;
}

void disown_descriptor(int fd) noexcept
{
    for (auto& place : used_places()) {
        int own = fd + 1;
        if (place.compare_exchange_strong(own, nothing, std::memory_order_acq_rel)) {
            break;
        }
    }
}

void close_descriptor(int fd) noexcept
{
    disown_descriptor(fd);
    ::close(fd);
}

bool is_own_descriptor(int fd) noexcept { return fd >= 0 && next_own_descriptor(fd) == fd; }

int next_own_descriptor(int first) noexcept
{
    int lowest = -1;
    for (const auto& place : used_places()) {
        const int fd = place.load(std::memory_order_acquire) - 1;
        if (fd >= 0 && fd >= first && (lowest < 0 || fd < lowest)) {
            lowest = fd;
        }
    }
    return lowest;
}

}  // namespace stillpoint::os
