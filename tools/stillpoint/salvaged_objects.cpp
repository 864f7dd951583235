#include "salvaged_objects.hpp"

#include <algorithm>

#include "command.hpp"
#include "json.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::size_t rows_max = 100;

void print_json(const ObjectSalvageNames& names, std::string_view engine, const ObjectSalvage& report)
{
    Json json;
    json.begin_object().text("pool", names.path).text("new", names.new_path).text("engine", engine);
    json.boolean("whole", report.is_whole()).boolean("was_closed", report.was_closed).boolean("values_proved", false);
    json.number("objects_kept", report.objects_kept).number("bytes_kept", report.bytes_kept);
    json.boolean("root_lost", report.root_is_lost).number("root_before", report.root_before);
    json.number("holder", report.holder).number("held", report.held);
    json.begin_array("lost");
    for (const auto& lost : report.lost) {
        json.begin_object()
            .number("object_before", lost.place_before)
            .number("references", lost.references)
            .text("why", lost.why)
            .end_object();
    }
    json.end_array().begin_array("cleared");
    for (const auto& cleared : report.cleared) {
        json.begin_object().number("object_before", cleared.object_before).number("object", cleared.object).text("type", cleared.type);
        json.text("field", cleared.field).number("offset", cleared.offset).end_object();
    }
    json.end_array().begin_array("doubtful");
    for (const auto& doubtful : report.doubtful) {
        json.begin_object().number("object_before", doubtful.object_before).number("object", doubtful.object);
        json.text("type", doubtful.type).number("counted", doubtful.counted).number("pointers", doubtful.pointers).end_object();
    }
    json.end_array().number("findings_total", report.findings.size()).begin_array("findings");
    for (const std::string& finding : report.findings) {
        json.element(finding);
    }
    json.end_array();
    answer(std::move(json));
}

void print_rows_left(std::size_t rows)
{
    if (rows > rows_max) {
        print("  and {} more such rows (--json has all)\n", rows - rows_max);
    }
}

void print_rows(const ObjectSalvage& report)
{
    for (std::size_t i = 0; i < std::min(report.lost.size(), rows_max); ++i) {
        const auto& lost = report.lost[i];
        print("  lost: the object that lay at byte {}: {}; {} references led to it\n", lost.place_before, lost.why, lost.references);
    }
    print_rows_left(report.lost.size());
    for (std::size_t i = 0; i < std::min(report.cleared.size(), rows_max); ++i) {
        const auto& cleared = report.cleared[i];
        print("  null now: {} of the object at byte {} (before: {}), of type {}\n", printable(cleared.field), cleared.object,
              cleared.object_before, printable(cleared.type));
    }
    print_rows_left(report.cleared.size());
    for (std::size_t i = 0; i < std::min(report.doubtful.size(), rows_max); ++i) {
        const auto& doubtful = report.doubtful[i];
        print("  in doubt: references to the object at byte {} (before: {}), of type {}: its count said {}, and {} lead to it\n",
              doubtful.object, doubtful.object_before, printable(doubtful.type), doubtful.counted, doubtful.pointers);
    }
    print_rows_left(report.doubtful.size());
    for (const std::string& finding : report.findings) {
        print("  not proved: {}\n", printable(finding));
    }
}

void print_text(const ObjectSalvageNames& names, const ObjectSalvage& report)
{
    print("{}: made from {}: {} objects ({}) kept, {} lost, {} references null now, {} in doubt\n", names.new_path, names.path,
          report.objects_kept, size_text(report.bytes_kept), report.lost.size(), report.cleared.size(), report.doubtful.size());
    print("kept objects have the headers and pointers that are proved; no checksum covers their other bytes\n");
    if (report.root_is_lost) {
        print("the root is lost: the new pool has none, and a program takes it for a pool that was never used\n");
    }
    if (report.holder != 0) {
        print(
            "{} kept objects, and what they lead to, had lost what led to them: the object at byte {}, of type stillpoint_salvaged, holds "
            "them now (stillpoint dump --root {} {})\n",
            report.held, report.holder, report.holder, names.new_path);
    }
    print_rows(report);
}

}  // namespace

int salvage_objects(const OpenedPool& opened, const ObjectSalvageNames& names, const NewFile& file, bool progress)
{
    const ProgressLine line = progress_line(progress);
    const auto report = opened.driver->salvage_objects(opened.pool, {file.first_name(), 0}, line);
    erase(line);
    if (!report) {
        return report_failure(report.error());
    }
    if (auto published = file.publish(); !published) {
        return report_failure(published.error());
    }
    if (names.json) {
        print_json(names, opened.driver->format.name, *report);
    } else {
        print_text(names, *report);
    }
    if (report->is_whole()) {
        return exit_codes::ok;
    }
    return report_error(
        exit_codes::found,
        text_of("{}: {} objects are lost, {} references are null now{}: look at the list before a program uses it", names.new_path,
                report->lost.size(), report->cleared.size(), report->root_is_lost ? ", and the root is lost" : ""));
}

}  // namespace stillpoint::tool
