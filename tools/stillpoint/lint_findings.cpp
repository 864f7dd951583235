#include "lint_findings.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <filesystem>
#include <memory>
#include <string_view>

#include "api/registry.hpp"
#include "json.hpp"
#include "lint_kinds.hpp"
#include "lint_symbols.hpp"
#include "output.hpp"
#include "runtime/engine.hpp"

namespace stillpoint::tool {

namespace {

using lint::Kind;
using lint::ModuleAddress;
using lint::Place;
using lint::Report;
using lint::Target;

std::string module_of(const Report& report, const ModuleAddress& spot)
{
    return spot.module < report.module_count.load() && spot.module < lint::modules_max ? report.modules[spot.module].path : "";
}

bool is_named(Target target) { return target == Target::code || target == Target::data || target == Target::constant; }

/// Below these a stack shows how the C library begins a program or a thread.
bool is_outermost(const LintFrame& frame) { return frame.function == "main" || frame.function == "start_thread"; }

std::string base_name(std::string_view path) { return std::string(path.substr(path.rfind('/') + 1)); }

/// Places that are complete and were not withdrawn.
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

/// nullptr: those of FASEs.
const lint::EngineRules* rules_of(const Report& report)
{
    const EngineDriver* const engine = find_engine({report.engine, strnlen(report.engine, sizeof report.engine)});
    return engine == nullptr ? nullptr : &engine->lint;
}

bool is_about(const Report& report, const Place& place, lint::Detail detail)
{
    return words_for(place.kind, rules_of(report)).detail == detail;
}

void collect(const Report& report, const Place& place, LintSymbols& symbols)
{
    for (std::uint32_t index = 0; index < place.frame_count; ++index) {
        // A return address belongs to the instruction before it.
        symbols.want_code(module_of(report, place.frames[index]), place.frames[index].offset - 1);
    }
    if (is_about(report, place, lint::Detail::code)) {
        symbols.want_code(module_of(report, place.target_spot), place.target_spot.offset - 1);
    } else if (place.target == Target::code) {
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

void add_frames(const Report& report, const ModuleAddress& spot, const LintSymbols& symbols, std::vector<LintFrame>& frames)
{
    const std::string module = module_of(report, spot);
    const auto known = symbols.code(module, spot.offset - 1);
    for (const SourcePlace& one : known) {
        frames.push_back({one.function, one.file, one.line, module, spot.offset});
    }
    if (known.empty()) {
        frames.push_back({"", "", 0, module, spot.offset});
    }
}

/// Functions of an engine's headers stand for the program's line that calls them.
void leave_out_headers(std::vector<LintFrame>& stack)
{
    const auto is_of_header = [](const LintFrame& frame) {
        const auto engines = engine_drivers();
        return std::any_of(engines.begin(), engines.end(), [&frame](const EngineDriver& engine) {
            return !engine.lint.headers.empty() && frame.file.find(engine.lint.headers) != std::string::npos;
        });
    };
    const auto first = std::find_if_not(stack.begin(), stack.end(), is_of_header);
    if (first != stack.end()) {
        stack.erase(stack.begin(), first);
    }
}

std::vector<LintFrame> stack_of(const Report& report, const Place& place, const LintSymbols& symbols)
{
    std::vector<LintFrame> stack;
    for (std::uint32_t index = 0; index < place.frame_count; ++index) {
        if (!stack.empty() && is_outermost(stack.back())) {
            break;
        }
        add_frames(report, place.frames[index], symbols, stack);
    }
    leave_out_headers(stack);
    return stack;
}

std::string demangled(const std::string& symbol)
{
    const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, nullptr), &std::free);
    return name == nullptr ? symbol : name.get();
}

/// Facts beside the place: which code, which function.
std::string detail_of(const Report& report, const Place& place, const LintSymbols& symbols)
{
    if (is_about(report, place, lint::Detail::function)) {
        return demangled(std::string(place.name, strnlen(place.name, sizeof place.name)));
    }
    if (!is_about(report, place, lint::Detail::code)) {
        return {};
    }
    std::vector<LintFrame> reader;
    add_frames(report, place.target_spot, symbols, reader);
    leave_out_headers(reader);
    return text_of_frame(reader.front());
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

bool is_of_pointer(Kind kind) { return kind == Kind::pointer || kind == Kind::possible_pointer || kind == Kind::found_pointer; }

std::string text_of_details(const LintFinding& finding)
{
    std::string text;
    if (is_of_pointer(finding.kind)) {
        text += text_of("    at {:#x}: {:#x} points {}\n", finding.address, finding.value, finding.target);
    } else if (finding.address != 0) {
        text += text_of("    {} bytes at {:#x}, the first time\n", finding.size_bytes, finding.address);
    }
    if (finding.words->detail != lint::Detail::none) {
        text += text_of("    {} {}\n", finding.words->detail_headline, finding.detail);
    }
    const std::string_view remedy = finding.words->remedy;
    return text + (remedy.empty() ? "" : text_of("    {}\n", remedy));
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
        LintFinding finding{place->kind,
                            &words_for(place->kind, rules_of(report)),
                            place->count.load(),
                            place->address,
                            place->size,
                            place->block_offset,
                            place->value,
                            target_text(report, *place, symbols),
                            detail_of(report, *place, symbols),
                            stack_of(report, *place, symbols)};
        const auto same = std::find_if(findings.list.begin(), findings.list.end(),
                                       [&](const LintFinding& other) { return is_same_place(finding, other); });
        if (same != findings.list.end()) {
            same->count += finding.count;
        } else {
            findings.list.push_back(std::move(finding));
        }
    }
    std::sort(findings.list.begin(), findings.list.end(), [](const LintFinding& a, const LintFinding& b) {
        return a.kind != b.kind ? a.kind < b.kind : a.count != b.count ? a.count > b.count : text_of_place(a) < text_of_place(b);
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
    return frame.module.empty() ? text_of("{:#x}", frame.offset) : text_of("{}+{:#x}{}", base_name(frame.module), frame.offset, in);
}

std::string text_of_findings(const LintFindings& findings)
{
    std::string text;
    for (const LintFinding& finding : findings.list) {
        text += text_of("{:<40} {:>9}  {}\n", finding.words->headline, finding.count == 1 ? "once" : text_of("{} times", finding.count),
                        text_of_place(finding));
        text += text_of_details(finding);
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
        json.begin_object().text("kind", finding.words->in_json).number("count", finding.count);
        json.text("address", text_of("{:#x}", finding.address)).number("size_bytes", finding.size_bytes);
        if (is_of_pointer(finding.kind)) {
            json.text("value", text_of("{:#x}", finding.value)).text("target", finding.target);
        }
        if (finding.words->detail != lint::Detail::none) {
            json.text(finding.words->detail_in_json, finding.detail);
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
