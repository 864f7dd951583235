#include "compiler_clang.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <sys/stat.h>
#include <unistd.h>

#include "command_words.hpp"
#include "exit_codes.hpp"
#include "output.hpp"

namespace stillpoint::tool {

namespace {

template <class... Args>
tl::unexpected<Refusal> refuse(int exit_code, fmt::format_string<Args...> format, Args&&... args)
{
    return tl::unexpected(Refusal{exit_code, text_of(format, std::forward<Args>(args)...)});
}

/// The first line of `clang --version`.
std::string version_line(const std::string& clang)
{
    const std::string command = shell_text({clang, "--version"}) + " 2>&1";
    std::FILE* const output = popen(command.c_str(), "r");
    if (output == nullptr) {
        return {};
    }
    std::array<char, 512> line{};
    const bool is_there = std::fgets(line.data(), line.size(), output) != nullptr;
    while (std::fgetc(output) != EOF) {
    }
    pclose(output);
    std::string text = is_there ? line.data() : "";
    text.erase(text.find_last_not_of("\r\n") + 1);
    return text;
}

/// The major version in "Debian clang version 19.1.7 (3)"; 0 where this is no Clang.
int major_version(std::string_view line)
{
    constexpr std::string_view before = "clang version ";
    const std::size_t at = line.find(before);
    return at == std::string_view::npos ? 0 : std::atoi(std::string(line.substr(at + before.size())).c_str());
}

std::string versions_of(const std::vector<Plugin>& present)
{
    std::string list;
    for (const Plugin& plugin : present) {
        const std::string version = std::to_string(plugin.llvm_major);
        if (list.find(version) == std::string::npos) {
            list += list.empty() ? version : ", " + version;
        }
    }
    return list;
}

bool is_this_program(const std::string& path) { return resolved(path) == resolved("/proc/self/exe"); }

tl::expected<CompilerChoice, Refusal> choose_overridden(const char* variable, const std::string& name, bool is_for_cpp,
                                                        const std::vector<Plugin>& present)
{
    const auto program = find_program(name);
    if (!program) {
        return refuse(program.error().exit_code, "{}: {}", variable, program.error().message);
    }
    if (is_this_program(*program)) {
        return refuse(exit_codes::usage, "{} names stillpoint itself ({}): name a Clang", variable, *program);
    }
    const std::string line = version_line(*program);
    const int major = major_version(line);
    if (major == 0) {
        return refuse(exit_codes::unavailable, "{}: {} is not Clang; its --version says '{}'. The plugin works in Clang only", variable,
                      *program, line);
    }
    for (const Plugin& plugin : present) {
        if (plugin.llvm_major == major) {
            return CompilerChoice{*program, is_for_cpp, plugin};
        }
    }
    return refuse(exit_codes::unavailable,
                  "{}: {} is Clang {}, and a plugin works with its own version only: there is one for {}. Name a Clang of "
                  "that version, or build Stillpoint where the headers of LLVM {} are installed",
                  variable, *program, major, versions_of(present), major);
}

/// The path of a Clang of this version; empty if there is none.
std::string installed_clang(int major)
{
    for (const std::string& name : {text_of("clang-{}", major), text_of("/usr/lib/llvm-{}/bin/clang", major)}) {
        if (const auto program = find_program(name)) {
            return *program;
        }
    }
    const auto plain = find_program("clang");
    return plain && !is_this_program(*plain) && major_version(version_line(*plain)) == major ? *plain : std::string();
}

}  // namespace

tl::expected<CompilerChoice, Refusal> choose_clang(Language language)
{
    const std::vector<Plugin> present = plugins();
    if (present.empty()) {
        return refuse(exit_codes::unavailable,
                      "the compiler plugin (libstillpoint-nvhooks-19.so) is not beside {}: it is built where LLVM's headers "
                      "are. Install them (Debian: llvm-19-dev and clang-19), build again (make), and install again",
                      own_folder());
    }
    for (const char* variable : {"STILLPOINT_CLANGXX", "STILLPOINT_CLANG"}) {
        const bool is_for_cpp = std::string_view(variable) == "STILLPOINT_CLANGXX";
        const char* const name = std::getenv(variable);
        if (name != nullptr && *name != '\0' && (language == Language::cpp || !is_for_cpp)) {
            return choose_overridden(variable, name, is_for_cpp, present);
        }
    }
    for (const Plugin& plugin : present) {
        if (std::string clang = installed_clang(plugin.llvm_major); !clang.empty()) {
            return CompilerChoice{std::move(clang), false, plugin};
        }
    }
    return refuse(exit_codes::unavailable,
                  "no Clang {} is in PATH, which the plugin was built for: install it (Debian: clang-{}), or name one in "
                  "STILLPOINT_CLANG",
                  versions_of(present), present.front().llvm_major);
}

}  // namespace stillpoint::tool
