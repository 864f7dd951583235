#include "engines/pronto/snapshot_pieces.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/racing_copy.hpp"
#include "os/file_mapping.hpp"
#include "os/futex_calls.hpp"
#include "os/own_mappings.hpp"
#include "os/thread_calls.hpp"
#include "runtime/kernel_writes.hpp"

namespace stillpoint::pronto {

namespace {

/// While a piece is opened no other handler of this thread may run: it might write to the same piece, and wait for itself.
class SignalsBlocked {
public:
    SignalsBlocked() noexcept
    {
        const std::uint64_t all = ~std::uint64_t{0};
        syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before_, sizeof before_);
    }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;
    ~SignalsBlocked() { syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_); }

private:
    std::uint64_t before_ = 0;  ///< the kernel's form of a set
};

}  // namespace

Result<void> SnapshotPieces::reserve(std::uint64_t image_bytes_max)
{
    const std::uint64_t pieces_max = image_bytes_max / piece_bytes + 1;
    if (auto done = states_.reserve(pieces_max, "the states of pieces"); !done) {
        return done;
    }
    if (auto done = collapsed_.reserve(pieces_max, "the pieces in huge pages"); !done) {
        return done;
    }
    return frozen_.reserve(pieces_max, "the frozen pieces");
}

Result<void> SnapshotPieces::protect_all() { return protect(0, piece_count()); }

Result<void> SnapshotPieces::protect(std::uint32_t first, std::uint32_t end) noexcept
{
    const std::uint64_t begin_byte = first * piece_bytes;
    const std::uint64_t end_byte = std::min(end * piece_bytes, shadow_.bytes());
    if (first < end && os::protect_own(shadow_.base() + begin_byte, end_byte - begin_byte, PROT_READ) != 0) {
        return fail(SP_E_NO_MEMORY, errno, "cannot write-protect {} bytes of durable memory: {}", end_byte - begin_byte,
                    std::strerror(errno));
    }
    return {};
}

/// A piece that a system call is storing into: the kernel would answer EFAULT where it is read-only. Its copy is made here, in the stop,
/// while it stays writable. Staging memory is empty now; calls in flight that fill all of it leave the rest frozen.
bool SnapshotPieces::copy_in_flight(std::uint32_t piece) noexcept
{
    const auto begin = reinterpret_cast<std::uintptr_t>(shadow_.base()) + piece * piece_bytes;
    const std::uintptr_t end = begin + captured_bytes_of(piece);
    if (kernel_writes::first_in_flight(begin, end).begin == end) {
        return false;
    }
    const std::uint32_t slot = staging_.take(0);
    if (slot == SnapshotStaging::none) {
        return false;
    }
    copy_to(slot, piece);
    return true;
}

Result<void> SnapshotPieces::grow(std::uint64_t image_bytes)
{
    // A piece of which the image ended in the middle would be writable in one half only.
    const std::uint64_t bytes_before = shadow_.bytes();
    const auto last = static_cast<std::uint32_t>(bytes_before / piece_bytes);
    while (true) {
        const std::uint32_t seen = progress();
        if (bytes_before % piece_bytes != 0 && !open(last)) {
            return fail(SP_E_NO_MEMORY, errno, "cannot make durable memory writable: {}", std::strerror(errno));
        }
        if (enter_opening()) {
            // A snapshot may have frozen it again in between.
            if (bytes_before % piece_bytes == 0 || state(last).load(std::memory_order_acquire) == written) {
                break;
            }
            leave_opening();
            continue;
        }
        wait_for_progress(seen);
    }
    auto made = make_larger(image_bytes);
    leave_opening();
    return made;
}

Result<void> SnapshotPieces::make_larger(std::uint64_t image_bytes)
{
    const std::uint64_t first_new = round_up(shadow_.bytes(), piece_bytes);
    if (auto done = shadow_.make_accessible(image_bytes); !done) {
        return done;
    }
    if (first_new < image_bytes && os::protect_own(shadow_.base() + first_new, image_bytes - first_new, PROT_READ) != 0) {
        return fail(SP_E_NO_MEMORY, errno, "cannot write-protect {} bytes of durable memory: {}", image_bytes - first_new,
                    std::strerror(errno));
    }
    shadow_.publish(image_bytes);
    return {};
}

void SnapshotPieces::abandon_snapshots() noexcept
{
    abandoned_.store(true, std::memory_order_seq_cst);
    os::protect_own(shadow_.base(), shadow_.bytes(), PROT_READ | PROT_WRITE);
    tell_progress();
}

void SnapshotPieces::detach_after_fork() noexcept
{
    abandoned_.store(true, std::memory_order_relaxed);
    os::protect_own(shadow_.base(), shadow_.bytes(), PROT_READ | PROT_WRITE);
}

bool SnapshotPieces::handle_fault(const void* address) noexcept
{
    const auto offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(shadow_.base());
    if (offset >= shadow_.bytes()) {
        return false;
    }
    return open(static_cast<std::uint32_t>(offset / piece_bytes));
}

void SnapshotPieces::prepare_write(const void* address, std::size_t size) noexcept
{
    const auto offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(shadow_.base());
    if (size == 0 || offset >= shadow_.bytes()) {
        return;
    }
    const std::uint64_t last = std::min(size - 1, shadow_.bytes() - 1 - offset) + offset;
    for (std::uint64_t piece = offset / piece_bytes; piece <= last / piece_bytes; ++piece) {
        static_cast<void>(open(static_cast<std::uint32_t>(piece)));
    }
}

bool SnapshotPieces::enter_opening() noexcept
{
    opening_.fetch_add(1, std::memory_order_seq_cst);
    if (!freezing_.load(std::memory_order_seq_cst)) {
        return true;
    }
    leave_opening();
    return false;
}

bool SnapshotPieces::open(std::uint32_t piece) noexcept
{
    while (true) {
        const std::uint32_t seen = progress();
        if (abandoned_.load(std::memory_order_seq_cst)) {
            return make_writable(piece);  // A writable page stays so; the thread that asked tries again.
        }
        switch (try_open(piece)) {
        case Opened::yes: return true;
        case Opened::no: return false;
        case Opened::later: wait_for_progress(seen); break;
        }
    }
}

/// Writable first, marked second: in the other order, another thread that sees the mark would write and fault again and again.
SnapshotPieces::Opened SnapshotPieces::try_open(std::uint32_t piece) noexcept
{
    const SignalsBlocked blocked;
    if (!enter_opening()) {
        return Opened::later;
    }
    Opened outcome = Opened::later;
    switch (state(piece).load(std::memory_order_acquire)) {
    case written: outcome = Opened::yes; break;
    case clean:
        outcome = make_writable(piece) ? Opened::yes : Opened::no;
        if (outcome == Opened::yes) {
            state(piece).store(written, std::memory_order_release);
        }
        break;
    case frozen: outcome = copy_and_open(piece); break;
    default: break;
    }
    leave_opening();
    return outcome;
}

/// Copy on write.
SnapshotPieces::Opened SnapshotPieces::copy_and_open(std::uint32_t piece) noexcept
{
    const std::uint32_t slot = staging_.take(0);
    if (slot == SnapshotStaging::none) {
        return Opened::later;
    }
    std::uint32_t expected = frozen;
    if (!state(piece).compare_exchange_strong(expected, copying, std::memory_order_acq_rel)) {
        staging_.give_back(slot);
        tell_progress();
        return Opened::later;
    }
    copy_to(slot, piece);
    const bool writable = make_writable(piece);
    state(piece).store(writable ? written : clean, std::memory_order_release);
    tell_progress();
    return writable ? Opened::yes : Opened::no;
}

bool SnapshotPieces::make_writable(std::uint32_t piece) noexcept
{
    const std::uint64_t begin = piece * piece_bytes;
    const std::uint64_t size = std::min(piece_bytes, shadow_.bytes() - begin);
    return os::protect_own(shadow_.base() + begin, size, PROT_READ | PROT_WRITE) == 0;
}

void SnapshotPieces::copy_to(std::uint32_t slot, std::uint32_t piece) noexcept
{
    // No thread writes to the piece meanwhile: the page's protection keeps others away.
    racing_copy(staging_.bytes_of(slot), shadow_.base() + piece * piece_bytes, captured_bytes_of(piece));
    staging_.fill(slot, piece);
}

bool SnapshotPieces::any_written() const noexcept
{
    for (std::uint32_t piece = 0; piece < piece_count(); ++piece) {
        if (state(piece).load(std::memory_order_acquire) == written) {
            return true;
        }
    }
    return false;
}

void SnapshotPieces::collapse_written() noexcept
{
    const std::uint64_t whole_pieces = shadow_.bytes() / piece_bytes;
    for (std::uint32_t piece = 0; piece < whole_pieces; ++piece) {
        if (!collapsed_.test(piece) && state(piece).load(std::memory_order_acquire) == written &&
            os::FileMapping::collapse_to_huge_pages(shadow_.base() + piece * piece_bytes, piece_bytes)) {
            collapsed_.set(piece);
        }
    }
}

Result<void> SnapshotPieces::freeze() noexcept
{
    // A piece that is writable and not marked yet may have been written by another thread's FASE, though the thread in the handler
    // is outside one and is not waited for. A handler in there waits for no thread.
    freezing_.store(true, std::memory_order_seq_cst);
    while (opening_.load(std::memory_order_seq_cst) != 0) {
        os::yield_cpu();
    }
    const kernel_writes::Protecting protecting;
    staging_.sort_free_slots();
    frozen_count_ = 0;
    next_frozen_ = 0;
    captured_bytes_ = shadow_.bytes();
    Result<void> outcome;
    std::uint32_t first = 0;
    for (std::uint32_t piece = 0; piece < piece_count(); ++piece) {
        if (state(piece).load(std::memory_order_acquire) != written) {
            continue;
        }
        frozen_[frozen_count_++] = piece;
        if (copy_in_flight(piece)) {
            outcome = outcome ? protect(first, piece) : outcome;
            first = piece + 1;
        } else {
            state(piece).store(frozen, std::memory_order_release);
        }
    }
    outcome = outcome ? protect(first, piece_count()) : outcome;
    freezing_.store(false, std::memory_order_seq_cst);
    tell_progress();
    return outcome;
}

SnapshotPieces::CopyResult SnapshotPieces::copy_next_frozen() noexcept
{
    while (next_frozen_ < frozen_count_ && state(frozen_[next_frozen_]).load(std::memory_order_acquire) != frozen) {
        ++next_frozen_;
    }
    if (next_frozen_ == frozen_count_) {
        return CopyResult::nothing_frozen;
    }
    const std::uint32_t slot = staging_.take(staging_.reserved_for_handlers());
    if (slot == SnapshotStaging::none) {
        return CopyResult::no_slot;
    }
    const std::uint32_t piece = frozen_[next_frozen_++];
    std::uint32_t expected = frozen;
    if (!state(piece).compare_exchange_strong(expected, copying, std::memory_order_acq_rel)) {
        staging_.give_back(slot);
    } else {
        copy_to(slot, piece);
        state(piece).store(clean, std::memory_order_release);
    }
    tell_progress();
    return CopyResult::one;
}

std::uint64_t SnapshotPieces::captured_bytes_of(std::uint32_t piece) const noexcept
{
    return std::min(piece_bytes, captured_bytes_ - piece * piece_bytes);
}

void SnapshotPieces::tell_progress() noexcept
{
    progress_.fetch_add(1, std::memory_order_seq_cst);
    if (waiters_.load(std::memory_order_seq_cst) != 0) {
        os::futex_wake(progress_);
    }
}

void SnapshotPieces::wait_for_progress(std::uint32_t seen) noexcept
{
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    os::futex_wait(progress_, seen);
    waiters_.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace stillpoint::pronto
