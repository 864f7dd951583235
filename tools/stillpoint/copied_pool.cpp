#include "copied_pool.hpp"

#include <optional>

#include "option_flags.hpp"
#include "pool_access.hpp"

namespace stillpoint::tool {

namespace {

std::string names_of_copying_engines()
{
    std::string names;
    for (const EngineDriver& driver : every_engine_driver()) {
        if (driver.compact != nullptr) {
            names += names.empty() ? "" : " and ";
            names += driver.format.name;
        }
    }
    return names;
}

}  // namespace

void add_size_option(CommandLine& line, std::uint64_t& size_mb)
{
    const auto take = [&size_mb](const std::string& text) -> std::string {
        const std::optional<std::uint64_t> size = parse_quantity("size_mb", text);
        constexpr std::uint64_t size_max = UINT64_MAX / mib;
        if (!size || *size == 0 || *size > size_max) {
            return "\"" + text + "\" is not a size of whole MiB, such as 64M or 2G";
        }
        size_mb = *size;
        return "";
    };
    line.option("--size", "SIZE", take,
                "Size of the new pool, e.g. 64M. Default: what the objects need and a sixteenth more, at least 4M.");
}

int refuse_engine(const std::string& path, std::string_view engine, std::string_view done)
{
    return report_error(
        exit_codes::data_error,
        text_of("{}: the pool belongs to the engine {}, which does not know the types of a program's objects: only pools of "
                "{} can be {}",
                path, engine, names_of_copying_engines(), done));
}

void add_copy_figures(Json& json, const CompactionFigures& figures)
{
    json.number("objects_before", figures.objects_before).number("objects_after", figures.objects_after);
    json.number("left_out", figures.objects_before - figures.objects_after);
    json.number("object_bytes_before", figures.object_bytes_before).number("object_bytes_after", figures.object_bytes_after);
    json.number("image_bytes_before", figures.image_bytes_before).number("image_bytes_after", figures.image_bytes_after);
    json.number("file_bytes_before", figures.file_bytes_before).number("file_bytes_after", figures.file_bytes_after);
}

void print_copy_figures(const CompactionFigures& figures)
{
    const auto row = [](std::string_view what, const std::string& before, const std::string& after) {
        print("  {:<12}{:>12}  ->{:>12}\n", what, before, after);
    };
    row("objects", std::to_string(figures.objects_before), std::to_string(figures.objects_after));
    row("their bytes", size_text(figures.object_bytes_before), size_text(figures.object_bytes_after));
    row("pool size", size_text(figures.image_bytes_before), size_text(figures.image_bytes_after));
    row("file size", size_text(figures.file_bytes_before), size_text(figures.file_bytes_after));
    const std::uint64_t left_out = figures.objects_before - figures.objects_after;
    print("{} object{} left out: nothing leads there from the root\n", left_out, left_out == 1 ? " was" : "s were");
}

}  // namespace stillpoint::tool
