#include "raised_maximum.hpp"

#include <optional>

#include "heap/image_heap.hpp"
#include "option_flags.hpp"
#include "output.hpp"

namespace stillpoint::tool {

Result<RaisedMaximum> raise_maximum(const std::string& path, std::uint64_t image_bytes_max)
{
    auto opened = open_pool_to_change(path);
    return opened ? raise_maximum(*opened, path, image_bytes_max) : Result<RaisedMaximum>(pass_on(opened.error()));
}

Result<RaisedMaximum> raise_maximum(OpenedPool& opened, const std::string& path, std::uint64_t image_bytes_max)
{
    const EngineDriver& driver = *opened.driver;
    const std::uint64_t before = opened.pool.facts().image_bytes_max;
    if (driver.table_format != layout::TableFormat::plain || !driver.opened_by.empty()) {
        const char* const way = driver.opened_by.empty()
                                    ? "make a new pool with a larger --pool-max, and let the program copy its data there"
                                    : "`stillpoint compact` makes a pool of another size of it";
        return fail(SP_E_POOL_ENGINE, 0, "{}: the maximum of a pool of the engine {} is settled when it is created; {}", path,
                    driver.format.name, way);
    }
    RaisedMaximum raised{std::string(driver.format.name), before, image_bytes_max};
    if (image_bytes_max == before) {
        return raised;
    }
    if (image_bytes_max < before) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "{}: the maximum is {}, and is only ever raised; make a new pool for a smaller one", path,
                    size_text(before));
    }
    if (auto enough = lengthened_tables_fit(opened.pool.facts(), image_bytes_max); !enough) {
        return pass_on(enough.error());
    }
    if (auto done = opened.pool.raise_maximum(image_bytes_max); !done) {
        return pass_on(done.error());
    }
    return raised;
}

std::function<std::string(const std::string&)> maximum_taker(std::uint64_t& maximum_mb)
{
    return [&maximum_mb](const std::string& text) -> std::string {
        constexpr std::uint64_t limit_mb = window_bytes / mib;
        const std::optional<std::uint64_t> wanted = parse_quantity("pool_max_mb", text);
        if (!wanted || *wanted == 0 || *wanted > limit_mb) {
            return text_of("\"{}\" is not a size from 1M to {}G, such as 512M or 64G", text, limit_mb / 1024);
        }
        maximum_mb = *wanted;
        return "";
    };
}

}  // namespace stillpoint::tool
