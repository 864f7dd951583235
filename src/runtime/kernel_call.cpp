#include "runtime/kernel_call.hpp"

#include <algorithm>
#include <cerrno>

#include "core/canary.hpp"
#include "core/store_marks.hpp"
#include "runtime/session_engine.hpp"

namespace stillpoint {

namespace {

void note_kernel_write(void* address, std::size_t size) noexcept
{
    if (is_removed(Canary::kernel_store_marks)) {
        return;
    }
    note_program_store(address, size);
    session_note_kernel_write(address, size);
}

kernel_writes::Slot announce(void* address, std::size_t size, const void* frame) noexcept
{
    const kernel_writes::Slot slot = kernel_writes::announce(address, size, frame);
    announce_store(address, size);
    if (!is_removed(Canary::kernel_call_opening)) {
        session_prepare_kernel_write(address, size);
    }
    return slot;
}

/// The call has failed, and certainly stored nothing. Other failures may have come in the middle.
[[nodiscard]] bool nothing_happened() noexcept { return errno == EAGAIN || errno == EINTR || errno == EINVAL || errno == EBADF; }

/// Bytes that a call with this result may have stored to.
[[nodiscard]] std::size_t bytes_stored(ssize_t result, std::size_t size) noexcept
{
    return result >= 0 ? std::min(static_cast<std::size_t>(result), size) : nothing_happened() ? 0 : size;
}

}  // namespace

void KernelCall::begin(std::size_t size) noexcept
{
    size_ = size;
    if (size != 0) {
        kernel_writes::begin_call(this, &note_kernel_write);
        slot_ = announce(buffer_, size, this);
    }
}

void KernelCall::note(std::size_t size) noexcept
{
    told_ = true;
    if (size != 0) {
        note_kernel_write(buffer_, std::min(size, size_));
    }
}

void KernelCall::note_returned(ssize_t stored) noexcept
{
    const int saved_errno = errno;
    note(bytes_stored(stored, size_));
    errno = saved_errno;
}

void KernelCall::end() noexcept
{
    if (!told_) {
        note(size_);
    }
    kernel_writes::withdraw(slot_, this);
}

void KernelCallParts::begin(std::size_t count) noexcept
{
    count_ = count;
    kernel_writes::begin_call(this, &note_kernel_write);
    for (std::size_t i = 0; i < count; ++i) {
        if (stillpoint_is_persistent(parts_[i].iov_base) && parts_[i].iov_len != 0 &&
            announce(parts_[i].iov_base, parts_[i].iov_len, this) == kernel_writes::no_slot) {
            ++without_slot_;
        }
    }
}

void KernelCallParts::note(std::size_t size) noexcept
{
    told_ = true;
    for (std::size_t i = 0; i < count_ && size != 0; ++i) {
        const std::size_t here = std::min(parts_[i].iov_len, size);
        if (stillpoint_is_persistent(parts_[i].iov_base) && here != 0) {
            note_kernel_write(parts_[i].iov_base, here);
        }
        size -= here;
    }
}

void KernelCallParts::note_returned(ssize_t stored) noexcept
{
    const int saved_errno = errno;
    note(bytes_stored(stored, SIZE_MAX));
    errno = saved_errno;
}

void KernelCallParts::end() noexcept
{
    if (!told_) {
        note(SIZE_MAX);
    }
    kernel_writes::withdraw_of(this, without_slot_);
}

void kernel_request_begins(void* buffer, std::size_t size, const void* request) noexcept
{
    if (stillpoint_is_persistent(buffer) && size != 0) {
        kernel_writes::announce_request(buffer, size, request, &note_kernel_write);
        announce_store(buffer, size);
        session_prepare_kernel_write(buffer, size);
    }
}

void kernel_request_ended(const void* request) noexcept { kernel_writes::end_request(request, &note_kernel_write); }

void kernel_calls_end_thread() noexcept { kernel_writes::end_thread(&note_kernel_write); }

}  // namespace stillpoint
