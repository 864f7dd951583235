#pragma once
// Runs campaigns in processes of their own, some at a time.

#include <functional>
#include <string>
#include <vector>

#include "campaign.hpp"

namespace stillpoint::explorer {

using Job = std::function<CampaignResult()>;

/// Calls finished(index, result) as each job ends, in that order of ending. A job whose process dies is a violation.
/// Returns early, ending the jobs under way, when a signal of interruption came: false.
bool run_jobs(const std::vector<Job>& jobs, unsigned at_a_time, const std::function<void(std::size_t, const CampaignResult&)>& finished);

}  // namespace stillpoint::explorer
