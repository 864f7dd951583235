// `stillpoint dump`: the objects of a pool at rest; writes nothing.

#include <charconv>

#include "command.hpp"
#include "dump.hpp"
#include "typed_roots.hpp"

namespace stillpoint::tool {

namespace {

constexpr std::string_view dump_examples =
    "  stillpoint dump bank.pool                      handles, sizes, durable globals, the first bytes\n"
    "  stillpoint dump --program ./bank bank.pool     fields and values, by the program's debug information\n"
    "  stillpoint dump --program ./bank --type accounts=\"struct account\" --depth 5 bank.pool\n"
    "  stillpoint dump --json bank.pool | python3 -m json.tool\n";

constexpr std::string_view dump_exit_codes =
    "  0 printed; 64 wrong usage, or no such handle or type; 65 damaged, or not a pool; 66 no such file, or\n"
    "  the program has no debug information; 71 no memory; 74 input/output error; 75 a process has the pool\n"
    "  open (dump a copy of it: `stillpoint copy`); 77 no permission\n";

/// Takes a whole number into `value`.
template <class Value>
std::function<std::string(const std::string&)> whole_number(Value& value)
{
    return [&value](const std::string& text) -> std::string {
        std::uint64_t number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        value = number;
        return error == std::errc() && end == text.data() + text.size() ? "" : "\"" + text + "\" is not a whole number";
    };
}

int dump(const DumpArguments& arguments, bool quiet)
{
    const auto opened = open_pool_to_read(arguments.path, true);
    if (!opened) {
        return report_unopened(arguments.path, opened.error());
    }
    return opened->driver->show_objects != nullptr ? dump_objects(arguments, *opened) : dump_image(arguments, *opened, !quiet);
}

}  // namespace

void add_dump(CLI::App& app, Invocation& invocation)
{
    CommandLine line(app, invocation, "dump", "Print what lies in a pool that no program has open: handles, objects, fields.");
    const auto arguments = std::make_shared<DumpArguments>();
    line.positional("POOL", arguments->path, true, "Path of the pool file.");
    line.json_flag(arguments->json, "Print one JSON object.");
    add_type_options(line, arguments->program, arguments->types);
    line.text_option("--root", "OBJECT", arguments->root,
                     "Begin at this handle or durable global, or, where the pool knows types, at this object, by its number.");
    line.option("--limit", "NUMBER", whole_number(arguments->limit),
                "Print so many elements of an array at most, default 20; of objects, where the pool knows types: 1000. 0: all.");
    line.option("--depth", "NUMBER", whole_number(arguments->depth),
                "Follow so many pointers at most. Default 3; where the pool knows types: all.");
    line.option("--bytes", "NUMBER", whole_number(arguments->bytes),
                "Print so many bytes at most of an object without a type. Default 64.");
    line.footer(dump_examples, dump_exit_codes);
    line.on_use([arguments, &invocation] { return dump(*arguments, invocation.quiet); });
}

}  // namespace stillpoint::tool
