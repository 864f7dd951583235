#include "versions/offline.hpp"

#include "core/pool_part.hpp"
#include "versions/loader.hpp"
#include "versions/recovered_state.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::versions {

Result<RecoveryReport> inspect_pool(const Pool& pool, bool has_delta_log)
{
    VersionTable table;
    LocationAllocator locations;
    Deltas deltas;
    auto state = recover_state(pool, table, locations, nullptr, has_delta_log ? &deltas : nullptr);
    if (!state) {
        return pass_on(state.error());
    }
    return state->report;
}

Result<RecoveryReport> check_pool(const Pool& pool, Findings* findings,
                                  Result<void> (*visit_image)(void* context, std::byte* base, std::uint64_t image_bytes), void* context,
                                  void (*progress)(std::uint64_t done, std::uint64_t total))
{
    return check_pool(pool, false, findings, visit_image, context, progress);
}

Result<RecoveryReport> check_pool(const Pool& pool, bool has_delta_log, Findings* findings,
                                  Result<void> (*visit_image)(void* context, std::byte* base, std::uint64_t image_bytes), void* context,
                                  void (*progress)(std::uint64_t done, std::uint64_t total))
{
    VersionTable table;
    LocationAllocator locations;
    Deltas deltas;
    auto state = recover_state(pool, table, locations, findings, has_delta_log ? &deltas : nullptr);
    if (!state) {
        return pass_on(state.error());
    }
    os::ReservedArray<std::byte> image;
    if (auto done = image.reserve(pool.facts().image_bytes, "the recovered image"); !done) {
        return pass_on(done.error());
    }
    Loader loader;
    if (auto done = loader.prepare({&table, &pool.medium(), state->pages_end, nullptr, &deltas.replay}); !done) {
        return pass_on(done.error());
    }
    look_at(findings, PoolPart::pages);
    if (auto done = loader.load_all(image.data(), progress, findings); !done) {
        return pass_on(done.error());
    }
    if (visit_image != nullptr && state->report.epoch != 0) {
        if (auto done = visit_image(context, image.data(), pool.facts().image_bytes); !done) {
            return pass_on(done.error());
        }
    }
    return state->report;
}

}  // namespace stillpoint::versions
