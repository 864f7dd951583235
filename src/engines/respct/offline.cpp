#include "engines/respct/offline.hpp"

#include "engines/respct/recovery.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::respct {

namespace {

RecoveryReport report_of(const RunFacts& runs) noexcept
{
    RecoveryReport report;
    report.epoch = runs.epoch;
    report.clean = runs.clean;
    report.captured_unix_ns = runs.captured_unix_ns;
    return report;
}

}  // namespace

Result<RecoveryReport> inspect_pool(const Pool& pool)
{
    auto record = load_commit_record(pool);
    if (!record) {
        return pass_on(record.error());
    }
    RecoveryReport report = report_of(facts_of_runs(pool, *record));
    report.pages_present = *record ? (*record)->image_pages : 0;
    return report;
}

Result<RecoveryReport> check_pool(const Pool& pool, Findings* findings,
                                  Result<void> (*visit_image)(void* context, std::byte* base, std::uint64_t image_bytes), void* context,
                                  void (*progress)(std::uint64_t done, std::uint64_t total))
{
    // Whole runs of the heap's tables end on page borders inside the image.
    os::ReservedArray<std::byte> image;
    if (auto done = image.reserve(pool.facts().image_bytes, "the recovered image"); !done) {
        return pass_on(done.error());
    }
    TableCopies tables;
    auto recovered = recover_image({&pool, image.data(), false, findings, progress}, tables);
    if (!recovered) {
        return pass_on(recovered.error());
    }
    RecoveryReport report = report_of(recovered->runs);
    report.pages_rolled_back = recovered->variables_rolled_back;
    report.pages_present = recovered->pages_read;
    if (visit_image != nullptr && report.epoch != 0) {
        if (auto done = visit_image(context, image.data(), pool.facts().image_bytes); !done) {
            return pass_on(done.error());
        }
    }
    return report;
}

}  // namespace stillpoint::respct
