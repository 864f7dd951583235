// `stillpoint diff`: what has changed from one pool to another, both at rest; writes nothing.

#include <charconv>
#include <optional>

#include "command.hpp"
#include "json.hpp"
#include "object_difference.hpp"
#include "pool_difference.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view diff_examples =
    "  stillpoint copy bank.pool before.pool; ./bank; stillpoint diff before.pool bank.pool\n"
    "  stillpoint diff --program ./bank before.pool bank.pool     fields, with their values before and after\n"
    "  stillpoint diff --json before.pool bank.pool | python3 -m json.tool\n";

constexpr std::string_view diff_exit_codes =
    "  0 the same; 1 different; 64 wrong usage, or no such handle or type; 65 damaged, not a pool, or pools that\n"
    "  cannot be compared; 66 no such file, or the program has no debug information; 71 no memory; 74\n"
    "  input/output error; 75 a process has a pool open (compare a copy of it: `stillpoint copy`); 77 no\n"
    "  permission\n";

struct DiffArguments {
    std::string before;
    std::string after;
    bool json = false;
    std::string program;
    HandleTypes types;
    std::uint64_t limit = 20;
};

std::string_view word_of(Change change) { return change == Change::added ? "added" : change == Change::removed ? "removed" : "changed"; }

void print_change(const ObjectChange& change)
{
    const char sign = change.change == Change::added ? '+' : change.change == Change::removed ? '-' : ' ';
    print("{} {}{}{}{}  {} bytes at {:#x}", sign, change.kind, change.name.empty() ? "" : " " + printable(change.name),
          change.type.empty() ? "" : "  ", printable(change.type), change.size_bytes, change.address);
    print("{}{}\n", change.changed_bytes == 0 ? "" : text_of(": {} changed", change.changed_bytes),
          change.note.empty() ? "" : " (" + change.note + ")");
    for (const FieldChange& field : change.fields) {
        print("    {}: {} = {} -> {}\n", field.field.empty() ? "value" : printable(field.field), printable(field.type),
              printable(field.before), printable(field.after));
    }
    if (!change.fields.empty() || change.ranges.empty()) {
        return;
    }
    std::string ranges;
    for (const ByteRange& range : change.ranges) {
        ranges += (ranges.empty() ? "" : ", ") +
                  (range.bytes == 1 ? text_of("{}", range.offset) : text_of("{} to {}", range.offset, range.offset + range.bytes - 1));
    }
    print("    bytes {}{}\n", ranges, change.ranges_left_out == 0 ? "" : text_of(", and {} more ranges", change.ranges_left_out));
}

void print_text(const PoolDifference& difference)
{
    if (difference.other_addresses) {
        print("the pools have other base addresses: pointers differ for that alone\n");
    }
    for (const ObjectChange& change : difference.roots) {
        print_change(change);
    }
    for (const ObjectChange& change : difference.blocks) {
        print_change(change);
    }
    const std::uint64_t told = difference.blocks.size();
    const std::uint64_t all = difference.blocks_added + difference.blocks_removed + difference.blocks_changed;
    if (all > told) {
        print("  ... {} more {}: raise --limit\n", all - told, difference.of_objects ? "objects" : "blocks");
    }
    if (difference.of_objects) {
        print(
            "root: {}; objects that it leads to: {} added, {} removed, {} changed; in all {} objects of {} bytes before, {} of {} after\n",
            difference.roots.empty() ? "the same" : "another one", difference.blocks_added, difference.blocks_removed,
            difference.blocks_changed, difference.before.blocks, difference.before.bytes, difference.after.blocks, difference.after.bytes);
        return;
    }
    print("handles and globals: {} differ; other blocks: {} added, {} removed, {} changed; in all {} blocks of {} bytes before, {} of {} "
          "after\n",
          difference.roots.size(), difference.blocks_added, difference.blocks_removed, difference.blocks_changed, difference.before.blocks,
          difference.before.bytes, difference.after.blocks, difference.after.bytes);
}

void add_change(Json& json, const ObjectChange& change)
{
    json.begin_object().text("change", word_of(change.change)).text("kind", change.kind);
    if (!change.name.empty()) {
        json.text("name", change.name);
    }
    if (!change.type.empty()) {
        json.text("type", change.type);
    }
    json.text("address", text_of("{:#x}", change.address)).number("size_bytes", change.size_bytes);
    if (!change.note.empty()) {
        json.text("note", change.note);
    }
    json.number("changed_bytes", change.changed_bytes).begin_array("ranges");
    for (const ByteRange& range : change.ranges) {
        json.begin_object().number("offset", range.offset).number("size_bytes", range.bytes).end_object();
    }
    json.end_array().number("ranges_left_out", change.ranges_left_out).begin_array("fields");
    for (const FieldChange& field : change.fields) {
        json.begin_object()
            .text("field", field.field)
            .text("type", field.type)
            .number("offset", field.offset)
            .text("before", field.before)
            .text("after", field.after)
            .end_object();
    }
    json.end_array().end_object();
}

void add_heap(Json& json, std::string_view key, const std::string& pool, const HeapFigures& heap)
{
    json.begin_object(key).text("pool", pool).number("live_blocks", heap.blocks).number("live_bytes", heap.bytes).end_object();
}

void answer_json(const DiffArguments& arguments, const PoolDifference& difference)
{
    Json json;
    json.begin_object().boolean("same", difference.is_same()).boolean("other_addresses", difference.other_addresses);
    add_heap(json, "before", arguments.before, difference.before);
    add_heap(json, "after", arguments.after, difference.after);
    json.begin_array("roots");
    for (const ObjectChange& change : difference.roots) {
        add_change(json, change);
    }
    json.end_array().begin_array("blocks");
    for (const ObjectChange& change : difference.blocks) {
        add_change(json, change);
    }
    answer(std::move(json.end_array()
                         .number("blocks_added", difference.blocks_added)
                         .number("blocks_removed", difference.blocks_removed)
                         .number("blocks_changed", difference.blocks_changed)));
}

int report(const DiffArguments& arguments, const PoolDifference& difference)
{
    if (arguments.json) {
        answer_json(arguments, difference);
    } else if (!difference.is_same()) {
        print_text(difference);
    }
    return difference.is_same() ? exit_codes::ok : exit_codes::found;
}

/// The first damage or failure of the two; nullptr: both are sound.
const Failure* damage_of(const std::optional<Result<Verification>>& verified)
{
    if (!verified) {
        return nullptr;
    }
    return !*verified ? &verified->error() : (*verified)->damage_count != 0 ? &(*verified)->damages.front() : nullptr;
}

int diff_objects(const DiffArguments& arguments, const OpenedPool& before, const OpenedPool& after, std::size_t limit)
{
    if (before.driver != after.driver) {
        return report_error(exit_codes::data_error,
                            text_of("{} is a pool of the engine {}, and {} one of {}: they have nothing that can be compared",
                                    arguments.before, before.driver->format.name, arguments.after, after.driver->format.name));
    }
    if (!arguments.program.empty() || !arguments.types.empty()) {
        return report_error(
            exit_codes::usage,
            text_of("--program and --type are for pools with handles; {} describes the types of its objects", arguments.before));
    }
    const auto difference = difference_of_objects(before, after, limit);
    return difference ? report(arguments, *difference) : report_failure(difference.error());
}

int diff(const DiffArguments& arguments, bool progress)
{
    const auto before = open_pool_to_read(arguments.before, true);
    if (!before) {
        return report_unopened(arguments.before, before.error());
    }
    const auto after = open_pool_to_read(arguments.after, true);
    if (!after) {
        return report_unopened(arguments.after, after.error());
    }
    const std::size_t limit = arguments.limit == 0 ? SIZE_MAX : arguments.limit;
    if (before->driver->show_objects != nullptr || after->driver->show_objects != nullptr) {
        return diff_objects(arguments, *before, *after, limit);
    }
    const auto program = open_program(arguments.program, arguments.types);
    if (!program) {
        return report_error(program.error());
    }
    tl::expected<PoolDifference, ProgramError> found;
    std::optional<Result<Verification>> of_after;
    const std::optional<Result<Verification>> of_before = visit_pool_image(*before, progress, [&](const PoolImage& old_image) {
        of_after = visit_pool_image(*after, progress, [&](const PoolImage& new_image) {
            found = difference_of(old_image, new_image, program->get(), arguments.types, limit);
        });
    });
    for (const auto* const one : {&of_before, static_cast<const std::optional<Result<Verification>>*>(&of_after)}) {
        if (const Failure* const failure = damage_of(*one)) {
            return report_failure(*failure);
        }
    }
    return found ? report(arguments, *found) : report_error(found.error());
}

}  // namespace

void add_diff(CLI::App& app, Invocation& invocation)
{
    CommandLine line(app, invocation, "diff", "Tell what has changed from one pool to another, which no program has open.");
    const auto arguments = std::make_shared<DiffArguments>();
    line.positional("A", arguments->before, true, "The pool as it was: a copy.");
    line.positional("B", arguments->after, true, "The pool as it is.");
    line.json_flag(arguments->json, "Print one JSON object.");
    add_type_options(line, arguments->program, arguments->types);
    const auto take = [arguments](const std::string& text) -> std::string {
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), arguments->limit);
        return error == std::errc() && end == text.data() + text.size() ? "" : "\"" + text + "\" is not a whole number";
    };
    line.option("--limit", "NUMBER", take, "Tell of so many blocks at most, and of so many fields or ranges of each. Default 20; 0: all.");
    line.footer(diff_examples, diff_exit_codes);
    line.on_use([arguments, &invocation] { return diff(*arguments, !invocation.quiet); });
}

}  // namespace stillpoint::tool
