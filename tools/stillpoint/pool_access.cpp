#include "pool_access.hpp"

#include <cstdio>
#include <ctime>
#include <unistd.h>

#include "api/registry.hpp"
#include "heap/heap.hpp"
#include "heap/image_heap.hpp"
#include "media/open.hpp"
#include "os/clock.hpp"
#include "exit_codes.hpp"
#include "output.hpp"
#include "pool/directory.hpp"
#include "pool/image.hpp"
#include "report.hpp"
#include "runtime/durable_globals_table.hpp"
#include "runtime/kept_types.hpp"
#include "runtime/sync_objects.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::uint64_t progress_interval_ns = 200'000'000;

/// Keeps as many as a person reads.
class KeptFindings final : public FindingsByPart {
public:
    explicit KeptFindings(Verification& result) : result_(result) {}

private:
    void tell(const Failure& failure, bool is_damage) override
    {
        constexpr std::size_t kept_max = 100;
        std::vector<Failure>& kept = is_damage ? result_.damages : result_.remarks;
        if (kept.size() < kept_max) {
            kept.push_back(failure);
            if (is_damage) {
                result_.damage_parts.push_back(part());
            }
        }
        result_.damages_by_part[static_cast<std::size_t>(part())] += is_damage ? 1 : 0;
    }
    Verification& result_;
};

/// Context of visit_image, passed through the engine as its context.
struct ImageVisit {
    const OpenedPool& opened;
    const PoolFacts& facts;
    std::vector<FactRow>& rows;
    Findings& findings;
    const std::function<void(const HandleFacts&)>& visit;
    const ImageVisitor& visit_image;
    std::uint64_t handles = 0;
    std::string data_layout = {};
};

Result<void> check_tables(ImageVisit& visit, std::byte* base, std::uint64_t image_bytes)
{
    const layout::TableFormat format = visit.opened.driver->table_format;
    if (const auto& kept = reinterpret_cast<const layout::ImageHeader*>(base)->data_layout; kept.name[0] != '\0') {
        visit.data_layout = text_of("{}:{}", kept.name, kept.number);
    }
    const ImageGeometry geometry = ImageGeometry::for_image(visit.facts.image_bytes_first_max, format);
    const Directory directory(base, geometry);
    const Heap::Options heap = heap_options_of(base, visit.facts, image_bytes, format);
    look_at(&visit.findings, PoolPart::handles);
    if (auto looked = directory.check(image_bytes, &visit.findings); !looked) {
        return looked;
    }
    directory.for_each([&](const DirectoryEntry& entry) {
        ++visit.handles;
        if (!Heap::is_live_block(heap, entry.address - visit.facts.base_address, entry.size_bytes)) {
            visit.findings.damage(fail(SP_E_POOL_CORRUPT, 0,
                                       "handle \"{}\": no live block of {} bytes begins at {:#x}; restore the pool from a copy",
                                       entry.handle, entry.size_bytes, entry.address)
                                      .value());
        }
        if (visit.visit) {
            visit.visit({std::string(entry.handle), entry.address, entry.size_bytes});
        }
        return true;
    });
    look_at(&visit.findings, PoolPart::heap);
    if (auto sound = Heap::check(heap, &visit.findings); !sound) {
        return sound;
    }
    look_at(&visit.findings, PoolPart::locks);
    if (auto sound = sync_objects_check(heap, visit.facts.base_address, geometry); !sound) {
        visit.findings.damage(sound.error());
    }
    look_at(&visit.findings, PoolPart::types);
    if (auto sound = kept_type_text(heap); !sound) {
        visit.findings.damage(sound.error());
    }
    look_at(&visit.findings, PoolPart::globals);
    if (auto sound = durable_globals::check_blocks(heap, &visit.findings); !sound || visit.opened.driver->facts == nullptr) {
        return sound;
    }
    const auto note = [](void* list, std::span<const Fact> cells) {
        FactRow& row = static_cast<std::vector<FactRow>*>(list)->emplace_back();
        for (const Fact& cell : cells) {
            row.push_back({cell.number, std::string(cell.text)});
        }
    };
    return visit.opened.driver->facts->visit(visit.opened.pool, base, image_bytes, visit.findings, note, &visit.rows);
}

/// The layers above the engine, on the image it recovered.
Result<void> check_layers(void* context, std::byte* base, std::uint64_t image_bytes)
{
    auto& visit = *static_cast<ImageVisit*>(context);
    const layout::TableFormat format = visit.opened.driver->table_format;
    look_at(&visit.findings, PoolPart::image_header);
    if (auto header = check_image(base, format, {visit.facts.image_bytes_first_max, visit.facts.image_bytes_max, visit.facts.base_address});
        !header) {
        return found(&visit.findings, pass_on(header.error()));  // Where the tables lie is not known.
    }
    auto sound = check_tables(visit, base, image_bytes);
    if (sound && visit.visit_image) {
        visit.visit_image({base, image_bytes, visit.rows});
    }
    return sound;
}

/// One line on the terminal, rewritten in place a few times a second.
void print_progress(std::uint64_t done, std::uint64_t total)
{
    static std::uint64_t last_ns = 0;
    const std::uint64_t now = os::monotonic_ns();
    if (now - last_ns < progress_interval_ns || total == 0) {
        return;
    }
    last_ns = now;
    print_error("\rstillpoint: verified {} % ({} of {} pages)", done * 100 / total, done, total);
    std::fflush(stderr);
}

}  // namespace

ProgressLine progress_line(bool wanted) { return wanted && isatty(STDERR_FILENO) == 1 ? &print_progress : nullptr; }

void erase(ProgressLine progress)
{
    if (progress != nullptr) {
        print_error("\r\033[K");
    }
}

Result<OpenedPool> open_pool_of(const std::string& path, Result<std::unique_ptr<Medium>> medium, bool read_only)
{
    if (!medium) {
        return pass_on(medium.error());
    }
    auto pool = Pool::open(std::move(*medium), EngineFormat{}, read_only, !read_only);
    if (!pool) {
        return pass_on(pool.error());
    }
    const std::string name = pool->facts().engine_name;
    const EngineDriver* driver = find_engine(name);
    if (driver == nullptr) {
        return fail(SP_E_POOL_ENGINE, 0,
                    "{}: the pool belongs to the engine '{}', which this stillpoint does not have; use the version "
                    "that made it, or a newer one",
                    path, name);
    }
    if (format_of(*driver, pool->facts().engine_layout_version) == nullptr) {
        return fail(SP_E_POOL_VERSION, 0,
                    "{}: the engine {} wrote it with layout version {}, this stillpoint reads version {}; use the version "
                    "that made it, or a newer one",
                    path, name, pool->facts().engine_layout_version, driver->format.layout_version);
    }
    return OpenedPool{std::move(*pool), driver};
}

namespace {

MediumOptions at_path(const std::string& path)
{
    MediumOptions options;
    options.path = path;
    return options;
}

}  // namespace

Result<OpenedPool> open_pool_to_read(const std::string& path, bool lock)
{
    return open_pool_of(path, open_medium_read_only(at_path(path), lock), true);
}

Result<OpenedPool> open_pool_to_change(const std::string& path) { return open_pool_of(path, open_medium(at_path(path)), false); }

int report_unopened(const std::string& path, const Failure& failure)
{
    if (failure.code != SP_E_POOL_LOCKED) {
        return report_failure(failure);
    }
    const std::string text = text_of("{}, or look into a copy: `stillpoint copy {} COPY`", failure.text(), path);
    return report_error(exit_codes::in_use, text, {.code = "pool_locked", .next = "`stillpoint copy`, and look into the copy"});
}

Result<Verification> verify(const OpenedPool& opened, bool progress, const std::function<void(const HandleFacts&)>& visit)
{
    auto verified = verify_all(opened, progress, visit);
    if (verified && verified->damage_count != 0) {
        return pass_on(verified->damages.front());
    }
    return verified;
}

Result<Verification> verify_all(const OpenedPool& opened, bool progress, const std::function<void(const HandleFacts&)>& visit,
                                const ImageVisitor& visit_image, bool failure_is_a_finding)
{
    const ProgressLine line = progress_line(progress);
    Verification result;
    KeptFindings findings(result);
    ImageVisit context{opened, opened.pool.facts(), result.facts, findings, visit, visit_image};
    auto report = opened.driver->check(opened.pool, &findings, &check_layers, &context, line);
    erase(line);
    if (!report && (!failure_is_a_finding || report.error().code != SP_E_POOL_CORRUPT)) {
        return pass_on(report.error());
    }
    for (std::size_t part = 0; part < pool_parts; ++part) {
        result.examined[part] = findings.has_looked_at(static_cast<PoolPart>(part));
    }
    if (!report) {
        findings.damage(report.error());
        result.ended_early = true;
        report = RecoveryReport{};
    }
    result.recovery = *report;
    result.handles = context.handles;
    result.data_layout = std::move(context.data_layout);
    result.damage_count = findings.damages();
    return result;
}

std::string size_text(std::uint64_t bytes)
{
    constexpr std::string_view units[] = {"KiB", "MiB", "GiB", "TiB"};
    if (bytes < kib) {
        return text_of("{} B", bytes);
    }
    double value = static_cast<double>(bytes) / static_cast<double>(kib);
    std::size_t unit = 0;
    while (value >= 1024.0 && unit + 1 < std::size(units)) {
        value /= 1024.0;
        ++unit;
    }
    std::string digits = text_of("{:.1f}", value);
    if (digits.ends_with(".0")) {
        digits.resize(digits.size() - 2);
    }
    return digits + " " + std::string(units[unit]);
}

std::string local_time_text(std::uint64_t unix_seconds)
{
    const auto seconds = static_cast<std::time_t>(unix_seconds);
    std::tm parts{};
    localtime_r(&seconds, &parts);
    char text[64];
    return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %z", &parts)};
}

}  // namespace stillpoint::tool
