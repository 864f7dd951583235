#include "lint_findings.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "json.hpp"
#include "lint_symbols.hpp"
#include "output.hpp"

namespace stillpoint::tool {

namespace {

using lint::Kind;
using lint::Place;
using lint::Report;
using lint::Spot;
using lint::Target;

std::string module_of(const Report& report, const Spot& spot)
{
    return spot.module < report.module_count.load() && spot.module < lint::modules_max ? report.modules[spot.module].path : "";
}

bool is_named(Target target) { return target == Target::code || target == Target::data || target == Target::constant; }

/// Below these a stack shows how the C library begins a program or a thread.
bool is_outermost(const LintFrame& frame) { return frame.function == "main" || frame.function == "start_thread"; }

std::string base_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

/// Places that are complete and were not taken back.
std::vector<const Place*> places_in(const Report& report)
{
    std::vector<const Place*> places;
    for (const Place& place : report.places) {
        if (place.ready.load() == 1 && place.count.load() > 0 && place.frame_count <= lint::frames_max &&
            (place.frame_count > 0 || place.kind == Kind::found_pointer)) {
            places.push_back(&place);
        }
    }
    return places;
}

void collect(const Report& report, const Place& place, LintSymbols& symbols)
{
    for (std::uint32_t index = 0; index < place.frame_count; ++index) {
        // A return address belongs to the instruction before it.
        symbols.want_code(module_of(report, place.frames[index]), place.frames[index].offset - 1);
    }
    if (place.target == Target::code) {
        symbols.want_code(module_of(report, place.target_spot), place.target_spot.offset);
    } else if (is_named(place.target)) {
        symbols.want_data(module_of(report, place.target_spot), place.target_spot.offset);
    }
}

std::string target_text(const Report& report, const Place& place, const LintSymbols& symbols)
{
    const std::string module = module_of(report, place.target_spot);
    const std::uint64_t offset = place.target_spot.offset;
    const auto in_module = [&](std::string_view what, const std::string& name) {
        return name.empty() ? text_of("to {} of {}, at +{:#x}", what, base_name(module), offset)
                            : text_of("to {} of {}: {}", what, base_name(module), name);
    };
    switch (place.target) {
    case Target::none: return {};
    case Target::own_stack: return "to the stack of the thread that stored it";
    case Target::heap: return "to the heap (malloc)";
    case Target::anonymous: return "to volatile memory (malloc, mmap, or another thread's stack)";
    case Target::file: return "to a file that is mapped";
    case Target::unmapped: return "to nothing: no memory is mapped there";
    case Target::code: {
        const auto places = symbols.code(module, offset);
        return in_module("code", places.empty() ? "" : places.front().function);
    }
    case Target::data: return in_module("data", symbols.data(module, offset));
    case Target::constant: return in_module("constant data", symbols.data(module, offset));
    }
    return {};
}

std::vector<LintFrame> stack_of(const Report& report, const Place& place, const LintSymbols& symbols)
{
    std::vector<LintFrame> stack;
    for (std::uint32_t index = 0; index < place.frame_count; ++index) {
        const Spot& spot = place.frames[index];
        const std::string module = module_of(report, spot);
        if (!stack.empty() && is_outermost(stack.back())) {
            break;
        }
        const auto known = symbols.code(module, spot.offset - 1);
        for (const SourcePlace& one : known) {
            stack.push_back({one.function, one.file, one.line, module, spot.offset});
        }
        if (known.empty()) {
            stack.push_back({"", "", 0, module, spot.offset});
        }
    }
    return stack;
}

bool is_same_place(const LintFinding& a, const LintFinding& b)
{
    if (a.stack.empty() || b.stack.empty()) {
        return false;
    }
    const LintFrame& one = a.stack.front();
    const LintFrame& other = b.stack.front();
    return a.kind == b.kind && one.line > 0 && one.line == other.line && one.file == other.file && one.function == other.function;
}

std::string_view words_for(Kind kind)
{
    switch (kind) {
    case Kind::store: return "durable store outside a FASE";
    case Kind::pointer: return "pointer out of durable memory";
    case Kind::possible_pointer: return "possible pointer out of durable memory";
    case Kind::found_pointer: return "possible pointer, stored without a hook";
    }
    return "?";
}

std::string_view json_kind(Kind kind)
{
    switch (kind) {
    case Kind::store: return "store-outside-fase";
    case Kind::pointer: return "pointer-out";
    case Kind::possible_pointer: return "possible-pointer-out";
    case Kind::found_pointer: return "possible-pointer-found";
    }
    return "?";
}

void add_frame(Json& json, const LintFrame& frame)
{
    json.text("function", frame.function).text("file", frame.file).number("line", frame.line);
    json.text("module", frame.module).text("offset", text_of("{:#x}", frame.offset));
}

}  // namespace

LintFindings read_findings(const Report& report)
{
    LintFindings findings;
    findings.lost = report.lost.load();
    const std::vector<const Place*> places = places_in(report);
    LintSymbols symbols;
    for (const Place* place : places) {
        collect(report, *place, symbols);
    }
    symbols.resolve();
    for (const Place* place : places) {
        LintFinding finding{place->kind, place->count.load(), place->address, place->size, place->block_offset, place->value,
                            target_text(report, *place, symbols), stack_of(report, *place, symbols)};
        const auto same = std::find_if(findings.list.begin(), findings.list.end(),
                                       [&](const LintFinding& other) { return is_same_place(finding, other); });
        if (same != findings.list.end()) {
            same->count += finding.count;
        } else {
            findings.list.push_back(std::move(finding));
        }
    }
    std::sort(findings.list.begin(), findings.list.end(), [](const LintFinding& a, const LintFinding& b) {
        return a.kind != b.kind       ? a.kind < b.kind
               : a.count != b.count   ? a.count > b.count
                                      : text_of_place(a) < text_of_place(b);
    });
    return findings;
}

std::string text_of_place(const LintFinding& finding)
{
    return finding.stack.empty() ? text_of("block:{}+{}, found in memory at the end", finding.size_bytes, finding.block_offset)
                                 : text_of_frame(finding.stack.front());
}

std::string text_of_frame(const LintFrame& frame)
{
    const std::string in = frame.function.empty() ? "" : " in " + frame.function;
    if (frame.line > 0) {
        const std::string here = std::filesystem::path(frame.file).lexically_proximate(std::filesystem::current_path());
        return text_of("{}:{}{}", here.starts_with("..") ? frame.file : here, frame.line, in);
    }
    return frame.module.empty() ? text_of("{:#x}", frame.offset)
                                : text_of("{}+{:#x}{}", base_name(frame.module), frame.offset, in);
}

std::string text_of_findings(const LintFindings& findings)
{
    std::string text;
    for (const LintFinding& finding : findings.list) {
        text += text_of("{:<40} {:>9}  {}\n", words_for(finding.kind),
                        finding.count == 1 ? "once" : text_of("{} times", finding.count), text_of_place(finding));
        if (finding.kind == Kind::store) {
            text += text_of("    {} bytes at {:#x}, the first time\n", finding.size_bytes, finding.address);
        } else {
            text += text_of("    at {:#x}: {:#x} points {}\n", finding.address, finding.value, finding.target);
        }
        for (std::size_t index = 1; index < finding.stack.size(); ++index) {
            text += text_of("    called from {}\n", text_of_frame(finding.stack[index]));
        }
    }
    return text;
}

std::string json_of_findings(const LintFindings& findings, int exit_code, int signal)
{
    Json json;
    json.begin_object().begin_array("findings");
    for (const LintFinding& finding : findings.list) {
        json.begin_object().text("kind", json_kind(finding.kind)).number("count", finding.count);
        json.text("address", text_of("{:#x}", finding.address)).number("size_bytes", finding.size_bytes);
        if (finding.kind != Kind::store) {
            json.text("value", text_of("{:#x}", finding.value)).text("target", finding.target);
        }
        if (finding.kind == Kind::found_pointer) {
            json.number("block_offset", finding.block_offset);
        } else {
            add_frame(json, finding.stack.front());
        }
        json.begin_array("stack");
        for (const LintFrame& frame : finding.stack) {
            json.begin_object();
            add_frame(json, frame);
            json.end_object();
        }
        json.end_array().end_object();
    }
    json.end_array().number("suppressed", findings.suppressed).number("lost", findings.lost);
    json.begin_object("program").number("exit_code", exit_code).number("signal", signal).end_object();
    json.end_object();
    return json.str();
}

}  // namespace stillpoint::tool
