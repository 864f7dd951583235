#pragma once
// A campaign: one thing to explore, with a name of its own: "pmthreads/uffd/page/bank".

#include <functional>
#include <string>
#include <vector>

#include "core/canary.hpp"
#include "explorer.hpp"

namespace stillpoint::explorer {

struct CampaignResult {
    Figures figures;
    std::vector<Violation> violations;
    std::string skipped;  ///< why nothing was done, or ""
};

struct CampaignSettings {
    Limits limits;
    std::uint64_t seed = 1;
    std::string scratch;
};

struct Campaign {
    std::string name;
    std::function<CampaignResult(const CampaignSettings&)> run;
};

inline constexpr sim::Profile every_profile[] = {sim::Profile::process, sim::Profile::persistent_caches, sim::Profile::cache_line,
                                                 sim::Profile::page, sim::Profile::rados};

/// The campaign of that name: Explorer on this plan.
[[nodiscard]] Campaign exploration(std::string name, ProgramPlan plan);

/// Why a plan cannot be run here, or "".
[[nodiscard]] std::string why_skipped(const ProgramPlan& plan);

/// The campaigns that every engine of the build must pass: an engine joins by being registered.
[[nodiscard]] std::vector<Campaign> conformance_campaigns();
/// Programs over durable objects: nothing acknowledged is lost, nothing half-done is seen.
[[nodiscard]] std::vector<Campaign> object_campaigns();
/// Programs in transactions: likewise, and none survives without what it has read.
[[nodiscard]] std::vector<Campaign> transaction_campaigns();
/// Programs over typed objects: likewise; counts and pointers are right wherever a pool lies.
[[nodiscard]] std::vector<Campaign> typed_campaigns();
/// Programs with locks whose sections are durable one by one: likewise, with nested and overlapping locks.
[[nodiscard]] std::vector<Campaign> section_campaigns();
/// A reader that does not wait believes what a crash may lose: each must find that.
[[nodiscard]] std::vector<Campaign> lost_reads_campaigns();
/// Pools with one sector, line or page damaged: refused, or recovered whole.
[[nodiscard]] std::vector<Campaign> damage_campaigns();
/// Pools that grow into parts of the file where an epoch that did not survive has left its bytes.
[[nodiscard]] std::vector<Campaign> leftover_campaigns();
/// The promises of the real media to engines: their own fences and syncs, held to the crash model.
[[nodiscard]] std::vector<Campaign> media_campaigns();
/// A pool in RADOS whose owner changes. Engines on such a pool are among the campaigns of every profile.
[[nodiscard]] std::vector<Campaign> rados_campaigns();
/// A pool in a file with a replica in RADOS: each side may be lost, or both are left in any state.
[[nodiscard]] std::vector<Campaign> replica_campaigns();
/// RADOS with a sync that does not wait, or without fencing: each must be noticed.
[[nodiscard]] std::vector<Campaign> wrong_rados_campaigns();
/// The explorer notices a store that is missing from its trace.
[[nodiscard]] std::vector<Campaign> stray_store_campaigns();

struct CanaryEntry {
    Canary canary;
    std::string name;       ///< with dashes
    std::string what;       ///< is removed
    std::string likeliest;  ///< part of the name of the campaign where it shows soonest
};
[[nodiscard]] const std::vector<CanaryEntry>& canaries();
/// Removes one in this process and its children.
void remove_canary(Canary canary) noexcept;
/// shares_are_small() is false from here on, in this process and its children: for figures of what the product does.
void take_shares_as_the_product() noexcept;
/// The campaigns that look for it, the likeliest first. Throws if no campaign has that name.
[[nodiscard]] std::vector<Campaign> campaigns_against(const CanaryEntry& canary);

/// Why the tracker is not available here, or "".
[[nodiscard]] std::string tracker_missing(const std::string& tracker);

}  // namespace stillpoint::explorer
