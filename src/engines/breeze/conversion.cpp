#include "engines/breeze/conversion.hpp"

#include <memory>
#include <utility>

#include "engines/breeze/new_pool.hpp"

namespace stillpoint::breeze {

namespace {

/// Reads what the file says. Errors: invalid_argument, object_type.
Result<NewTypes> read_program(const ConversionRequest& request)
{
    auto types = types_of_section(request.types);
    if (!types) {
        return fail(types.error().code, 0, "{}: {}", request.program, types.error().text());
    }
    if (types->empty()) {
        return fail(SP_E_INVALID_ARGUMENT, 0,
                    "{} describes no types: name the program, or the shared library, in which NVM_TYPE or NVM_AUTO_TYPE stands",
                    request.program);
    }
    NewTypes program;
    program.types = std::move(*types);
    program.drops.insert(request.drops.begin(), request.drops.end());
    return program;
}

/// Converts all objects in memory, so that all that does not fit is found; nothing is written.
Result<void> try_it(CompactedImage& image, std::uint64_t image_bytes, std::uintptr_t base)
{
    const auto header = std::make_unique<PoolHeader>();
    header->image_bytes = image_bytes;
    return image.make(*header, base);
}

/// Errors: as EngineDriver::compact.
Result<void> make_pool(const Pool& pool, const ConversionRequest& request, std::unique_ptr<BreezePool>& old,
                       std::unique_ptr<CompactedImage>& image, ConversionReport& report, CopyProgress progress)
{
    CompactionFigures& figures = report.figures;
    auto made = create_new(pool, request.made, figures.image_bytes_after, old->parts().base());
    if (!made) {
        return pass_on(made.error());
    }
    figures.file_bytes_after = made->facts().file_bytes;
    if (auto ready = image->make(BreezePool::new_header(*made), made->facts().base_address); !ready) {
        return ready;
    }
    if (report.is_refused()) {
        return {};
    }
    if (auto written = image->write_to(*made); !written) {
        return written;
    }
    image.reset();
    old.reset();  // The check needs the memory.
    return check_and_publish(*made, figures.objects_after, progress);
}

}  // namespace

Result<ConversionReport> convert_pool(const Pool& pool, const ConversionRequest& request, CopyProgress progress)
{
    auto program = read_program(request);
    if (!program) {
        return pass_on(program.error());
    }
    auto old = open_to_copy(pool, "converted", progress);
    if (!old) {
        return pass_on(old.error());
    }
    ConversionPlan plan;
    if (auto prepared = plan.prepare((*old)->parts(), std::move(*program)); !prepared) {
        return pass_on(prepared.error());
    }
    ConversionReport& report = plan.report();
    report.figures = count_before(pool, (*old)->parts());
    if (report.is_refused()) {
        return report;
    }
    auto image = std::make_unique<CompactedImage>((*old)->parts(), &plan);
    if (auto placed = image->place_objects(); !placed) {
        return pass_on(placed.error());
    }
    report.figures.objects_after = image->objects();
    report.figures.object_bytes_after = image->object_bytes();
    const auto size = size_of_new(pool, *image, request.made);
    if (!size) {
        return pass_on(size.error());
    }
    report.figures.image_bytes_after = *size;
    auto made = request.is_trial ? try_it(*image, *size, (*old)->parts().base()) : make_pool(pool, request, *old, image, report, progress);
    if (!made) {
        return pass_on(made.error());
    }
    return report;
}

}  // namespace stillpoint::breeze
