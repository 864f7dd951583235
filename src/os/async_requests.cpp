#include "os/async_requests.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/own_descriptors.hpp"

namespace stillpoint::os {

namespace {

/// A call that asks for nothing: other descriptors refuse it.
[[nodiscard]] bool is_ring(int descriptor) noexcept
{
    return syscall(SYS_io_uring_enter, descriptor, 0, 0, 0, nullptr, 0) >= 0 ||
           (errno != EBADF && errno != EOPNOTSUPP && errno != ENOSYS && errno != EPERM);
}

/// Reads a file of /proc by pieces; each line is told without its end. False: it cannot be read.
template <class Tell>
bool read_lines(int descriptor, Tell&& tell) noexcept
{
    char buffer[4096];
    std::size_t kept = 0;
    while (true) {
        const ssize_t got = syscall(SYS_read, descriptor, buffer + kept, sizeof buffer - kept);
        if (got <= 0) {
            return got == 0;
        }
        std::string_view text(buffer, kept + static_cast<std::size_t>(got));
        for (auto end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
            tell(text.substr(0, end));
            text.remove_prefix(end + 1);
        }
        kept = text.size() < sizeof buffer ? text.size() : 0;
        std::memmove(buffer, text.data(), kept);
    }
}

[[nodiscard]] std::uint64_t number_after(std::string_view line, std::string_view name, int base = 10) noexcept
{
    line.remove_prefix(std::min(line.size(), name.size()));
    const auto begin = line.find_first_not_of(" \t");
    std::uint64_t value = 0;
    if (begin != std::string_view::npos) {
        std::from_chars(line.data() + begin, line.data() + line.size(), value, base);
    }
    return value;
}

constexpr std::size_t shared_bytes = 4096;

}  // namespace

/// Each request has one completion, as a rule. Requests with several, or with none, make a ring look busy, which costs copies.
bool AsyncRequests::is_busy(int ring) const noexcept
{
    const long mapped = syscall(SYS_mmap, nullptr, shared_bytes, PROT_READ, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    if (mapped == -1 || completed_offset_ == 0) {
        return is_ring(ring);  // Made without a mapping, or closed meanwhile.
    }
    const auto* const shared = reinterpret_cast<const std::byte*>(mapped);
    const auto word_at = [shared](std::size_t offset) {
        return reinterpret_cast<const std::atomic<std::uint32_t>*>(shared + offset)->load(std::memory_order_acquire);
    };
    const std::uint32_t completed = word_at(completed_offset_);
    const bool busy = completed != word_at(submitted_offset_);
    syscall(SYS_munmap, mapped, shared_bytes);
    return busy;
}

void AsyncRequests::open(std::uintptr_t begin, std::uintptr_t end) noexcept
{
    begin_ = begin;
    end_ = end;
    status_ = claim_descriptor(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
    aio_count_ = claim_descriptor(::open("/proc/sys/fs/aio-nr", O_RDONLY | O_CLOEXEC));
    io_uring_params facts{};
    const long ring = syscall(SYS_io_uring_setup, 1, &facts);
    has_rings_ = ring >= 0;
    if (has_rings_) {
        syscall(SYS_close, ring);
        submitted_offset_ = facts.sq_off.tail;
        completed_offset_ = facts.cq_off.tail;
    }
}

void AsyncRequests::close() noexcept
{
    for (int* const descriptor : {&status_, &aio_count_}) {
        if (*descriptor >= 0) {
            close_descriptor(*descriptor);
            *descriptor = -1;
        }
    }
}

/// Descriptors get the lowest free numbers: after a long gap there are only few.
void AsyncRequests::find_rings(int descriptors_end, int gap_max) noexcept
{
    std::array<int, rings_max> before = ring_;
    const std::size_t before_count = rings_;
    rings_ = 0;
    more_rings_ = false;
    int gap = 0;
    for (int descriptor = 0; descriptor < descriptors_end && gap < gap_max; ++descriptor) {
        if (is_own_descriptor(descriptor)) {
            continue;
        }
        if (!is_ring(descriptor)) {
            gap = errno == EBADF ? gap + 1 : 0;
            continue;
        }
        gap = 0;
        more_rings_ = rings_ == rings_max;
        if (more_rings_) {
            break;
        }
        ring_[rings_++] = descriptor;
        const auto* const known_end = before.data() + before_count;
        found_new_ = found_new_ || std::find(static_cast<const int*>(before.data()), known_end, descriptor) == known_end;
    }
    // Descriptors beyond the gap, as far as they still exist.
    for (std::size_t i = 0; i < before_count && rings_ < rings_max; ++i) {
        const auto* const found_end = ring_.data() + rings_;
        if (std::find(static_cast<const int*>(ring_.data()), found_end, before[i]) == found_end && is_ring(before[i])) {
            ring_[rings_++] = before[i];
        }
    }
}

void AsyncRequests::add_registered(std::uintptr_t begin, std::uintptr_t end) noexcept
{
    begin = std::max(begin, begin_);
    end = std::min(end, end_);
    if (begin >= end) {
        return;
    }
    if (registered_count_ < registered_max) {
        registered_[registered_count_++] = {begin, end};
        return;
    }
    Range& last = registered_[registered_max - 1];
    last = {std::min(last.begin, begin), std::max(last.end, end)};
}

/// The kernel shows what is registered only while no other thread has the ring's lock.
bool AsyncRequests::find_registered_of(int ring, std::uint64_t& total_bytes) noexcept
{
    char path[40] = "/proc/self/fdinfo/";
    *std::to_chars(path + std::strlen(path), path + sizeof path - 1, ring).ptr = '\0';
    constexpr int tries = 8;
    const std::size_t count_before = registered_count_;
    for (int i = 0; i < tries; ++i) {
        const int info = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
        if (info < 0) {
            return true;  // Closed meanwhile.
        }
        bool whole = false;
        bool in_buffers = false;
        std::uint64_t bytes = 0;
        registered_count_ = count_before;
        read_lines(info, [&](std::string_view line) {
            if (line.starts_with("UserBufs:")) {
                whole = in_buffers = true;
            } else if (in_buffers && line.starts_with(" ")) {
                // "    0: 0x7f2229044000/65536"
                const auto address = line.find("0x");
                const auto size = line.find('/');
                if (address != line.npos && size != line.npos) {
                    const std::uintptr_t begin = number_after(line, line.substr(0, address + 2), 16);
                    const std::uint64_t here = number_after(line, line.substr(0, size + 1));
                    bytes += here;
                    add_registered(begin, begin + here);
                }
            } else {
                in_buffers = false;
            }
        });
        syscall(SYS_close, info);
        if (whole) {
            total_bytes += bytes;
            return true;
        }
    }
    return false;
}

/// Registered memory is pinned, and what is pinned is counted.
void AsyncRequests::find_registered() noexcept
{
    char text[4096];
    const long got = status_ >= 0 ? syscall(SYS_pread64, status_, text, sizeof text, 0) : 0;
    const std::string_view status(text, static_cast<std::size_t>(std::max(got, 0L)));
    const auto line = status.find("VmPin:");
    const std::uint64_t pinned = line == status.npos ? 0 : number_after(status.substr(line), "VmPin:") * 1024;
    std::copy_n(registered_.begin(), registered_count_, previous_.begin());
    previous_count_ = registered_count_;
    registered_count_ = 0;
    std::uint64_t registered_bytes = 0;
    bool all_shown = true;
    for (std::size_t i = 0; i < rings_ && pinned != 0; ++i) {
        all_shown = find_registered_of(ring_[i], registered_bytes) && all_shown;
    }
    if (!all_shown) {
        // Nothing is forgotten before all can be seen.
        for (std::size_t i = 0; i < previous_count_; ++i) {
            add_registered(previous_[i].begin, previous_[i].end);
        }
    }
    pinned_by_others_ = registered_bytes == 0 && all_shown ? pinned : 0;
    constexpr auto same = [](const Range& a, const Range& b) { return a.begin == b.begin && a.end == b.end; };
    if (std::ranges::equal(std::span(previous_.data(), previous_count_), registered(), same)) {
        previous_count_ = 0;
    }
}

/// A context is a mapping by that name. The count is of the whole system: while it stays as it was there is no new one here.
void AsyncRequests::find_aio_contexts() noexcept
{
    char text[24];
    const long got = aio_count_ >= 0 ? syscall(SYS_pread64, aio_count_, text, sizeof text, 0) : 0;
    const std::uint64_t count = number_after({text, static_cast<std::size_t>(std::max(got, 0L))}, "");
    if (count == aio_count_seen_) {
        return;
    }
    aio_count_seen_ = count;
    bool found = false;
    const int maps = static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC));
    if (maps >= 0) {
        read_lines(maps, [&](std::string_view line) { found = found || line.find("/[aio]") != line.npos; });
        syscall(SYS_close, maps);
    }
    found_new_ = found_new_ || (found && !aio_contexts_);
    aio_contexts_ = found;
}

bool AsyncRequests::look(Depth depth) noexcept
{
    found_new_ = false;
    previous_count_ = 0;
    if (depth != Depth::known) {
        constexpr int low_gap = 32;
        constexpr int descriptors_max = 65536;
        constexpr int gap_max = 1024;
        find_rings(has_rings_ ? descriptors_max : 0, depth == Depth::all ? gap_max : low_gap);
        if (rings_ != 0 || registered_count_ != 0 || depth == Depth::all) {
            find_registered();
        }
        find_aio_contexts();
    }
    bool busy = more_rings_ || aio_contexts_;
    for (std::size_t i = 0; i < rings_ && !busy; ++i) {
        busy = is_busy(ring_[i]);
    }
    return busy;
}

}  // namespace stillpoint::os
