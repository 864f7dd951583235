// `stillpoint info`: what a pool is, without opening it for writing.

#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/registry.hpp"
#include "command.hpp"
#include "increment.hpp"
#include "json.hpp"
#include "media/open.hpp"
#include "media/replica/replica_record.hpp"
#include "pool_access.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view info_examples =
    "  stillpoint info bank.pool\n"
    "  stillpoint info --handles bank.pool            the named objects too (reads the whole pool)\n"
    "  stillpoint info --objects jobs.pool            durable objects, their logs, what replaying them takes\n"
    "  stillpoint info --json bank.pool | python3 -m json.tool\n";

constexpr std::string_view info_exit_codes = "  0 printed; 64 wrong usage; 65 not a sound pool; 66 no such file; 71 no memory;\n"
                                             "  74 input/output error; 75 in use (--handles, --objects only); 77 no permission\n";

struct InfoArguments {
    std::string path;
    bool handles = false;
    bool json = false;
    std::map<const EngineFacts*, bool> facts;  ///< of every engine that shows some: whether they are asked for

    [[nodiscard]] std::vector<const EngineFacts*> asked_facts() const
    {
        std::vector<const EngineFacts*> asked;
        for (const auto& [table, is_asked] : facts) {
            if (is_asked) {
                asked.push_back(table);
            }
        }
        return asked;
    }
    [[nodiscard]] bool reads_all() const { return handles || !asked_facts().empty(); }
};

struct Findings {
    const PoolFacts& facts;
    RecoveryReport recovery;
    std::size_t segments;
    int holder_pid;
    std::vector<HandleFacts> handles;
    std::string data_layout;
    const EngineFacts* shown;   ///< what the pool's engine shows
    std::vector<FactRow> rows;  ///< of that
    Result<std::optional<ReplicaRecord>> replica;
    std::uint64_t last_writer;  ///< of a pool in Ceph
};

std::string_view durability_text(Durability durability) { return durability == Durability::power ? "power" : "process"; }

/// The level is what an experiment emulates: no file in memory survives the machine.
bool is_emulated(const InfoArguments& arguments, const PoolFacts& facts)
{
    return facts.durability == Durability::power && lies_in_memory(arguments.path);
}

/// How the last run ended, as far as the file tells.
std::string state_text(const Findings& found)
{
    if (found.holder_pid > 0) {
        return text_of("open by process {}", found.holder_pid);
    }
    if (found.recovery.epoch == 0) {
        return "empty: no epoch is durable yet";
    }
    return found.recovery.clean ? "closed normally" : "crashed; the next run recovers the durable epoch";
}

/// Texts are aligned to the left, numbers to the right.
std::string cell_text(const FactColumn& column, const std::string& text)
{
    return column.kind == FactKind::text ? text_of(" {:<{}}", text, column.width) : text_of(" {:>{}}", text, column.width);
}

std::string value_text(const FactColumn& column, const KeptFact& fact)
{
    if (column.kind == FactKind::text || !fact.text.empty()) {
        return printable(fact.text);
    }
    switch (column.kind) {
    case FactKind::bytes: return size_text(fact.number);
    case FactKind::nanoseconds: return text_of("{:.1f} ms", static_cast<double>(fact.number) / 1e6);
    default: return std::to_string(fact.number);
    }
}

/// None for a table that only other engines show.
std::span<const FactRow> rows_of(const EngineFacts& facts, const Findings& found)
{
    return found.shown == &facts ? std::span<const FactRow>(found.rows) : std::span<const FactRow>();
}

void print_facts(const EngineFacts& facts, const Findings& found)
{
    const auto rows = rows_of(facts, found);
    print("{:<16} {}\n", facts.name, rows.size());
    if (rows.empty()) {
        return;
    }
    std::string line = " ";
    for (const FactColumn& column : facts.columns) {
        line += column.heading.empty() ? "" : cell_text(column, std::string(column.heading));
    }
    print("{}\n", line);
    for (const FactRow& row : rows) {
        line = " ";
        for (std::size_t i = 0; i < row.size(); ++i) {
            const FactColumn& column = facts.columns[i];
            line += column.heading.empty() ? "" : cell_text(column, value_text(column, row[i]));
        }
        print("{}\n", line);
    }
}

std::string_view replica_state_word(ReplicaState state)
{
    return state == ReplicaState::equal ? "equal" : state == ReplicaState::differing ? "differing" : "ahead";
}

std::string_view replica_state_text(ReplicaState state)
{
    switch (state) {
    case ReplicaState::equal: return "it has the same bytes, if no other process has written it";
    case ReplicaState::differing: return "it has all that was acknowledged here";
    case ReplicaState::ahead: break;
    }
    return "it may lack epochs that were acknowledged here";
}

/// "sync", as the option replicate; "": an earlier version has not noted it.
std::string_view level_word(const ReplicaRecord& record)
{
    constexpr std::string_view words[] = {"", "async", "sync"};
    return record.level < std::size(words) ? words[record.level] : "";
}

std::string writer_text(std::uint64_t writer) { return writer == 0 ? "" : text_of("{:#018x}", writer); }

void print_replica(const InfoArguments& arguments, const Findings& found)
{
    if (lies_in_no_file(arguments.path)) {
        print("last writer      {}\n", found.last_writer == 0
                                           ? "a process that has this pool alone, or none"
                                           : writer_text(found.last_writer) + ", of a machine whose pool this is the replica of");
    }
    if (!found.replica) {
        print("replica          {}\n", found.replica.error().message);
    } else if (found.replica->has_value()) {
        const ReplicaRecord& record = **found.replica;
        const std::string_view level = level_word(record);
        print("replica          {}{}{}\n", printable(name_of_replica(record)), level.empty() ? "" : ", ", level);
        print("  state          {}\n", replica_state_text(record.state));
        print("  writer         {} here; generation {} of the pool was replicated last\n", writer_text(record.writer), record.generation);
    }
}

void print_text(const InfoArguments& arguments, const Findings& found)
{
    const PoolFacts& facts = found.facts;
    print("pool             {}\n", arguments.path);
    print("uuid             {}\n", to_text(facts.uuid));
    print("format           version {}, engine {} (layout {})\n", facts.format_version, printable(facts.engine_name),
          facts.engine_layout_version);
    print("durability       {}{}\n", durability_text(facts.durability),
          is_emulated(arguments, facts) ? " (emulated: the file lies in memory, which ends with the machine)" : "");
    print("state            {}\n", state_text(found));
    print("durable epoch    {}\n", found.recovery.epoch);
    print("opened           {} times, created {}\n", facts.generation, local_time_text(facts.created_unix_seconds));
    print("durable memory   {} now, {} at most, at address {:#x}\n", size_text(facts.image_bytes), size_text(facts.image_bytes_max),
          facts.base_address);
    print("file             {} in {} segment{}\n", size_text(facts.file_bytes), found.segments, found.segments == 1 ? "" : "s");
    print("pages            {} with a durable copy\n", found.recovery.pages_present);
    if (facts.superblock_damaged) {
        print("superblock       one of its two copies is damaged; the next run rewrites it\n");
    }
    print_replica(arguments, found);
    if (arguments.handles) {
        print("layout of data   {}\n", found.data_layout.empty() ? "none is stated" : found.data_layout);
        print("handles          {}\n", found.handles.size());
        for (const HandleFacts& handle : found.handles) {
            print("  {:#x}  {:>10}  {}\n", handle.address, size_text(handle.size_bytes), printable(handle.handle));
        }
    }
    if (!arguments.asked_facts().empty()) {
        print("snapshot         {}\n", size_text(found.recovery.pages_present * page_bytes));
    }
    for (const EngineFacts* const table : arguments.asked_facts()) {
        print_facts(*table, found);
    }
}

void add_facts(Json& json, const EngineFacts& facts, const Findings& found)
{
    json.begin_array(facts.name);
    for (const FactRow& row : rows_of(facts, found)) {
        json.begin_object();
        for (std::size_t i = 0; i < row.size(); ++i) {
            const FactColumn& column = facts.columns[i];
            column.kind == FactKind::text ? json.text(column.name, row[i].text) : json.number(column.name, row[i].number);
        }
        json.end_object();
    }
    json.end_array();
}

void add_replica(Json& json, const InfoArguments& arguments, const Findings& found)
{
    if (lies_in_no_file(arguments.path)) {
        json.text("last_writer", writer_text(found.last_writer));
    }
    if (!found.replica) {
        json.begin_object("replica").text("state", "unreadable").end_object();
    } else if (found.replica->has_value()) {
        const ReplicaRecord& record = **found.replica;
        json.begin_object("replica")
            .text("name", name_of_replica(record))
            .text("replicate", level_word(record))
            .text("state", replica_state_word(record.state))
            .text("writer", writer_text(record.writer))
            .number("generation", record.generation)
            .end_object();
    }
}

void print_json(const InfoArguments& arguments, const Findings& found)
{
    const PoolFacts& facts = found.facts;
    Json json;
    json.begin_object()
        .text("pool", arguments.path)
        .text("uuid", to_text(facts.uuid))
        .number("format_version", facts.format_version)
        .text("engine", facts.engine_name)
        .number("engine_layout_version", facts.engine_layout_version)
        .text("durability", durability_text(facts.durability))
        .boolean("durability_is_emulated", is_emulated(arguments, facts))
        .boolean("clean", found.recovery.clean)
        .number("open_by_pid", found.holder_pid)
        .number("durable_epoch", found.recovery.epoch)
        .number("generation", facts.generation)
        .number("created_unix_seconds", facts.created_unix_seconds)
        .number("image_bytes", facts.image_bytes)
        .number("image_bytes_max", facts.image_bytes_max)
        .number("base_address", facts.base_address)
        .number("file_bytes", facts.file_bytes)
        .number("segments", found.segments)
        .number("pages_present", found.recovery.pages_present)
        .boolean("superblock_damaged", facts.superblock_damaged);
    add_replica(json, arguments, found);
    if (arguments.handles) {
        json.text("data_layout", found.data_layout);
        json.begin_array("handles");
        for (const HandleFacts& handle : found.handles) {
            json.begin_object()
                .text("handle", handle.handle)
                .number("address", handle.address)
                .number("size_bytes", handle.size_bytes)
                .end_object();
        }
        json.end_array();
    }
    if (!arguments.asked_facts().empty()) {
        json.number("snapshot_bytes", found.recovery.pages_present * page_bytes);
    }
    for (const EngineFacts* const table : arguments.asked_facts()) {
        add_facts(json, *table, found);
    }
    answer(std::move(json));
}

int info(const InfoArguments& arguments, bool quiet)
{
    if (is_increment(arguments.path)) {
        return tell_of_increment(arguments.path, arguments.json);
    }
    // The facts may be read while a program runs; handles and objects only from a pool at rest.
    auto opened = open_pool_to_read(arguments.path, arguments.reads_all());
    if (!opened) {
        return report_failure(opened.error());
    }
    const auto recovery = opened->driver->inspect(opened->pool);
    if (!recovery) {
        return report_failure(recovery.error());
    }
    Findings found{opened->pool.facts(),  *recovery, opened->pool.segments().size(),          lock_holder_pid(arguments.path),    {}, {},
                   opened->driver->facts, {},        ReplicaRecordFile::read(arguments.path), opened->pool.medium().last_writer()};
    if (arguments.reads_all()) {
        auto verified = verify(*opened, !quiet, [&](const HandleFacts& handle) { found.handles.push_back(handle); });
        if (!verified) {
            return report_failure(verified.error());
        }
        found.rows = std::move(verified->facts);
        found.data_layout = std::move(verified->data_layout);
    }
    arguments.json ? print_json(arguments, found) : print_text(arguments, found);
    return exit_codes::ok;
}

}  // namespace

void add_info(CLI::App& app, Invocation& invocation)
{
    CommandLine line(app, invocation, "info", "Print the facts of a pool; it may be in use.");
    const auto arguments = std::make_shared<InfoArguments>();
    line.positional("POOL", arguments->path, true, "Path of the pool file.");
    line.flag("--handles", arguments->handles, "Also list the named objects and their sizes.");
    for (const EngineDriver& driver : engine_drivers()) {
        if (driver.facts != nullptr) {
            line.flag("--" + std::string(driver.facts->name), arguments->facts[driver.facts], std::string(driver.facts->sentence));
        }
    }
    line.json_flag(arguments->json, "Print one JSON object.");
    line.footer(info_examples, info_exit_codes);
    line.on_use([arguments, &invocation] { return info(*arguments, invocation.quiet); });
}

}  // namespace stillpoint::tool
