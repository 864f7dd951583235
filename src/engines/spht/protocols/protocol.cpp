// The list of systems, and the steps that most of them take alike.

#include "engines/spht/protocols/protocol.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "engines/spht/transactional_memory.hpp"
#include "logs/durable_marker.hpp"
#include "logs/log_bytes.hpp"

namespace stillpoint::spht {

namespace {

/// Names of eight bytes at most: a pool's word that is none of them is damage.
constexpr std::uint64_t word_of(std::string_view name) noexcept
{
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < name.size(); ++i) {
        word |= static_cast<std::uint64_t>(static_cast<unsigned char>(name[i])) << (8 * i);
    }
    return word;
}

using logs::ClockKind;
using logs::CommitRule;

/// The words of option `protocol`, in its order.
constexpr std::array rows = {
    ProtocolRow{"spht", 0, CommitRule::pool_marker, ClockKind::physical, &make_spht},
    ProtocolRow{"nv-htm", word_of("NV-HTM"), CommitRule::own_marker, ClockKind::physical, &make_nv_htm},
    ProtocolRow{"dudetm", word_of("DudeTM"), CommitRule::whole_up_to_a_gap, ClockKind::counter, &make_dude_tm},
    ProtocolRow{"crafty", word_of("Crafty"), CommitRule::own_marker, ClockKind::physical, &make_crafty},
    ProtocolRow{"cc-htm", word_of("cc-HTM"), CommitRule::pool_marker, ClockKind::physical, &make_cc_htm},
    ProtocolRow{"pstm", word_of("PSTM"), CommitRule::whole, ClockKind::counter, &make_pstm},
};

}  // namespace

const ProtocolRow& protocol_called(std::string_view name) noexcept
{
    const auto* const found = std::find_if(rows.begin(), rows.end(), [&](const ProtocolRow& row) { return row.name == name; });
    return found == rows.end() ? rows.front() : *found;
}

const ProtocolRow* protocol_of_pool(std::uint64_t pool_word) noexcept
{
    const auto* const found = std::find_if(rows.begin(), rows.end(), [&](const ProtocolRow& row) { return row.pool_word == pool_word; });
    return found == rows.end() ? nullptr : found;
}

bool CommitProtocol::prepare(Transaction& /*transaction*/, Committing& /*commit*/) noexcept { return true; }

Result<void> CommitProtocol::make_room(Committing& commit, std::uint64_t words) noexcept { return memory_.make_room(commit.log, words); }

void CommitProtocol::announce(Committing& commit) noexcept { logs::CommitOrder::announce(commit.slot, memory_.clock().lower_bound()); }

bool CommitProtocol::settle(Committing& commit, Timestamp timestamp) noexcept
{
    logs::CommitOrder::settle(commit.slot, timestamp);
    return true;
}

void CommitProtocol::log(Committing& commit, Timestamp timestamp) noexcept
{
    commit.position = commit.log.append(commit.record, timestamp);
}

void CommitProtocol::cancel(Committing& commit) noexcept { commit.log.cancel(); }

void CommitProtocol::skip(Timestamp /*timestamp*/) noexcept {}

bool CommitProtocol::await(Timestamp timestamp) noexcept { return await_durable(timestamp); }

bool CommitProtocol::finish_stores(Committing& /*commit*/, Timestamp timestamp) noexcept { return await(timestamp); }

Timestamp CommitProtocol::replayable() noexcept { return memory_.order().durable(); }

bool CommitProtocol::apply(InPlace& /*copies*/) noexcept { return false; }

Timestamp CommitProtocol::logged_moment() noexcept
{
    const Timestamp moment = memory_.clock().now();
    static_cast<void>(memory_.order().await_preceding(nullptr, moment));
    return moment;
}

std::uint64_t CommitProtocol::mark_offset(logs::Position position) noexcept
{
    const auto chunk = static_cast<ChunkIndex>(logs::chunk_of(position));
    return memory_.space().file_offset(chunk) + logs::offset_in_chunk(position) + offsetof(logs::RecordHeader, link);
}

bool CommitProtocol::write_own_marker(Committing& commit, Timestamp timestamp, bool is_logged) noexcept
{
    Medium& medium = memory_.medium();
    const std::uint64_t mark = mark_offset(commit.position);
    medium.store_word(mark, logs::encode_marker(timestamp));
    medium.write_back_line(mark);
    medium.fence();
    const bool intact = is_logged && !medium.has_lost_pages();
    if (intact) {
        memory_.order().raise_durable(timestamp);
    }
    logs::CommitOrder::persisted(commit.slot, timestamp);
    return intact;
}

bool CommitProtocol::await_durable(Timestamp timestamp) noexcept
{
    for (unsigned turns = 0; memory_.order().durable() < timestamp;) {
        if (memory_.has_failed() || memory_.medium().has_lost_pages()) {
            return false;
        }
        logs::wait_turn(turns);
    }
    return !memory_.medium().has_lost_pages();
}

}  // namespace stillpoint::spht
