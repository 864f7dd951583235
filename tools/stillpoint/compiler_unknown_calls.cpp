#include "compiler_unknown_calls.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <unistd.h>
#include <unordered_set>

#include "arch/checksum.hpp"
#include "elf_file.hpp"
#include "installation.hpp"
#include "nvhooks/abi/nvhooks_abi.h"
#include "output.hpp"

namespace stillpoint::tool {

namespace {

/// So many are printed, each with one of its places: the rest is counted.
constexpr std::size_t printed_max = 30;

std::vector<std::string> strings_of(const std::string& bytes)
{
    std::vector<std::string> strings;
    for (std::size_t at = 0; at < bytes.size(); at += strings.back().size() + 1) {
        strings.emplace_back(bytes.c_str() + at);
    }
    return strings;
}

/// Functions with hooks that instrumented units of a file define.
class HookedFunctions {
public:
    explicit HookedFunctions(const ElfFile& file)
    {
        const std::string bytes = file.contents(NVHOOKS_FUNCTIONS_SECTION);
        for (std::size_t at = 0; at + sizeof(std::uint64_t) <= bytes.size(); at += sizeof(std::uint64_t)) {
            std::uint64_t hash = 0;
            std::memcpy(&hash, bytes.data() + at, sizeof hash);
            hashes_.insert(hash);
        }
    }
    [[nodiscard]] bool has(const std::string& function) const { return hashes_.contains(XXH3_64bits(function.data(), function.size())); }

private:
    std::unordered_set<std::uint64_t> hashes_;
};

struct Library {
    std::string name;
    std::unordered_set<std::string> functions;
    HookedFunctions hooked;
};

std::string find_library(const std::string& name, const std::vector<std::string>& folders)
{
    for (const std::string& folder : folders) {
        std::string path = folder + "/" + name;
        if (access(path.c_str(), R_OK) == 0) {
            return path;
        }
    }
    return {};
}

/// The libraries that the file needs, as far as they are found. Those that they need in turn are not asked: a linker does not
/// resolve through them either.
std::vector<Library> libraries_of(const ElfFile& file, std::vector<std::string> folders)
{
    for (const char* folder : {"/usr/local/lib", "/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                               "/lib/aarch64-linux-gnu", "/usr/lib64", "/lib64", "/usr/lib", "/lib"}) {
        folders.emplace_back(folder);
    }
    std::vector<Library> libraries;
    for (const std::string& name : file.dynamic_strings(DT_NEEDED)) {
        const std::string path = find_library(name, folders);
        if (!path.empty()) {
            const ElfFile library(path);
            const auto symbols = library.defined_symbols(".dynsym");
            libraries.push_back({name, {symbols.begin(), symbols.end()}, HookedFunctions(library)});
        }
    }
    return libraries;
}

/// Where a file's calls go.
class Program {
public:
    Program(const std::string& path, const std::vector<std::string>& folders)
        : file_(path), hooked_(file_), libraries_(libraries_of(file_, folders))
    {
        for (const char* table : {".symtab", ".dynsym"}) {
            for (std::string& symbol : file_.defined_symbols(table)) {
                own_.insert(std::move(symbol));
            }
        }
    }

    /// Whether the program has the clone of a function, or gets it from a library.
    [[nodiscard]] bool has_clone(const std::string& clone) const
    {
        return own_.contains(clone) || hooked_.has(clone) ||
               std::any_of(libraries_.begin(), libraries_.end(), [&](const Library& library) { return library.functions.contains(clone); });
    }
    /// Whether the callee has hooks, or marks by itself what it writes. If not, `library` is the library that defines it.
    [[nodiscard]] bool is_covered(const std::string& callee, std::string& library) const
    {
        if (hooked_.has(callee)) {
            return true;
        }
        if (own_.contains(callee)) {
            return false;
        }
        for (const Library& one : libraries_) {
            if (one.functions.contains(callee)) {
                library = one.name;
                return one.hooked.has(callee) || one.name.starts_with(library_name);
            }
        }
        // A shared library may leave it to the program; a program without its symbols has it inside.
        return is_shared();
    }
    [[nodiscard]] std::vector<std::string> entries(const char* section) const { return strings_of(file_.contents(section)); }

private:
    [[nodiscard]] bool is_shared() const { return file_.section(".interp").sh_size == 0; }

    ElfFile file_;
    HookedFunctions hooked_;
    std::vector<Library> libraries_;
    std::unordered_set<std::string> own_;
};

}  // namespace

namespace {

/// The parts of an entry between its bars; empty: it has not as many.
std::vector<std::string> parts_of(const std::string& entry, std::size_t count)
{
    std::vector<std::string> parts;
    std::size_t at = 0;
    while (parts.size() + 1 < count) {
        const std::size_t bar = entry.find('|', at);
        if (bar == std::string::npos) {
            return {};
        }
        parts.push_back(entry.substr(at, bar - at));
        at = bar + 1;
    }
    parts.push_back(entry.substr(at));
    return parts;
}

using Calls = std::map<std::string, UnknownCall>;  // by callee, and by text where there is none

void add(Calls& calls, UnknownCall call, const std::string& place)
{
    const std::string key = call.callee.empty() ? call.text : call.callee;
    calls.try_emplace(key, std::move(call)).first->second.places.push_back(place);
}

void add_unknown(const Program& program, Calls& calls)
{
    for (const std::string& entry : program.entries(NVHOOKS_UNKNOWN_CALLS_SECTION)) {
        const auto parts = parts_of(entry, 3);
        if (parts.empty()) {
            continue;
        }
        UnknownCall call{parts[0], {}, parts[2], {}};
        if (call.callee.empty() || !program.is_covered(call.callee, call.library)) {
            add(calls, std::move(call), parts[1]);
        }
    }
}

/// Adds the places that make transactions irrevocable, in the functions that bodies reach by direct calls, in any unit.
void add_irrevocable(const Program& program, Calls& calls)
{
    std::map<std::string, std::vector<std::string>> callees;
    std::vector<std::vector<std::string>> places;
    for (const std::string& entry : program.entries(NVHOOKS_IRREVOCABLE_SECTION)) {
        auto parts = parts_of(entry, 4);
        if (!parts.empty() && parts[3].empty()) {
            callees[parts[0]].push_back(parts[1]);
        } else if (!parts.empty()) {
            places.push_back(std::move(parts));
        }
    }
    std::set<std::string> reached;
    std::vector<std::string> open = {""};
    while (!open.empty()) {
        const std::string within = std::move(open.back());
        open.pop_back();
        for (const std::string& callee : callees[within]) {
            if (reached.insert(callee).second) {
                open.push_back(callee);
            }
        }
    }
    for (const auto& parts : places) {
        if (reached.contains(parts[0]) && (parts[1].empty() || !program.has_clone(parts[1]))) {
            add(calls, {parts[1], {}, parts[3], {}, true}, parts[2]);
        }
    }
}

}  // namespace

std::vector<UnknownCall> unknown_calls_in(const std::string& output, const std::vector<std::string>& folders)
{
    const Program program(output, folders);
    Calls calls;
    add_unknown(program, calls);
    add_irrevocable(program, calls);
    std::vector<UnknownCall> sorted;
    for (auto& [name, call] : calls) {
        std::sort(call.places.begin(), call.places.end());
        call.places.erase(std::unique(call.places.begin(), call.places.end()), call.places.end());
        sorted.push_back(std::move(call));
    }
    return sorted;
}

std::string text_of_unknown_calls(const std::vector<UnknownCall>& calls, bool as_errors)
{
    std::string text;
    for (std::size_t at = 0; at < std::min(calls.size(), printed_max); ++at) {
        const UnknownCall& call = calls[at];
        text += text_of("{}: {}: {}{}{} [-Wstillpoint-unknown-call]\n", call.places.front(), as_errors ? "error" : "warning", call.text,
                        call.library.empty() ? "" : text_of(" ({})", call.library),
                        call.places.size() > 1 ? text_of("; called so at {} places", call.places.size()) : "");
    }
    if (calls.size() > printed_max) {
        text += text_of("stillpoint: and {} more functions\n", calls.size() - printed_max);
    }
    if (std::any_of(calls.begin(), calls.end(), [](const UnknownCall& call) { return call.is_irrevocable; })) {
        text +=
            "stillpoint: an irrevocable transaction runs alone, and cannot be rolled back. For each function: compile it with `stillpoint cc`,\n"
            "  call it after the transaction (sp_tm_on_commit), or declare it SP_TM_PURE if it touches no memory that other threads write\n"
            "  (<stillpoint/itm.h>). -Wno-stillpoint-unknown-call silences this.\n";
    }
    if (std::any_of(calls.begin(), calls.end(), [](const UnknownCall& call) { return !call.is_irrevocable; })) {
        text +=
            "stillpoint: with the tracker hooks, what these functions write in durable memory is lost in a crash. For each: describe it\n"
            "  (nvm_write, nvm_harmless of <stillpoint/nvhooks.h>, or a layer's file of descriptions), compile it with `stillpoint cc`,\n"
            "  or call sp_mark_written() after it. -Wno-stillpoint-unknown-call silences this.\n";
    }
    return text;
}

}  // namespace stillpoint::tool
