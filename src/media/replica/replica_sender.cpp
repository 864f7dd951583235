#include "media/replica/replica_sender.hpp"

#include <algorithm>
#include <array>
#include <mutex>

#include "core/canary.hpp"
#include "media/open.hpp"
#include "os/clock.hpp"
#include "os/log.hpp"

namespace stillpoint {

namespace {

constexpr std::uint64_t ns_per_ms = 1'000'000;
/// The replica has everything for so long before that is recorded: a program that goes on at once saves the record of it.
constexpr std::uint64_t quiet_ns = 20 * ns_per_ms;
constexpr std::uint64_t between_figures_ns = 100 * ns_per_ms;
constexpr std::uint64_t own_lease_grace_ms = 5000;

Result<void> write_zeroes(Medium& medium, std::uint64_t begin, std::uint64_t end)
{
    alignas(page_bytes) static constexpr std::array<std::byte, 64 * kib> zeroes{};
    for (std::uint64_t at = begin; at < end;) {
        const BlockWrite write{at, zeroes.data(), static_cast<std::size_t>(std::min<std::uint64_t>(zeroes.size(), end - at))};
        if (auto written = medium.write({&write, 1}); !written) {
            return written;
        }
        at += write.size;
    }
    return {};
}

}  // namespace

Result<void> ReplicatedMedium::Sender::start()
{
    if (auto reserved = stream_.reserve(settings_.buffer_bytes); !reserved) {
        return reserved;
    }
    return thread_.start("sp-replica", [](void* self) { static_cast<Sender*>(self)->run(); }, this);
}

bool ReplicatedMedium::Sender::stop(std::uint64_t patience_ns) noexcept
{
    std::uint64_t confirmed = stream_.confirmed();
    std::uint64_t deadline_ns = os::monotonic_ns() + patience_ns;
    is_stopping_.store(true, std::memory_order_release);
    stream_.wake();
    while (!has_ended()) {
        if (const std::uint64_t now = stream_.confirmed(); now != confirmed) {
            confirmed = now;
            deadline_ns = os::monotonic_ns() + patience_ns;
        }
        if (os::monotonic_ns() >= deadline_ns) {
            const std::lock_guard guard(owner_lock_);
            owner_ = nullptr;
            thread_.forget();
            return false;
        }
        os::futex_wait(end_word_, 0, deadline_ns);
    }
    thread_.join();
    return true;
}

void ReplicatedMedium::Sender::detach_after_fork() noexcept
{
    thread_.forget();
    owner_lock_.reset_after_fork();
    if (remote_ != nullptr) {
        remote_->detach_after_fork();
    }
}

std::uint64_t ReplicatedMedium::Sender::newest_epoch(std::uint64_t newest_here) const noexcept
{
    // Read first: an epoch that becomes durable here afterwards is not counted.
    return stream_.is_empty() ? newest_here : stream_.confirmed_epoch();
}

void ReplicatedMedium::Sender::run() noexcept
{
    while (!stream_.is_closed()) {
        const auto given = give_next();
        if (!given && !connect_again(given.error())) {
            break;
        }
        tell_figures();
        if (is_stopping_.load(std::memory_order_acquire) && stream_.is_empty()) {
            break;
        }
    }
    tell_figures();
    has_ended_.store(true, std::memory_order_release);
    end_word_.store(1, std::memory_order_release);
    os::futex_wake(end_word_);
}

/// Waits a moment where there is nothing to give.
Result<void> ReplicatedMedium::Sender::give_next()
{
    const auto entries = stream_.next(batch_max);
    if (entries.empty()) {
        if (stream_.is_empty()) {
            wait_quietly();
            return {};
        }
        // Writes alone: a later sync confirms them, unless the program ends before.
        if (is_stopping_.load(std::memory_order_acquire)) {
            return confirm();
        }
        stream_.wait_for_entries(os::monotonic_ns() + between_figures_ns);
        return {};
    }
    const ReplicaEntry& first = entries.front();
    Result<void> given;
    switch (first.call) {
    case ReplicaCall::write: given = give_writes(entries); break;
    case ReplicaCall::resize: given = grow(first); break;
    case ReplicaCall::publish: given = remote_->publish(); break;
    case ReplicaCall::sync: break;
    }
    if (!given) {
        return given;
    }
    const bool is_write = first.call == ReplicaCall::write;
    stream_.take(entries.size());
    const bool has_more = is_removed(Canary::replica_order) && !stream_.next(1).empty();
    return (is_write && !stream_.wants_confirmation()) || has_more ? given : confirm();
}

/// A sync more than the medium itself had does no harm.
Result<void> ReplicatedMedium::Sender::confirm()
{
    if (auto synced = is_removed(Canary::replica_sync) ? Result<void>{} : remote_->sync(); !synced) {
        return synced;
    }
    stream_.confirm_taken();
    return {};
}

Result<void> ReplicatedMedium::Sender::give_writes(std::span<const ReplicaEntry> entries)
{
    std::array<BlockWrite, batch_max> batch;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        batch[i] = {entries[i].offset, stream_.bytes_of(entries[i]), static_cast<std::size_t>(entries[i].size)};
    }
    return remote_->write(std::span(batch).first(entries.size()));
}

/// A replica may be larger than its medium: a transfer has left bytes there, and the new ones here are zero.
Result<void> ReplicatedMedium::Sender::grow(const ReplicaEntry& entry)
{
    const std::uint64_t present = remote_->size_bytes();
    if (auto zeroed = write_zeroes(*remote_, entry.begin, std::min(entry.offset, present)); !zeroed) {
        return zeroed;
    }
    return present < entry.offset ? remote_->resize(entry.offset) : Result<void>{};
}

/// The replica has everything. After a while that is recorded, unless there is more by then.
void ReplicatedMedium::Sender::wait_quietly() noexcept
{
    const std::uint64_t end = stream_.end();
    if (is_stopping_.load(std::memory_order_acquire)) {
        return;
    }
    stream_.wait_for_entries(os::monotonic_ns() + quiet_ns);
    if (stream_.end() != end) {
        return;
    }
    {
        const std::lock_guard guard(owner_lock_);
        if (owner_ != nullptr) {
            owner_->note_quiet();
        }
    }
    if (!is_stopping_.load(std::memory_order_acquire)) {
        stream_.wait_for_entries(os::monotonic_ns() + 10 * between_figures_ns);
    }
}

void ReplicatedMedium::Sender::pause(std::uint64_t ns) noexcept
{
    const std::uint64_t end_ns = os::monotonic_ns() + ns;
    while (os::monotonic_ns() < end_ns && !is_stopping_.load(std::memory_order_acquire)) {
        os::futex_wait(end_word_, 0, std::min(end_ns, os::monotonic_ns() + between_figures_ns));
        tell_figures();
    }
}

/// False: the replica is another process's by now, or the program ends.
bool ReplicatedMedium::Sender::connect_again(const Failure& reason) noexcept
{
    if (reason.code == SP_E_POOL_LOCKED || settings_.reopen == nullptr) {
        end_for_good(reason);
        return false;
    }
    os::log(os::Severity::warning,
            "{}; the program goes on, nothing more is acknowledged for {}, and it is opened again each second until that succeeds",
            reason.text(), settings_.name);
    remote_.reset();
    const std::uint64_t begun_ns = os::monotonic_ns();
    while (!is_stopping_.load(std::memory_order_acquire)) {
        pause(settings_.reopen_pause_ns);
        auto opened = settings_.reopen(settings_);
        if (opened && (*opened)->last_writer() == settings_.writer) {
            remote_ = std::move(*opened);
            stream_.rewind();
            os::log(os::Severity::warning, "{} is open again: everything since its last sync is sent again", settings_.name);
            return true;
        }
        // This process's own lease may still run.
        const bool may_be_own = !opened && os::monotonic_ns() - begun_ns < (settings_.lease_ms + own_lease_grace_ms) * ns_per_ms;
        if (opened || (opened.error().code == SP_E_POOL_LOCKED && !may_be_own)) {
            const auto lost = fail(SP_E_POOL_LOCKED, 0,
                                   "{}: another process has had the pool while the connection to it was lost; what "
                                   "this machine has more than it is not merged",
                                   settings_.name);
            end_for_good(lost.value());
            tell_to_end(lost.value());
            return false;
        }
    }
    end_for_good(reason);
    return false;
}

void ReplicatedMedium::Sender::end_for_good(const Failure& failure) noexcept
{
    failure_ = failure;
    stream_.close();
}

void ReplicatedMedium::Sender::tell_figures() noexcept
{
    const std::uint64_t now_ns = os::monotonic_ns();
    const bool is_empty = stream_.is_empty();
    if (settings_.tell == nullptr || (now_ns - told_ns_ < between_figures_ns && !is_empty)) {
        return;
    }
    told_ns_ = now_ns;
    const std::lock_guard guard(owner_lock_);
    if (owner_ != nullptr) {
        settings_.tell(settings_.context, owner_->figures());
    }
}

}  // namespace stillpoint
