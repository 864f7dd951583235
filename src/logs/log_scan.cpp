#include "logs/log_scan.hpp"

#include <algorithm>
#include <new>
#include <optional>
#include <span>

#include "core/canary.hpp"
#include "logs/durable_marker.hpp"
#include "logs/log_chunks.hpp"
#include "logs/record_checks.hpp"

namespace stillpoint::logs {

namespace {

/// All damage goes through here, so that one look shows it with `findings`, and the first ends the scan without.
class DamageReport {
public:
    DamageReport(Findings* findings, LogIndex& index) : findings_(findings), index_(index) {}

    /// `whole_up_to`: nothing that is live is lost up to there.
    [[nodiscard]] Result<void> add(Timestamp whole_up_to, const tl::unexpected<Failure>& failure)
    {
        ++damages_;
        index_.whole_up_to = std::min(index_.whole_up_to, whole_up_to);
        return found(findings_, failure);
    }
    void remark(std::uint32_t chunk)
    {
        if (findings_ != nullptr) {
            findings_->remark(
                fail(SP_E_POOL_CORRUPT, 0, "one of the two headers of log chunk {} is damaged or torn; the other serves", chunk).value());
        }
    }
    [[nodiscard]] std::uint64_t damages() const noexcept { return damages_; }

private:
    Findings* findings_;
    LogIndex& index_;
    std::uint64_t damages_ = 0;
};

/// Walks the records of one log, chunk by chunk.
class LogWalk {
public:
    LogWalk(const LogBytes& bytes, const Bounds& bounds, LogIndex& index, DamageReport& report, ScannedLog& log)
        : bytes_(bytes), bounds_(bounds), index_(index), report_(report), log_(log)
    {
    }

    [[nodiscard]] Result<void> walk(const ChunkInUse& chunk)
    {
        if (auto gone_on = begin(chunk); !gone_on) {
            return gone_on;
        }
        for (std::uint64_t offset = sizeof(ChunkHeader); offset < header_copy_offset;) {
            CheckedRecord record = check(offset, Effort::find_whole);
            if (record.state == RecordState::absent) {
                record = check(offset, Effort::find_flipped);
            }
            if (record.state == RecordState::absent) {
                const std::uint64_t next = next_header(offset);
                if (next == header_copy_offset) {
                    break;
                }
                if (auto passed = pass_gap(offset, check(next, Effort::find_whole)); !passed) {
                    return passed;
                }
                offset = next;
                continue;
            }
            if (auto taken = take(offset, record); !taken) {
                return taken;
            }
            offset += record_bytes_for(record.words);
        }
        return {};
    }

    [[nodiscard]] Result<void> end() { return drop_incomplete(); }
    [[nodiscard]] bool has_marker() const noexcept { return has_marker_; }

private:
    struct Damage {
        Timestamp whole;
        std::uint32_t chunk;
        std::uint64_t offset;
        char what[96];
    };

    [[nodiscard]] bool is_live(Timestamp timestamp) const noexcept { return timestamp > bounds_.replayed && timestamp <= bounds_.marker; }
    [[nodiscard]] bool counts_alone(const CheckedRecord& record) const noexcept
    {
        return bounds_.rule == CommitRule::pool_marker && record.state == RecordState::valid && (record.part & stands_alone) != 0 &&
               record.timestamp > bounds_.marker;
    }
    /// One of two records with the marker's timestamp may lack a marker of its own: no thread was told of it.
    [[nodiscard]] bool is_live_at(Timestamp timestamp, std::uint32_t chunk, std::uint64_t offset) const noexcept
    {
        if (bounds_.rule != CommitRule::own_marker || timestamp != bounds_.marker) {
            return is_live(timestamp);
        }
        return is_live(timestamp) && bytes_.record_at(position_of(chunk, offset))->link == encode_marker(timestamp);
    }

    [[nodiscard]] CheckedRecord check(std::uint64_t offset, Effort effort) const noexcept
    {
        return check_record(bytes_.chunks[chunk_.chunk], chunk_.header.use, offset, bounds_.image_words, effort);
    }

    /// A record may follow any line that cannot be read.
    [[nodiscard]] std::uint64_t next_header(std::uint64_t offset) const noexcept
    {
        do {
            offset += cache_line_bytes;
        } while (offset < header_copy_offset && check(offset, Effort::find_whole).state == RecordState::absent);
        return offset;
    }

    /// Notices chunks that are missing before this one, and records that are missing at the end of the last one.
    [[nodiscard]] Result<void> begin(const ChunkInUse& chunk)
    {
        chunk_ = chunk;
        const Timestamp follows = chunk.header.follows;
        if (follows <= newest_) {
            return {};
        }
        index_.newest = std::max(index_.newest, follows);
        const Timestamp before = newest_;
        newest_ = follows;
        if (!is_live(follows) && !may_count_alone(follows)) {
            return {};
        }
        return damage(before, sizeof(ChunkHeader), "it follows transaction {}, which is missing", follows);
    }

    /// Between `offset` and the next record there is something that cannot be read, also not how old it is.
    [[nodiscard]] Result<void> pass_gap(std::uint64_t offset, const CheckedRecord& next)
    {
        if ((!is_live(next.timestamp) && !counts_alone(next)) || is_removed(Canary::redo_gap)) {
            return {};  // All before a done record is done. A void one may follow a record of which a crash has left nothing.
        }
        return damage(newest_, offset, "no record can be read before the one of transaction {}", next.timestamp);
    }

    [[nodiscard]] Result<void> take(std::uint64_t offset, const CheckedRecord& record)
    {
        index_.newest = std::max(index_.newest, record.timestamp);
        const std::uint32_t part = part_number(record.part);
        const bool goes_on = !parts_.empty() && record.timestamp == parts_.back().timestamp && part == expected_part_;
        if (record.state != RecordState::valid || (record.timestamp <= newest_ && !goes_on)) {
            return pass_invalid(offset, record);
        }
        if (!goes_on) {
            if (auto dropped = drop_incomplete(); !dropped) {
                return dropped;
            }
            if (part != 0 && is_live(record.timestamp)) {
                if (auto told = damage(newest_, offset, "earlier parts of transaction {} are missing", record.timestamp); !told) {
                    return told;
                }
            }
            if (part != 0 && bounds_.rule == CommitRule::whole) {
                newest_ = record.timestamp;
                return {};
            }
        }
        stands_alone_ = counts_alone(record);
        if (!stands_alone_) {
            count(record.timestamp);
        }
        newest_ = record.timestamp;
        incomplete_at_ = offset;
        expected_part_ = part + 1;
        parts_.push_back({record.timestamp, position_of(chunk_.chunk, offset)});
        part_words_ += record.words;
        return (record.part & more_parts) == 0 ? keep_transaction() : Result<void>{};
    }

    [[nodiscard]] Result<void> pass_invalid(std::uint64_t offset, const CheckedRecord& record)
    {
        const Timestamp before = newest_;
        newest_ = std::max(newest_, record.timestamp);
        if (!is_live_at(record.timestamp, chunk_.chunk, offset) && !may_count_alone(record.timestamp)) {
            return {};
        }
        return damage(std::min(before, record.timestamp - 1), offset, "the record of transaction {} is damaged", record.timestamp);
    }

    void count(Timestamp timestamp) noexcept
    {
        if (timestamp <= bounds_.replayed) {
            ++index_.done_records;
        } else if (timestamp > bounds_.marker) {
            ++index_.void_records;
        }
    }

    /// A transaction is whole.
    [[nodiscard]] Result<void> keep_transaction()
    {
        has_marker_ = has_marker_ || newest_ == bounds_.marker;
        if (unsure_ && (bounds_.rule == CommitRule::whole || stands_alone_)) {
            if (auto told = tell(*unsure_); !told) {
                return told;
            }
        }
        const Position first = parts_.front().position;
        const bool counts = stands_alone_ || is_live_at(newest_, static_cast<std::uint32_t>(chunk_of(first)), offset_in_chunk(first));
        if (counts && !is_damaged_) {
            index_.alone_transactions += stands_alone_ ? 1U : 0U;
            log_.records.insert(log_.records.end(), parts_.begin(), parts_.end());
            ++index_.live_transactions;
            index_.live_records += parts_.size();
            index_.live_bytes += part_words_ * 8;
        }
        parts_.clear();
        part_words_ = 0;
        return {};
    }

    /// The log goes on, or ends, before all parts of its newest transaction have come.
    [[nodiscard]] Result<void> drop_incomplete()
    {
        if (parts_.empty()) {
            return {};
        }
        const RecordRef first = parts_.front();
        const Timestamp timestamp = first.timestamp;
        parts_.clear();
        part_words_ = 0;
        if (!is_live_at(timestamp, static_cast<std::uint32_t>(chunk_of(first.position)), offset_in_chunk(first.position))) {
            return {};
        }
        return damage(timestamp - 1, incomplete_at_, "later parts of transaction {} are missing", timestamp);
    }

    /// A record of that timestamp may be missing or torn because its commit had not returned; if a later one of its log counts, it had.
    [[nodiscard]] bool may_count_alone(Timestamp timestamp) const noexcept
    {
        return bounds_.rule == CommitRule::pool_marker && timestamp > bounds_.marker;
    }

    /// `text` is about `timestamp`. One report for each log: what follows may follow from it.
    [[nodiscard]] Result<void> damage(Timestamp before, std::uint64_t offset, fmt::format_string<Timestamp&> text, Timestamp timestamp)
    {
        if (is_damaged_) {
            return {};
        }
        Damage found{std::clamp(before, bounds_.replayed, bounds_.marker), chunk_.chunk, offset, {}};
        *fmt::format_to_n(found.what, sizeof found.what - 1, text, timestamp).out = '\0';
        if (bounds_.rule == CommitRule::whole || may_count_alone(timestamp)) {
            unsure_ = unsure_ ? unsure_ : found;
            return {};
        }
        return tell(found);
    }

    [[nodiscard]] Result<void> tell(const Damage& damage)
    {
        is_damaged_ = true;
        const Damage told = damage;
        unsure_.reset();
        return report_.add(told.whole, fail(SP_E_POOL_CORRUPT, 0,
                                            "log {} of run {}, chunk {}, offset {}: {}. It was acknowledged, so data is lost; all "
                                            "transactions up to {} are whole, of {}",
                                            log_.log, log_.run, told.chunk, told.offset, told.what, told.whole, bounds_.marker));
    }

    const LogBytes& bytes_;
    const Bounds& bounds_;
    LogIndex& index_;
    DamageReport& report_;
    ScannedLog& log_;
    ChunkInUse chunk_{};
    Timestamp newest_ = 0;  ///< of the records passed so far, and of those that chunks follow
    std::vector<RecordRef> parts_;  ///< of a transaction of which more parts must follow
    std::uint64_t part_words_ = 0;
    std::uint64_t incomplete_at_ = 0;
    std::uint32_t expected_part_ = 0;
    bool is_damaged_ = false;
    bool has_marker_ = false;
    bool stands_alone_ = false;  ///< the transaction of parts_ does
    /// CommitRule::whole, and records that stand alone: damage if a later transaction of the log is whole; else what a crash may leave of
    /// its last one.
    std::optional<Damage> unsure_;
};

Result<LogIndex> scan(const LogBytes& bytes, const Bounds& bounds, Findings* findings)
{
    LogIndex index;
    index.whole_up_to = bounds.marker;
    DamageReport report(findings, index);
    const std::vector<ChunkInUse> chunks = chunks_in_use(bytes);
    index.chunks_in_use = chunks.size();
    for (const ChunkInUse& chunk : chunks) {
        index.newest_use = std::max(index.newest_use, chunk.header.use);
        if (!chunk.has_both) {
            report.remark(chunk.chunk);
        }
    }
    bool has_marker = false;
    for (std::size_t at = 0; at < chunks.size();) {
        ScannedLog& log = index.logs.emplace_back(ScannedLog{chunks[at].header.run, chunks[at].header.log, {}});
        LogWalk walk(bytes, bounds, index, report, log);
        const std::size_t first = at;
        for (; at < chunks.size() && chunks[at].log_key() == chunks[first].log_key(); ++at) {
            if (at + 1 < chunks.size() && chunks[at].key() == chunks[at + 1].key()) {
                auto told = report.add(bounds.replayed,
                                       fail(SP_E_POOL_CORRUPT, 0, "log {} of run {}: chunks {} and {} both claim to be its number {}",
                                            log.log, log.run, chunks[at].chunk, chunks[at + 1].chunk, chunks[at].header.index));
                if (!told) {
                    return pass_on(told.error());
                }
                continue;
            }
            if (auto walked = walk.walk(chunks[at]); !walked) {
                return pass_on(walked.error());
            }
        }
        if (auto ended = walk.end(); !ended) {
            return pass_on(ended.error());
        }
        has_marker = has_marker || walk.has_marker();
    }
    // Nothing tells which log has lost its end with the marker's transaction, nor how much of it.
    const bool marker_must_have_record = bounds.marker_has_record && !is_removed(Canary::marker_record);
    if (marker_must_have_record && bounds.marker > bounds.replayed && !has_marker && report.damages() == 0) {
        auto told = report.add(bounds.replayed,
                               fail(SP_E_POOL_CORRUPT, 0,
                                    "transaction {}, the newest that was acknowledged, is in none of the {} logs, so data is "
                                    "lost; the image has all transactions up to {}",
                                    bounds.marker, index.logs.size(), bounds.replayed));
        if (!told) {
            return pass_on(told.error());
        }
    }
    return index;
}

}  // namespace

Result<LogIndex> scan_logs(const LogBytes& bytes, const Bounds& bounds, Findings* findings)
{
    try {
        return scan(bytes, bounds, findings);
    } catch (const std::bad_alloc&) {
        return fail(SP_E_NO_MEMORY, 0, "no memory to read {} chunks of redo logs", bytes.count);
    }
}

}  // namespace stillpoint::logs
