#pragma once
// The reports of the explorer to people and machines.

#include <string>
#include <vector>

#include "campaign.hpp"

namespace stillpoint::explorer {

class Report {
public:
    Report(bool json, bool quiet) noexcept : json_(json), quiet_(quiet) {}

    void campaign_ended(const std::string& name, const CampaignResult& result, std::size_t done, std::size_t of);
    /// `command`: what repeats one campaign, with {} for its name.
    void summary(double wall_seconds, unsigned jobs, const std::string& command, bool interrupted) const;
    void canary_ended(const CanaryEntry& canary, const std::string& caught_by, std::size_t done, std::size_t of);
    void canary_summary(double wall_seconds) const;

    [[nodiscard]] bool failed() const noexcept { return total_.violations != 0 || !survivors_.empty(); }
    [[nodiscard]] std::uint64_t states() const noexcept { return total_.states; }

private:
    bool json_;
    bool quiet_;
    Figures total_;
    std::size_t campaigns_ = 0;
    std::size_t skipped_ = 0;
    std::size_t killed_ = 0;
    std::vector<std::string> survivors_;
    std::vector<Violation> violations_;
};

}  // namespace stillpoint::explorer
