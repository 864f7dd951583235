#include "logs/logged_engine.hpp"

#include <algorithm>

#include "core/canary.hpp"

namespace stillpoint::logs {

Result<void> LoggedEngine::prepare_replay(ReplayedLogs& logs, const Options& options, unsigned replayers)
{
    logs_of_engine_ = &logs;
    constexpr std::uint64_t ns_per_ms = 1'000'000;
    for (const Segment& segment : pool_->segments()) {
        add_log_part(logs.space(), segment);
    }
    rounds_.emplace(ReplayRounds::Parts{pool_.get(), &shadow_, &table_, &locations_, &medium_lock_, &clock_, &logs},
                    ReplayRounds::Settings{options.interval_ms * ns_per_ms, options.staging_max_mb * mib,
                                           pool_->facts().image_bytes_max / page_bytes, replayers});
    return rounds_->prepare();
}

Result<LogBytes> LoggedEngine::read_log_bytes()
{
    if (auto done = read_chunks(pool_->medium(), logs_of_engine_->space()); !done) {
        return pass_on(done.error());
    }
    const auto bytes = logs_of_engine_->space().bytes();
    return LogBytes{bytes.data(), static_cast<std::uint32_t>(bytes.size())};
}

Result<void> LoggedEngine::replay(const RecoveredLogs& recovered)
{
    logs_are_empty_ = recovered.index.live_records == 0 && recovered.index.newest <= recovered.point.replayed;
    rounds_->set_replayed(recovered.point);
    return rounds_->replay_into_image(recovered.index);
}

Result<Timestamp> LoggedEngine::make_replayed_durable(const RecoveredLogs& recovered, std::uint64_t whose_logs)
{
    const Timestamp readable = is_removed(Canary::void_records) ? 0 : recovered.index.newest;
    const Timestamp newest = std::max({readable, recovered.marker, recovered.point.replayed});
    if (!recovered.has_marker) {
        if (auto done = rounds_->write_marker(newest, whose_logs); !done) {
            return pass_on(done.error());
        }
    }
    const bool has_logs = !logs_are_empty_ && !is_removed(Canary::recovered_epoch);
    if (has_logs || !recovered.has_marker || !logs_of_engine_->early_pages().empty()) {
        if (auto done = rounds_->make_recovered_durable(newest, recovered.index.live_transactions); !done) {
            return pass_on(done.error());
        }
    }
    if (recovered.has_marker && recovered.whose_logs != whose_logs) {
        if (auto done = rounds_->write_marker(newest, whose_logs); !done) {
            return pass_on(done.error());
        }
    }
    logs_of_engine_->space().set_uses(recovered.index.newest_use);
    logs_of_engine_->space().give_back_from(0);
    return newest;
}

GroupRecord LoggedEngine::group_to_go_on_from(const RecoveredLogs& recovered) const noexcept
{
    GroupRecord group = recovered.group;
    group.transactions = rounds_->transactions_replayed();
    return group;
}

void LoggedEngine::announce_segment(const Segment& segment) noexcept
{
    rounds_->announce_segment(segment);
    ChunkSpace& space = logs_of_engine_->space();
    const ChunkIndex first = space.chunk_count();
    add_log_part(space, segment);
    space.give_back_from(first);
}

}  // namespace stillpoint::logs
