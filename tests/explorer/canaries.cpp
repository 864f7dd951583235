#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "api/registry.hpp"
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

CanaryEntry make_entry(Canary canary, std::string name, const char* likeliest, const char* what)
{
    std::replace(name.begin(), name.end(), '_', '-');
    return {canary, std::move(name), what, likeliest};
}

/// The tracker of the driver that the text names, or "".
std::string_view tracker_in(const EngineDriver& driver, const std::string& text)
{
    const auto named = std::find_if(driver.trackers.begin(), driver.trackers.end(),
                                    [&](std::string_view tracker) { return text.find(std::string(tracker) + "/") != std::string::npos; });
    return named == driver.trackers.end() ? std::string_view() : *named;
}

/// Whether the campaign is of another tracker than the one that the canary's likeliest campaign names.
bool is_of_another_tracker(const Campaign& campaign, const CanaryEntry& canary)
{
    const auto drivers = engine_drivers();
    return std::any_of(drivers.begin(), drivers.end(), [&](const EngineDriver& driver) {
        if (!campaign.name.starts_with(std::string(driver.format.name) + "/")) {
            return false;
        }
        const std::string_view wanted = tracker_in(driver, canary.likeliest);
        const std::string_view is = tracker_in(driver, campaign.name);
        return !wanted.empty() && !is.empty() && is != wanted;
    });
}

/// How many bytes two names have in common, from their first on.
std::size_t common_beginning(std::string_view one, std::string_view other)
{
    const auto end = std::mismatch(one.begin(), one.end(), other.begin(), other.end()).first;
    return static_cast<std::size_t>(end - one.begin());
}

}  // namespace

const std::vector<CanaryEntry>& canaries()
{
    static const std::vector<CanaryEntry> entries = [] {
        std::vector<CanaryEntry> made = {
#define STILLPOINT_CANARY(name, campaign, text) make_entry(Canary::name, #name, STILLPOINT_CANARY_ENGINE campaign, text),
#include "every_canary.inc"
#undef STILLPOINT_CANARY
        };
        std::erase_if(made, [](const CanaryEntry& entry) { return std::string_view(entry.likeliest).ends_with(STILLPOINT_CANARY_TEST); });
        return made;
    }();
    return entries;
}

std::vector<Campaign> campaigns_against(const CanaryEntry& canary)
{
    std::vector<Campaign> campaigns;
    const auto add = [&](std::vector<Campaign> more) { std::move(more.begin(), more.end(), std::back_inserter(campaigns)); };
    std::vector<Campaign> conformance = conformance_campaigns();
    // Trackers have no part in what a crash leaves, but for what only one of them needs: the row of its canary names it.
    std::erase_if(conformance, [&](const Campaign& campaign) { return is_of_another_tracker(campaign, canary); });
    add(std::move(conformance));
    add(object_campaigns());
    add(transaction_campaigns());
    add(section_campaigns());
    add(typed_campaigns());
    add(media_campaigns());
    add(damage_campaigns());
    add(leftover_campaigns());
    add(replica_campaigns());
    const auto likeliest = std::find_if(campaigns.begin(), campaigns.end(), [&](const Campaign& campaign) {
        return campaign.name.find(canary.likeliest) != std::string::npos;
    });
    if (likeliest == campaigns.end()) {
        throw std::runtime_error("canary " + canary.name + ": no campaign has \"" + canary.likeliest + "\" in its name");
    }
    // After it, those that are most like it: of the same engine, then of the same kind.
    const std::string name = likeliest->name;
    std::rotate(campaigns.begin(), likeliest, likeliest + 1);
    std::stable_sort(campaigns.begin() + 1, campaigns.end(), [&](const Campaign& one, const Campaign& other) {
        return common_beginning(one.name, name) > common_beginning(other.name, name);
    });
    return campaigns;
}

}  // namespace explorer
}  // namespace stillpoint
