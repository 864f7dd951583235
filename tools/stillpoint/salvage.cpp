// `stillpoint salvage`: makes a new pool of what a damaged one proves, and lists the rest; the damaged one is only read.

#include <algorithm>
#include <cerrno>
#include <vector>

#include "heap/heap_layout.hpp"
#include "json.hpp"
#include "new_file.hpp"
#include "pool/image.hpp"
#include "salvaged_objects.hpp"
#include "whole_copy.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view salvage_examples = "  stillpoint salvage bank.pool bank-new.pool\n"
                                              "  stillpoint salvage --json bank.pool bank-new.pool\n"
                                              "  stillpoint salvage --accept-unproved cells.pool cells-new.pool\n";

constexpr std::string_view salvage_exit_codes =
    "  0 made, and all of it is sound; 1 made, and something is older, lost or not proved: it is listed;\n"
    "  64 wrong usage; 65 nothing can be proved, or not a pool of such an engine; 66 no such file; 71 no\n"
    "  memory; 73 NEW exists, or no space; 74 input/output error; 75 a process has the pool open; 77 no\n"
    "  permission\n";

struct SalvageArguments {
    std::string path;
    std::string new_path;
    bool accept_unproved = false;
    bool json = false;
    bool quiet = false;
};

/// Bytes of an object, from its beginning, that are not as the durable epoch left them.
struct UnsoundBytes {
    std::uint64_t begin;
    std::uint64_t end;
    std::uint64_t epoch;  ///< 0: lost
};

struct UnsoundHandle {
    std::string handle;
    std::uint64_t size_bytes;
    std::vector<UnsoundBytes> bytes;
};

/// No checksum covers its bytes.
struct UnprovedHandle {
    std::string handle;
    std::uint64_t size_bytes;
};

struct Salvaged {
    std::string engine;
    SalvageReport report;
    Verification verified;
    std::vector<std::string> parts;  ///< of the image, one for each run of unsound pages
    std::vector<UnsoundHandle> handles;
    std::vector<UnprovedHandle> unproved;
    bool header_made_again = false;

    [[nodiscard]] bool is_whole() const noexcept
    {
        return report.unsound.empty() && report.pages_unproved == 0 && verified.damage_count == 0;
    }
};

/// The part of the image that the page lies in.
std::string part_of(std::uint64_t page, const PoolFacts& facts, layout::TableFormat format)
{
    const ImageGeometry geometry = ImageGeometry::for_image(facts.image_bytes_first_max, format);
    const std::uint64_t offset = page * page_bytes;
    const auto heap = heap::HeapLayout::of(geometry.heap_offset, facts.image_bytes_first_max, format);
    return offset < geometry.directory_offset      ? "image header"
           : offset < geometry.sync_objects_offset ? "handle directory"
           : offset < geometry.heap_offset         ? "locks in use"
           : offset < heap.spans_offset            ? "tables of the heap"
                                                   : "objects";
}

void note_handle(const HandleFacts& facts, std::uintptr_t base_address, Salvaged& salvaged)
{
    UnsoundHandle unsound{facts.handle, facts.size_bytes, {}};
    const std::uint64_t begin = facts.address - base_address;
    for (const UnsoundPages& pages : salvaged.report.unsound) {
        const std::uint64_t first = std::max(begin, pages.first_page * page_bytes);
        const std::uint64_t end = std::min(begin + facts.size_bytes, (pages.first_page + pages.pages) * page_bytes);
        if (first < end) {
            unsound.bytes.push_back({first - begin, end - begin, pages.epoch});
        }
    }
    if (!unsound.bytes.empty()) {
        salvaged.handles.push_back(std::move(unsound));
    }
    if (salvaged.report.pages_unproved != 0) {
        salvaged.unproved.push_back({facts.handle, facts.size_bytes});
    }
}

/// A copy of the file under the name `made`, an ordinary file.
Result<void> copy_file(const std::string& path, const std::string& made, bool progress)
{
    auto file = CopiedFile::open(made, mode_of(path));
    if (!file) {
        return pass_on(file.error());
    }
    const CopyProgress line = copy_progress_line(progress);
    const auto figures = copy_pool_file(path, *file, {.may_pause = false, .progress = line});
    erase_copy_progress(line);
    if (!figures) {
        return pass_on(figures.error());
    }
    if (figures->was_in_use) {
        return fail(SP_E_POOL_LOCKED, EWOULDBLOCK, "{} is open in process {}; stop that process first", path, figures->process);
    }
    if (auto finished = file->finish(); !finished) {
        return finished;
    }
    return file->remove_mark();
}

Result<SalvageReport> salvage_file(const std::string& made)
{
    auto opened = open_pool_to_change(made);
    if (!opened) {
        return pass_on(opened.error());
    }
    return opened->driver->salvage(opened->pool);
}

/// Sees the made pool as a program would.
Result<void> look_at(const std::string& made, const std::string& path, bool progress, Salvaged& salvaged)
{
    const auto opened = open_pool_to_read(made, true);
    if (!opened) {
        return pass_on(opened.error());
    }
    const PoolFacts& facts = opened->pool.facts();
    for (const UnsoundPages& pages : salvaged.report.unsound) {
        const std::string first = part_of(pages.first_page, facts, opened->driver->table_format);
        const std::string last = part_of(pages.first_page + pages.pages - 1, facts, opened->driver->table_format);
        salvaged.parts.push_back(first == last ? first : text_of("{} to {}", first, last));
    }
    const auto& unsound = salvaged.report.unsound;
    const bool header_is_lost = !unsound.empty() && unsound.front().first_page == 0 && unsound.front().epoch == 0;
    auto verified = verify_all(*opened, progress, [&](const HandleFacts& handle) { note_handle(handle, facts.base_address, salvaged); });
    if (!verified) {
        return pass_on(verified.error());
    }
    salvaged.verified = std::move(*verified);
    if (header_is_lost && salvaged.verified.damages_by_part[static_cast<std::size_t>(PoolPart::image_header)] != 0) {
        return fail(SP_E_POOL_CORRUPT, 0,
                    "{}: the page that says where the parts of the image lie is lost, and cannot be made again; restore a copy (stillpoint "
                    "restore)",
                    path);
    }
    salvaged.header_made_again = header_is_lost;
    return {};
}

void print_json(const SalvageArguments& arguments, const Salvaged& salvaged)
{
    const SalvageReport& report = salvaged.report;
    Json json;
    json.begin_object().text("pool", arguments.path).text("new", arguments.new_path).text("engine", salvaged.engine);
    json.boolean("whole", salvaged.is_whole()).number("epoch", report.epoch);
    json.number("pages_sound", report.pages_sound).number("pages_older", report.pages_older).number("pages_lost", report.pages_lost);
    json.number("pages_unproved", report.pages_unproved);
    json.boolean("tables_proved", report.tables_proved).boolean("lines_whole", report.lines_whole);
    json.boolean("header_made_again", salvaged.header_made_again);
    json.begin_array("pages");
    for (std::size_t i = 0; i < report.unsound.size(); ++i) {
        const UnsoundPages& pages = report.unsound[i];
        json.begin_object().number("first_page", pages.first_page).number("pages", pages.pages).number("epoch", pages.epoch);
        json.text("part", salvaged.parts[i]).end_object();
    }
    json.end_array().begin_array("handles");
    for (const UnsoundHandle& handle : salvaged.handles) {
        json.begin_object().text("handle", handle.handle).number("size", handle.size_bytes).begin_array("bytes");
        for (const UnsoundBytes& bytes : handle.bytes) {
            json.begin_object().number("begin", bytes.begin).number("end", bytes.end).number("epoch", bytes.epoch).end_object();
        }
        json.end_array().end_object();
    }
    json.end_array().begin_array("handles_unproved");
    for (const UnprovedHandle& handle : salvaged.unproved) {
        json.begin_object().text("handle", handle.handle).number("size", handle.size_bytes).end_object();
    }
    json.end_array().number("findings_total", salvaged.verified.damage_count).begin_array("findings");
    for (const Failure& finding : salvaged.verified.damages) {
        json.element(finding.text());
    }
    json.end_array();
    answer(std::move(json));
}

std::string state_text(std::uint64_t epoch) { return epoch == 0 ? "lost: zeroes" : text_of("older: from epoch {}", epoch); }

void print_unproved(const Salvaged& salvaged)
{
    if (salvaged.report.pages_unproved == 0) {
        return;
    }
    print("  {} pages of the heap's tables and of objects are as the file has them: no checksum covers them\n",
          salvaged.report.pages_unproved);
    for (const UnprovedHandle& handle : salvaged.unproved) {
        print("  handle \"{}\"  {} bytes  not proved\n", printable(handle.handle), handle.size_bytes);
    }
}

void print_text(const SalvageArguments& arguments, const Salvaged& salvaged)
{
    constexpr std::size_t rows_max = 100;
    const SalvageReport& report = salvaged.report;
    print("{}: made from {}, epoch {}: {} pages sound, {} older, {} lost\n", arguments.new_path, arguments.path, report.epoch,
          report.pages_sound, report.pages_older, report.pages_lost);
    if (!report.tables_proved) {
        print("a table that says which copies are the newest is lost: its pages are listed as older, though some may be the newest\n");
    }
    if (salvaged.header_made_again) {
        print("the image header was lost, and is made again: without the layout of the data, and without durable globals\n");
    }
    if (!report.lines_whole) {
        print("changed lines are lost: pages that may lack some are listed as older\n");
    }
    for (std::size_t i = 0; i < std::min(report.unsound.size(), rows_max); ++i) {
        const UnsoundPages& pages = report.unsound[i];
        print("  pages {} to {}  {}  {}\n", pages.first_page, pages.first_page + pages.pages - 1, state_text(pages.epoch),
              salvaged.parts[i]);
    }
    if (report.unsound.size() > rows_max) {
        print("  and {} more rows (--json has all)\n", report.unsound.size() - rows_max);
    }
    for (const UnsoundHandle& handle : salvaged.handles) {
        for (const UnsoundBytes& bytes : handle.bytes) {
            print("  handle \"{}\"  bytes {} to {} of {}  {}\n", printable(handle.handle), bytes.begin, bytes.end - 1, handle.size_bytes,
                  state_text(bytes.epoch));
        }
    }
    print_unproved(salvaged);
    for (const Failure& finding : salvaged.verified.damages) {
        print("  not proved: {}\n", printable(finding.text()));
    }
    if (salvaged.verified.damage_count > salvaged.verified.damages.size()) {
        print("  not proved: {} more\n", salvaged.verified.damage_count - salvaged.verified.damages.size());
    }
}

Result<Salvaged> make_of_pages(const SalvageArguments& arguments, std::string_view engine, const NewFile& file, bool progress)
{
    Salvaged salvaged;
    salvaged.engine = engine;
    if (auto copied = copy_file(arguments.path, file.first_name(), progress); !copied) {
        return pass_on(copied.error());
    }
    auto report = salvage_file(file.first_name());
    if (!report) {
        return pass_on(report.error());
    }
    salvaged.report = std::move(*report);
    if (auto seen = look_at(file.first_name(), arguments.path, progress, salvaged); !seen) {
        return pass_on(seen.error());
    }
    if (auto published = file.publish(); !published) {
        return pass_on(published.error());
    }
    return salvaged;
}

int salvage_pages(const SalvageArguments& arguments, std::string_view engine, const NewFile& file, bool progress)
{
    const auto salvaged = make_of_pages(arguments, engine, file, progress);
    if (!salvaged) {
        return report_failure(salvaged.error());
    }
    (arguments.json ? print_json : print_text)(arguments, *salvaged);
    if (salvaged->is_whole()) {
        return exit_codes::ok;
    }
    const SalvageReport& report = salvaged->report;
    return report_error(
        exit_codes::found,
        text_of("{}: {} pages are older, {} are lost{}, and a check finds {} more that is wrong: look at the "
                "list before a program uses it",
                arguments.new_path, report.pages_older, report.pages_lost,
                report.pages_unproved == 0 ? "" : text_of(", {} are not proved", report.pages_unproved), salvaged->verified.damage_count));
}

int salvage(const SalvageArguments& arguments, bool progress)
{
    const auto file = NewFile::at(arguments.new_path);
    if (!file) {
        return report_failure(file.error());
    }
    std::string_view engine;
    {
        const auto opened = open_pool_to_read(arguments.path, true);
        if (!opened) {
            return report_failure(opened.error());
        }
        if (opened->driver->salvage_objects != nullptr) {
            return salvage_objects(*opened, {arguments.path, arguments.new_path, arguments.json}, *file, progress);
        }
        engine = opened->driver->format.name;
        if (opened->driver->salvage == nullptr) {
            return report_failure(
                fail(SP_E_POOL_ENGINE, 0,
                     "{}: pools of the engine {} cannot be salvaged, since no checksum covers parts of the program's data; "
                     "restore a copy (stillpoint restore)",
                     arguments.path, engine)
                    .value());
        }
        if (!opened->driver->sums_program_bytes && !arguments.accept_unproved) {
            return report_failure(
                fail(SP_E_POOL_ENGINE, 0,
                     "{}: pools of the engine {} cannot be proved sound: checksums cover the tables of names alone, and none covers the "
                     "heap and the program's objects, which are stored to in place; restore a copy (stillpoint restore), or take them "
                     "as they are (stillpoint salvage --accept-unproved {} NEW)",
                     arguments.path, engine, arguments.path)
                    .value());
        }
    }
    return salvage_pages(arguments, engine, *file, progress);
}

}  // namespace

void add_salvage(CLI::App& app, Invocation& invocation)
{
    CommandLine line(app, invocation, "salvage", "Make a new pool of what a damaged one proves, and list the rest.");
    const auto arguments = std::make_shared<SalvageArguments>();
    line.positional("POOL", arguments->path, true, "Path of the pool file; it is only read.");
    line.positional("NEW", arguments->new_path, true, "Path of the new pool, which must not exist.");
    line.flag("--accept-unproved", arguments->accept_unproved,
              "Of an engine whose checksums do not cover the program's data: take these as the file has them, and list them.");
    line.json_flag(arguments->json, "Print one JSON object.");
    line.flag("-q,--quiet", arguments->quiet, "Print errors and results only: no progress.");
    line.footer(salvage_examples, salvage_exit_codes);
    line.on_use([arguments, &invocation] { return salvage(*arguments, !arguments->quiet && !invocation.quiet); });
}

}  // namespace stillpoint::tool
