#include "media/write_turns.hpp"

#include <ctime>
#include <mutex>

#include "os/clock.hpp"
#include "os/range_lock.hpp"

namespace stillpoint {

namespace {

using os::LockByte;

constexpr timespec pause_between{0, 200'000};

}  // namespace

void WriteTurns::honour_holds(int fd) noexcept
{
    fd_ = fd;
    honours_ = os::try_lock_byte(fd, LockByte::holds_honoured, true) == 0;
}

/// False: a copier holds.
bool WriteTurns::try_begin() noexcept
{
    const std::lock_guard guard(lock_);
    if (turns_ != 0) {
        ++turns_;
        return true;
    }
    if (os::try_lock_byte(fd_, LockByte::writing, true) != 0) {
        return false;
    }
    if (os::is_byte_locked(fd_, LockByte::hold, true)) {
        os::unlock_byte(fd_, LockByte::writing);
        return false;
    }
    turns_ = 1;
    is_locked_ = true;
    return true;
}

void WriteTurns::begin() noexcept
{
    if (!honours_ || try_begin()) {
        return;
    }
    const std::uint64_t begun_ns = os::monotonic_ns();
    do {
        nanosleep(&pause_between, nullptr);
        if (try_begin()) {
            return;
        }
    } while (os::monotonic_ns() - begun_ns < hold_max_ns);
    const std::lock_guard guard(lock_);
    ++turns_;  // The copier that still holds has waited too long.
}

void WriteTurns::end() noexcept
{
    if (!honours_) {
        return;
    }
    const std::lock_guard guard(lock_);
    if (--turns_ == 0 && is_locked_) {
        is_locked_ = false;
        os::unlock_byte(fd_, LockByte::writing);
    }
}

bool WriteHold::is_honoured(int fd) noexcept { return os::is_byte_locked(fd, LockByte::holds_honoured, false); }

bool WriteHold::take(std::uint64_t wait_max_ns) noexcept
{
    begun_ns_ = os::monotonic_ns();
    if (os::try_lock_byte(fd_, LockByte::hold, false) != 0) {
        return false;
    }
    is_held_ = true;
    while (os::try_lock_byte(fd_, LockByte::writing, false) != 0) {
        if (os::monotonic_ns() - begun_ns_ >= wait_max_ns) {
            release();
            return false;
        }
        nanosleep(&pause_between, nullptr);
    }
    return true;
}

std::uint64_t WriteHold::held_ns() const noexcept { return os::monotonic_ns() - begun_ns_; }

void WriteHold::release() noexcept
{
    if (is_held_) {
        is_held_ = false;
        os::unlock_byte(fd_, LockByte::writing);
        os::unlock_byte(fd_, LockByte::hold);
    }
}

}  // namespace stillpoint
