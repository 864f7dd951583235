#include "media/replica/replicated_medium.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "core/canary.hpp"
#include "media/open.hpp"
#include "media/replica/replica_sender.hpp"
#include "os/clock.hpp"
#include "os/log.hpp"

namespace stillpoint {

namespace {

/// So long a program that ends waits for a replica that takes nothing of what is left.
constexpr std::uint64_t end_wait_ns = 10'000'000'000;
constexpr std::uint64_t figures_every_ns = 100'000'000;

}  // namespace

ReplicatedMedium::ReplicatedMedium(std::unique_ptr<Medium> local, ReplicaSettings settings, const ReplicaRecord& record)
    : local_(std::move(local)), settings_(std::move(settings)), record_(record)
{
}

Result<std::unique_ptr<ReplicatedMedium>> ReplicatedMedium::make(std::unique_ptr<Medium> local, std::unique_ptr<Medium> remote,
                                                                 ReplicaSettings settings, const ReplicaRecord& record,
                                                                 std::optional<ReplicaRecordFile> record_file)
{
    std::unique_ptr<ReplicatedMedium> made(new ReplicatedMedium(std::move(local), std::move(settings), record));
    made->record_file_ = std::move(record_file);
    made->mechanism_ = std::string(made->local_->mechanism()) + "; replica: " + std::string(remote->mechanism()) +
                       (made->settings_.level == ReplicaLevel::remote ? ", sync" : ", async");
    made->sender_ = std::make_unique<Sender>(std::move(remote), made->settings_, *made);
    if (auto started = made->sender_->start(); !started) {
        return pass_on(started.error());
    }
    return made;
}

ReplicatedMedium::~ReplicatedMedium()
{
    if (is_detached_) {
        static_cast<void>(sender_.release());  // The parent's, in which it lives.
        return;
    }
    finish();
    if (!sender_->has_ended()) {
        static_cast<void>(sender_.release());  // The thread still waits.
    }
}

void ReplicatedMedium::finish() noexcept
{
    if (is_detached_ || std::exchange(is_finished_, true)) {
        return;
    }
    if (!sender_->stop(end_wait_ns)) {
        os::log(os::Severity::warning,
                "{}: {} does not take what is left, which is durable here only; the next start with this replica sends it", path(),
                settings_.name);
        return;
    }
    note_quiet();
}

std::uint64_t ReplicatedMedium::newest_epoch() const noexcept
{
    return settings_.newest_epoch != nullptr ? settings_.newest_epoch(settings_.context) : 0;
}

Result<void> ReplicatedMedium::store_state(ReplicaState state)
{
    record_.state = state;
    return record_file_ ? record_file_->store(record_) : Result<void>{};
}

/// Before the bytes here and there may differ.
Result<void> ReplicatedMedium::begin_change()
{
    const std::lock_guard guard(record_lock_);
    is_quiet_ = false;
    if (record_.state != ReplicaState::equal || is_removed(Canary::replica_record)) {
        return {};
    }
    record_.is_starting = is_public_ ? 0 : 1;
    return store_state(is_public_ && settings_.level == ReplicaLevel::local ? ReplicaState::ahead : ReplicaState::differing);
}

void ReplicatedMedium::note_quiet() noexcept
{
    const std::lock_guard guard(record_lock_);
    if (is_quiet_ && is_public_ && record_.state != ReplicaState::equal && sender_->stream().is_empty()) {
        if (auto stored = store_state(ReplicaState::equal); !stored) {
            os::log(os::Severity::warning, "{}", stored.error().text());
        }
    }
}

Result<void> ReplicatedMedium::write(std::span<const BlockWrite> batch)
{
    if (auto begun = begin_change(); !begun) {
        return begun;
    }
    sender_->stream().append_writes(batch, newest_epoch());
    return local_->write(batch);
}

Result<void> ReplicatedMedium::sync()
{
    ReplicaStream& stream = sender_->stream();
    stream.append(ReplicaCall::sync, newest_epoch());
    const std::uint64_t position = stream.end();
    if (auto synced = local_->sync(); !synced) {
        return synced;
    }
    if (auto awaited = await_replica(position); !awaited) {
        return awaited;
    }
    const std::lock_guard guard(record_lock_);
    is_quiet_ = true;
    return {};
}

void ReplicatedMedium::tell_figures() const noexcept
{
    if (settings_.tell != nullptr) {
        settings_.tell(settings_.context, figures());
    }
}

/// As the stream's. Meanwhile the figures are told: the thread that does so otherwise may wait for a replica that does not answer.
bool ReplicatedMedium::wait_confirmed(std::uint64_t position, std::uint64_t deadline_ns) const noexcept
{
    const ReplicaStream& stream = sender_->stream();
    for (;;) {
        const bool is_confirmed = stream.wait_confirmed(position, std::min(deadline_ns, os::monotonic_ns() + figures_every_ns));
        if (is_confirmed || stream.is_closed()) {
            return is_confirmed;
        }
        tell_figures();
        if (os::monotonic_ns() >= deadline_ns) {
            return false;
        }
    }
}

/// Until an acknowledgement may be given for what lies before `position`.
Result<void> ReplicatedMedium::await_replica(std::uint64_t position)
{
    const ReplicaStream& stream = sender_->stream();
    if (settings_.level == ReplicaLevel::remote && is_removed(Canary::replica_awaited)) {
        return {};
    }
    if (settings_.level == ReplicaLevel::remote || !is_public_) {
        return wait_confirmed(position, UINT64_MAX) ? Result<void>{} : Result<void>{pass_on(sender_->failure())};
    }
    tell_figures();
    for (;;) {
        const std::uint64_t confirmed = stream.confirmed();
        const std::uint64_t oldest_ns = stream.oldest_ns();
        if (stream.is_closed()) {
            return pass_on(sender_->failure());
        }
        if (oldest_ns == 0 || confirmed >= position || os::monotonic_ns() - oldest_ns <= settings_.lag_ns_max) {
            return {};
        }
        static_cast<void>(wait_confirmed(confirmed + 1, UINT64_MAX));
    }
}

std::uint64_t ReplicatedMedium::position() const noexcept { return sender_->stream().end(); }

Result<void> ReplicatedMedium::wait_for(std::uint64_t position, std::uint64_t deadline_ns) noexcept
{
    const ReplicaStream& stream = sender_->stream();
    if (wait_confirmed(position, deadline_ns)) {
        return {};
    }
    if (stream.is_closed()) {
        return pass_on(sender_->failure());
    }
    return fail(SP_E_TIMED_OUT, 0, "{} has not got everything yet", settings_.name);
}

ReplicaFigures ReplicatedMedium::figures() const noexcept
{
    const ReplicaStream& stream = sender_->stream();
    const std::uint64_t here = newest_epoch();
    const std::uint64_t oldest_ns = stream.oldest_ns();
    const std::uint64_t now_ns = os::monotonic_ns();
    return {sender_->newest_epoch(here), oldest_ns == 0 || oldest_ns > now_ns ? 0 : now_ns - oldest_ns, stream.bytes_waiting()};
}

Result<void> ReplicatedMedium::resize(std::uint64_t size)
{
    if (auto begun = begin_change(); !begun) {
        return begun;
    }
    const std::uint64_t before = local_->size_bytes();
    if (auto grown = local_->resize(size); !grown) {
        return grown;
    }
    sender_->stream().append(ReplicaCall::resize, newest_epoch(), size, before);
    return await_replica(sender_->stream().end());
}

Result<void> ReplicatedMedium::note_pool()
{
    return settings_.note_pool != nullptr ? settings_.note_pool(*local_, record_) : Result<void>{};
}

/// The opening, which comes before, is in the replica when this returns: so neither side can have begun the run alone.
Result<void> ReplicatedMedium::publish()
{
    if (auto published = local_->publish(); !published) {
        return published;
    }
    if (!record_file_) {
        // Before the replica has its name: of a pool with a name on both sides it is always known how they relate.
        if (auto noted = note_pool(); !noted) {
            return noted;
        }
        record_.file_number = file_number_of(std::string(path()));
        record_.is_starting = 0;  // The first generation of a new pool is in it already.
        auto begun = ReplicaRecordFile::begin(std::string(path()), record_);
        if (!begun) {
            return pass_on(begun.error());
        }
        record_file_ = std::move(*begun);
    }
    ReplicaStream& stream = sender_->stream();
    stream.append(ReplicaCall::publish, newest_epoch());
    if (!stream.wait_confirmed(stream.end(), UINT64_MAX)) {
        return pass_on(sender_->failure());
    }
    const std::lock_guard guard(record_lock_);
    if (auto noted = note_pool(); !noted) {
        return noted;
    }
    record_.is_starting = 0;
    is_public_ = true;
    return store_state(settings_.level == ReplicaLevel::local ? ReplicaState::ahead : ReplicaState::differing);
}

Result<void> ReplicatedMedium::check_intact()
{
    if (sender_->stream().is_closed()) {
        return pass_on(sender_->failure());
    }
    return local_->check_intact();
}

void ReplicatedMedium::detach_after_fork() noexcept
{
    is_detached_ = true;
    local_->detach_after_fork();
    sender_->detach_after_fork();
    if (record_file_) {
        record_file_->detach_after_fork();
    }
}

}  // namespace stillpoint
