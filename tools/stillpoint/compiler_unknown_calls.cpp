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

std::vector<UnknownCall> unknown_calls_in(const std::string& output, const std::vector<std::string>& folders)
{
    const Program program(output, folders);
    std::map<std::string, UnknownCall> calls;  // by callee, and by text where there is none
    for (const bool is_irrevocable : {false, true}) {
        for (const std::string& entry : program.entries(is_irrevocable ? NVHOOKS_IRREVOCABLE_SECTION : NVHOOKS_UNKNOWN_CALLS_SECTION)) {
            const std::size_t place = entry.find('|');
            const std::size_t text = place == std::string::npos ? place : entry.find('|', place + 1);
            if (text == std::string::npos) {
                continue;
            }
            UnknownCall call{entry.substr(0, place), {}, entry.substr(text + 1), {}, is_irrevocable};
            if (!call.callee.empty() && (is_irrevocable ? program.has_clone(call.callee) : program.is_covered(call.callee, call.library))) {
                continue;
            }
            UnknownCall& kept = calls.try_emplace(call.callee.empty() ? call.text : call.callee, call).first->second;
            kept.places.push_back(entry.substr(place + 1, text - place - 1));
        }
    }
    std::vector<UnknownCall> sorted;
    for (auto& [name, call] : calls) {
        std::sort(call.places.begin(), call.places.end());
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
