#include <algorithm>
#include <array>
#include <atomic>

#include "campaign.hpp"

namespace stillpoint {

namespace {
std::atomic<int> removed{-1};
std::atomic<bool> small_shares{true};
}  // namespace

inline namespace with_canaries {
bool is_removed(Canary canary) noexcept { return removed.load(std::memory_order_relaxed) == static_cast<int>(canary); }
bool shares_are_small() noexcept { return small_shares.load(std::memory_order_relaxed); }
}  // namespace with_canaries

namespace explorer {

void remove_canary(Canary canary) noexcept { removed.store(static_cast<int>(canary), std::memory_order_relaxed); }

void take_shares_as_the_product() noexcept { small_shares.store(false, std::memory_order_relaxed); }

namespace {

constexpr std::uint64_t many_programs = 60;  ///< states of each: much depends on where they are killed
constexpr std::uint64_t many_images = 500;

/// Where a canary is likeliest to be caught: the rest is tried after it.
struct FirstTry {
    Canary canary;
    std::string_view part_of_name;
    std::uint64_t program_states = many_programs;
};

constexpr std::array first_tries = {
    FirstTry{Canary::superseded_copies, "mprotect/line/bank"},
    FirstTry{Canary::mapped_write_fence, "media/memory"},
    FirstTry{Canary::mapped_sync_fence, "media/memory"},
    FirstTry{Canary::first_sync_of_mapped, "media/memory"},
    FirstTry{Canary::file_sync, "media/file"},
    FirstTry{Canary::first_file_sync, "media/file"},
    FirstTry{Canary::directory_sync, "media/file"},
    FirstTry{Canary::growth_sync, "media/file"},
    FirstTry{Canary::freeze_after_failed_sync, "media/file"},
    FirstTry{Canary::unfinished_marker, "primitive-files/page"},
    FirstTry{Canary::area_zeroes, "primitive-files/page"},
    FirstTry{Canary::format_sync, "primitive-files/page"},
    FirstTry{Canary::superblock_checksum, "mprotect/persistent-caches/bank"},
    FirstTry{Canary::commit_checksum, "mprotect/persistent-caches/bank"},
    FirstTry{Canary::commit_second_copy, "damage/page"},
    FirstTry{Canary::table_digest, "damage/page"},
    FirstTry{Canary::table_second_copy, "damage/page"},
    FirstTry{Canary::table_checksum, "damage/page"},
    FirstTry{Canary::table_written_again, "mprotect/page/growth"},
    FirstTry{Canary::page_checksum, "damage/page"},
    FirstTry{Canary::leftover_zeroes, "pmthreads/leftovers/page"},
    FirstTry{Canary::leftover_sync, "pmthreads/leftovers/page"},
    FirstTry{Canary::first_superblock_sync, "mprotect/page/growth"},
    FirstTry{Canary::second_superblock_sync, "primitive-files/page"},
    FirstTry{Canary::heap_store_marks, "hooks/process/allocator"},
    FirstTry{Canary::directory_store_marks, "hooks/process/handles"},
    FirstTry{Canary::kernel_store_marks, "hooks/process/kernel-stores"},
    FirstTry{Canary::kernel_call_opening, "mprotect/process/kernel-stores"},
    FirstTry{Canary::forgotten_uses, "mprotect/page/reused-locks"},
    FirstTry{Canary::opening_sync, "mprotect/page/growth"},
    FirstTry{Canary::opening_record, "mprotect/page/bank"},
    FirstTry{Canary::commit_parity, "mprotect/line/bank", many_images},
    FirstTry{Canary::line_write_back, "mprotect/line/bank"},
    FirstTry{Canary::table_write_back, "mprotect/line/bank"},
    FirstTry{Canary::commit_write_back, "mprotect/line/bank"},
    FirstTry{Canary::whole_page_first, "mprotect/line/bank"},
    FirstTry{Canary::superblock_written_again, "pmthreads/failed-sync/page/growth"},
    FirstTry{Canary::record_written_again, "pmthreads/failed-sync/page"},
    FirstTry{Canary::recovered_record_durable, "mprotect/line/bank"},
    FirstTry{Canary::recovered_table_durable, "kill-around-commits"},
    FirstTry{Canary::torn_record_repaired, "torn-words"},
    FirstTry{Canary::unknown_memory, "respct/auto/page/growth"},
    FirstTry{Canary::delayed_reuse, "respct/timed/line/allocator"},
    FirstTry{Canary::restart_point_wait, "respct/timed/line/bank"},
    FirstTry{Canary::line_flush, "respct/auto/line/bank"},
    FirstTry{Canary::flusher_fence, "respct/auto/line/bank"},
    FirstTry{Canary::lines_durable, "respct/auto/page/bank"},
    FirstTry{Canary::recovered_lines, "respct/auto/line/bank"},
    FirstTry{Canary::recovered_lines_again, "respct/auto/line/bank"},
    FirstTry{Canary::rollback, "respct/auto/line/bank"},
    FirstTry{Canary::table_copy_write, "respct/auto/line/handles"},
    FirstTry{Canary::table_copy_turns, "respct/auto/line/handles"},
    FirstTry{Canary::table_copy_checksum, "respct/damage/line"},
    FirstTry{Canary::table_records_digest, "respct/damage/line"},
    FirstTry{Canary::table_records_cleared, "respct/auto/page/handles"},
    FirstTry{Canary::second_backup, "respct/timed/line/allocator"},
    FirstTry{Canary::note_first_update, "respct/auto/line/allocator"},
    FirstTry{Canary::commit_fence, "pronto/objects/line/map"},
    FirstTry{Canary::sibling_fence, "pronto/objects/line/several"},
    FirstTry{Canary::chunk_header_fence, "pronto/objects-cut/line/overtaking"},
    FirstTry{Canary::log_sync, "pronto/objects/page/map"},
    FirstTry{Canary::log_wait, "pronto/objects/page/map"},
    FirstTry{Canary::entry_checksum, "pronto/objects/line/map"},
    FirstTry{Canary::chunk_header_copy, "pronto/objects-damage/line"},
    FirstTry{Canary::chunk_checksum, "pronto/objects-damage/line"},
    FirstTry{Canary::missing_operation, "pronto/objects/page/concurrent"},
    FirstTry{Canary::retired_chunks, "pronto/objects/line/several"},
    FirstTry{Canary::recovered_log_durable, "pronto/objects/line/map"},
    FirstTry{Canary::log_written_again, "pronto/objects-failed-sync/page"},
    FirstTry{Canary::captured_numbers, "pronto/objects/line/map"},
    FirstTry{Canary::created_object_durable, "pronto/objects/line/several"},
    FirstTry{Canary::recovery_snapshot, "pronto/objects/line/changed-methods"},
};

FirstTry first_try(Canary canary)
{
    const auto* const found = std::find_if(first_tries.begin(), first_tries.end(),
                                           [canary](const FirstTry& entry) { return entry.canary == canary; });
    return found != first_tries.end() ? *found : FirstTry{canary, "mprotect/page/bank"};
}

CanaryEntry make_entry(Canary canary, std::string name, const char* what)
{
    std::replace(name.begin(), name.end(), '_', '-');
    const FirstTry first = first_try(canary);
    return {canary, std::move(name), what, std::string(first.part_of_name), first.program_states};
}

}  // namespace

const std::vector<CanaryEntry>& canaries()
{
    static const std::vector<CanaryEntry> entries = {
#define STILLPOINT_CANARY(name, text) make_entry(Canary::name, #name, text),
#include "core/canaries.inc"
#undef STILLPOINT_CANARY
    };
    return entries;
}

std::vector<Campaign> campaigns_against(const CanaryEntry& canary)
{
    std::vector<Campaign> campaigns;
    const auto add = [&](std::vector<Campaign> more) { std::move(more.begin(), more.end(), std::back_inserter(campaigns)); };
    std::vector<Campaign> conformance = conformance_campaigns();
    // mprotect is everywhere, and trackers have no part in what a crash leaves, but for the marks that one of them needs.
    const bool of_marks = canary.name.ends_with("-store-marks");
    std::erase_if(conformance, [of_marks](const Campaign& campaign) {
        return campaign.name.find("/uffd/") != std::string::npos || (campaign.name.find("/hooks/") != std::string::npos) != of_marks;
    });
    add(std::move(conformance));
    add(object_campaigns());
    add(media_campaigns());
    add(damage_campaigns());
    add(leftover_campaigns());
    const auto likeliest = std::find_if(campaigns.begin(), campaigns.end(), [&](const Campaign& campaign) {
        return campaign.name.find(canary.likeliest) != std::string::npos;
    });
    if (likeliest != campaigns.end()) {
        std::rotate(campaigns.begin(), likeliest, likeliest + 1);
    }
    return campaigns;
}

}  // namespace explorer
}  // namespace stillpoint
