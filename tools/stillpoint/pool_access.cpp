#include "pool_access.hpp"

#include <cstdio>
#include <unistd.h>

#include "heap/heap.hpp"
#include "media/open.hpp"
#include "os/clock.hpp"
#include "output.hpp"
#include "pool/directory.hpp"
#include "pool/image.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::uint64_t progress_interval_ns = 200'000'000;

/// What visit_image needs, passed through the engine as its context.
struct ImageVisit {
    const PoolFacts& facts;
    const std::function<void(const HandleFacts&)>& visit;
    std::uint64_t handles = 0;
};

/// The layers above the engine, on the image it recovered.
Result<void> check_layers(void* context, std::byte* base, std::uint64_t image_bytes)
{
    auto& visit = *static_cast<ImageVisit*>(context);
    const std::uint64_t image_bytes_max = visit.facts.image_bytes_max;
    if (auto header = check_image(base, image_bytes_max, visit.facts.base_address); !header) {
        return header;
    }
    const ImageGeometry geometry = ImageGeometry::for_image(image_bytes_max);
    const Directory directory(base, geometry);
    if (auto sound = directory.check(image_bytes); !sound) {
        return sound;
    }
    directory.for_each([&](const DirectoryEntry& entry) {
        ++visit.handles;
        if (visit.visit) {
            visit.visit({std::string(entry.handle), entry.address, entry.size_bytes});
        }
        return true;
    });
    return Heap::check({.image_base = base,
                        .heap_offset = geometry.heap_offset,
                        .image_bytes = image_bytes,
                        .image_bytes_max = image_bytes_max,
                        .grow = nullptr,
                        .grow_context = nullptr});
}

Result<void> skip_layers(void*, std::byte*, std::uint64_t) { return {}; }

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

void erase_progress() { print_error("\r\033[K"); }

}  // namespace

Result<OpenedPool> open_pool_to_read(const std::string& path, bool lock)
{
    MediumOptions options;
    options.path = path;
    auto medium = open_medium_read_only(options, lock);
    if (!medium) {
        return pass_on(medium.error());
    }
    auto pool = Pool::open(std::move(*medium), EngineFormat{}, true);
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
    if (pool->facts().engine_layout_version != driver->format.layout_version) {
        return fail(SP_E_POOL_VERSION, 0,
                    "{}: the engine {} wrote it with layout version {}, this stillpoint reads version {}; use the version "
                    "that made it, or a newer one",
                    path, name, pool->facts().engine_layout_version, driver->format.layout_version);
    }
    return OpenedPool{std::move(*pool), driver};
}

Result<Verification> verify(const OpenedPool& opened, bool progress,
                            const std::function<void(const HandleFacts&)>& visit)
{
    const bool show = progress && isatty(STDERR_FILENO) == 1;
    const auto facts = opened.driver->inspect(opened.pool);
    if (!facts) {
        return pass_on(facts.error());
    }
    ImageVisit context{opened.pool.facts(), visit};
    // Before its first checkpoint a pool has no image yet: there is only the engine's part to check.
    auto report = opened.driver->check(opened.pool, facts->epoch == 0 ? skip_layers : check_layers, &context,
                                       show ? print_progress : nullptr);
    if (show) {
        erase_progress();
    }
    if (!report) {
        return pass_on(report.error());
    }
    return Verification{*report, context.handles};
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

}  // namespace stillpoint::tool
