#include "lint_symbols.hpp"

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "command_words.hpp"
#include "output.hpp"
#include "program.hpp"

namespace stillpoint::tool {

namespace {

using Lines = std::vector<std::string>;

/// Addresses in one command.
constexpr std::size_t batch = 400;

struct Symbolizer {
    std::string path;  ///< empty: there is none
    bool is_llvm = false;
};

/// STILLPOINT_SYMBOLIZER names another one, of either kind.
Symbolizer find_symbolizer()
{
    const char* const named = std::getenv("STILLPOINT_SYMBOLIZER");
    if (named != nullptr && *named != '\0') {
        const auto program = find_program(named);
        return {program ? *program : std::string(), program && program->find("symbolizer") != std::string::npos};
    }
    for (const char* name : {"llvm-symbolizer-19", "/usr/lib/llvm-19/bin/llvm-symbolizer", "llvm-symbolizer"}) {
        if (const auto program = find_program(name)) {
            return {*program, true};
        }
    }
    const auto program = find_program("addr2line");
    return {program ? *program : std::string(), false};
}

Lines output_of(const std::vector<std::string>& words)
{
    Lines lines;
    std::FILE* const output = popen((shell_text(words) + " 2>/dev/null").c_str(), "r");
    if (output == nullptr) {
        return lines;
    }
    char* line = nullptr;
    std::size_t capacity = 0;
    while (getline(&line, &capacity, output) > 0) {
        lines.emplace_back(line);
        lines.back().erase(lines.back().find_last_not_of('\n') + 1);
    }
    std::free(line);
    pclose(output);
    return lines;
}

/// "file.c:12" or "file.c:12 (discriminator 3)"; unknown parts are question marks.
void take_location(std::string_view text, SourcePlace& place)
{
    const std::size_t colon = text.rfind(':', text.find(" (discriminator"));
    if (colon == std::string_view::npos || text.starts_with("??")) {
        return;
    }
    place.line = std::atoi(std::string(text.substr(colon + 1)).c_str());
    if (place.line > 0) {
        place.file = text.substr(0, colon);
    }
}

/// The format of addr2line -a -f -i: the address; then for each function its name and its line.
void take_code(const Lines& lines, std::map<std::uint64_t, std::vector<SourcePlace>>& places)
{
    std::vector<SourcePlace>* current = nullptr;
    for (std::size_t at = 0; at < lines.size(); ++at) {
        if (lines[at].starts_with("0x")) {
            const auto found = places.find(std::strtoull(lines[at].c_str(), nullptr, 16));
            current = found == places.end() ? nullptr : &found->second;
        } else if (current != nullptr && at + 1 < lines.size()) {
            SourcePlace place;
            place.function = lines[at] == "??" ? "" : lines[at];
            // Copies that the pass keeps apart from other objects' have a name of their own.
            constexpr std::string_view suffix = ".nvhooks";
            if (place.function.ends_with(suffix)) {
                place.function.resize(place.function.size() - suffix.size());
            }
            take_location(lines[++at], place);
            if (!place.function.empty() || place.line > 0) {
                current->push_back(std::move(place));
            }
        }
    }
}

std::string hexadecimal(std::uint64_t number) { return text_of("{:#x}", number); }

}  // namespace

void LintSymbols::resolve()
{
    const Symbolizer symbolizer = find_symbolizer();
    if (symbolizer.path.empty()) {
        return;
    }
    for (auto& [module, places] : code_) {
        for (auto next = places.begin(); next != places.end();) {
            std::vector<std::string> words = {symbolizer.path, "-e", module, "-f", "-C", "-i", "-a"};
            if (symbolizer.is_llvm) {
                words.emplace_back("--output-style=GNU");
            }
            for (std::size_t count = 0; count < batch && next != places.end(); ++count, ++next) {
                words.push_back(hexadecimal(next->first));
            }
            take_code(output_of(words), places);
        }
    }
    if (!symbolizer.is_llvm) {
        return;  // addr2line knows no variables
    }
    for (auto& [module, names] : data_) {
        for (auto& [offset, name] : names) {
            const Lines lines = output_of({symbolizer.path, "-e", module, "DATA " + hexadecimal(offset)});
            name = lines.empty() || lines.front() == "??" ? "" : lines.front();
        }
    }
}

std::vector<SourcePlace> LintSymbols::code(const std::string& module, std::uint64_t offset) const
{
    const auto places = code_.find(module);
    if (places == code_.end()) {
        return {};
    }
    const auto found = places->second.find(offset);
    return found == places->second.end() ? std::vector<SourcePlace>() : found->second;
}

std::string LintSymbols::data(const std::string& module, std::uint64_t offset) const
{
    const auto names = data_.find(module);
    if (names == data_.end()) {
        return {};
    }
    const auto found = names->second.find(offset);
    return found == names->second.end() ? std::string() : found->second;
}

}  // namespace stillpoint::tool
