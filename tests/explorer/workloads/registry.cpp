#include <algorithm>

#include "api/registry.hpp"
#include "runtime/engine.hpp"
#include "stillpoint/stillpoint.h"
#include "workloads/entries.hpp"

namespace stillpoint::explorer {

namespace {

WorkloadMakers::Make maker_for(const WorkloadMakers& makers, std::string_view engine)
{
    const EngineDriver& driver = *find_engine(engine);
    if (driver.programs == Programs::transactions) {
        return makers.transactional;
    }
    return driver.trackers.empty() ? makers.logged : makers.plain;
}

}  // namespace

std::unique_ptr<Workload> WorkloadEntry::make_for(std::string_view engine) const { return maker_for(makers, engine)(); }

bool WorkloadEntry::fits(std::string_view engine) const { return maker_for(makers, engine) != nullptr; }

const std::vector<WorkloadEntry>& workloads()
{
    static const std::vector<WorkloadEntry> entries = {
        {"bank", bank_transfer(), 8}, {"list", linked_list(), 8},          {"hash-map", hash_map(), 8},
        {"btree", btree(), 8},        {"allocator", allocator_churn(), 8}, {"handles", handles(), 8},
        {"growth", growth(), 64},     {"reused-locks", reused_locks(), 8}, {"kernel-stores", kernel_stores(), 8},
    };
    return entries;
}

const WorkloadEntry& workload_called(std::string_view name)
{
    return *std::find_if(workloads().begin(), workloads().end(), [=](const WorkloadEntry& entry) { return entry.name == name; });
}

bool may_be_followed(const void* pointer, std::size_t alignment) noexcept
{
    return stillpoint_is_persistent(pointer) && reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0;
}

}  // namespace stillpoint::explorer
