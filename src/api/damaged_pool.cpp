#include "api/damaged_pool.hpp"

#include <algorithm>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/findings.hpp"
#include "os/log.hpp"
#include "pool/commit_record.hpp"

namespace stillpoint {

namespace {

/// A pool as its engine finds it, read to the end.
struct WholeLook {
    RecoveryReport report;
    std::optional<Failure> damage;
};

/// The engine's own parts that lie in the image, such as the logs of objects.
struct ImageLook {
    const Pool& pool;
    const EngineDriver& driver;
    Findings& findings;
};

Result<void> look_at_image(void* context, std::byte* base, std::uint64_t image_bytes)
{
    const auto& look = *static_cast<const ImageLook*>(context);
    if (look.driver.facts == nullptr) {
        return {};
    }
    const auto ignore = [](void*, std::span<const Fact>) {};
    return look.driver.facts->visit(look.pool, base, image_bytes, look.findings, ignore, nullptr);
}

/// Errors: every one but pool_corrupt, which is the damage.
Result<WholeLook> look_at_all(const Pool& pool, const EngineDriver& driver)
{
    FirstFinding findings;
    ImageLook context{pool, driver, findings};
    auto report = driver.check(pool, &findings, &look_at_image, &context, nullptr);
    if (!report && report.error().code != SP_E_POOL_CORRUPT) {
        return pass_on(report.error());
    }
    return report ? WholeLook{*report, findings.first} : WholeLook{{}, report.error()};
}

std::string time_text(std::uint64_t unix_ns)
{
    const auto seconds = static_cast<std::time_t>(unix_ns / 1'000'000'000);
    std::tm parts{};
    char text[32] = "";
    if (gmtime_r(&seconds, &parts) != nullptr) {
        std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
    }
    return text;
}

void tell_of_unsound_pages(const Pool& pool, const SalvageReport& report)
{
    constexpr std::size_t rows_max = 8;
    const std::string_view path = pool.medium().path();
    os::log(os::Severity::warning,
            "{}: epoch {}: {} pages are sound, {} are older and {} are lost (zeroes); `stillpoint salvage {} NEW` lists them by handle",
            path, report.epoch, report.pages_sound, report.pages_older, report.pages_lost, path);
    for (std::size_t i = 0; i < std::min(report.unsound.size(), rows_max); ++i) {
        const UnsoundPages& pages = report.unsound[i];
        const std::uintptr_t begin = pool.facts().base_address + pages.first_page * page_bytes;
        if (pages.epoch == 0) {
            os::log(os::Severity::warning, "{}: {} bytes from {:#x} on are lost", path, pages.pages * page_bytes, begin);
        } else {
            os::log(os::Severity::warning, "{}: {} bytes from {:#x} on are as epoch {} left them", path, pages.pages * page_bytes, begin,
                    pages.epoch);
        }
    }
    if (report.unsound.size() > rows_max) {
        os::log(os::Severity::warning, "{}: and {} more such ranges", path, report.unsound.size() - rows_max);
    }
}

}  // namespace

Result<void> keep_what_is_sound(Pool& pool, const EngineDriver& driver)
{
    if (driver.salvage != nullptr) {
        const auto report = driver.salvage(pool);
        if (!report) {
            return pass_on(report.error());
        }
        if (!report->unsound.empty() || !report->tables_proved || !report->lines_whole) {
            tell_of_unsound_pages(pool, *report);
        }
    }
    os::log(os::Severity::warning,
            "{}: opened for reading only (damaged=read-only): the program works on a copy in memory; nothing is written to the pool, and "
            "nothing becomes durable",
            pool.medium().path());
    return {};
}

Result<void> go_back_if_damaged(Pool& pool, const EngineDriver& driver)
{
    const auto newest = look_at_all(pool, driver);
    if (!newest) {
        return pass_on(newest.error());
    }
    if (!newest->damage) {
        return {};
    }
    const std::string_view path = pool.medium().path();
    if (!driver.sums_program_bytes) {
        return fail(
            newest->damage->code, 0,
            "{} (damaged=older-epoch does not help: no checksum of the engine {} covers the program's data, so no older epoch can be "
            "proved)",
            newest->damage->text(), driver.format.name);
    }
    const std::uint64_t damaged_epoch = newest_epoch_named(pool);
    pool.leave_out_epochs_from(damaged_epoch);
    const auto older = look_at_all(pool, driver);
    if (!older) {
        return pass_on(older.error());
    }
    if (older->damage || older->report.epoch == 0) {
        return fail(
            SP_E_POOL_CORRUPT, 0,
            "{} (damaged=older-epoch does not help: of the epoch before {} {}); restore a copy, or keep what is proved: `stillpoint "
            "salvage {} NEW`",
            newest->damage->text(), damaged_epoch, older->damage ? "parts are gone too" : "there is nothing", path);
    }
    if (auto dropped = drop_epochs_from(pool, damaged_epoch); !dropped) {
        return dropped;
    }
    pool.leave_out_epochs_from(UINT64_MAX);
    os::log(
        os::Severity::warning,
        "{}: went back from epoch {} to epoch {}, captured at {} (damaged=older-epoch): what was done after that is lost. The damage: {}",
        path, damaged_epoch, older->report.epoch, time_text(older->report.captured_unix_ns), newest->damage->text());
    return {};
}

}  // namespace stillpoint
