#include "compiler_arguments.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "output.hpp"
#include "response_file.hpp"

namespace stillpoint::tool {

namespace {

using Words = std::vector<std::string>;

/// As deep as response files may name each other: one that names itself ends there.
constexpr int response_files_max = 20;

/// With one of these there is no link, or (-r) one that makes no program.
// clang-format off
constexpr std::array<std::string_view, 24> without_link = {
    "-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", "-emit-ast", "--analyze", "--precompile", "-emit-pch",
    "-emit-module", "-verify-pch", "-rewrite-objc", "-extract-api", "-fmodule-header", "--compile", "--assemble",
    "--preprocess", "--dependencies", "--user-dependencies", "-r", "-Wl,-r", "-Wl,--relocatable", "-fdriver-only"};
// clang-format on

/// Options whose value is the next word. Where one is missing here its value looks like an input file, which
/// matters only on command lines that have no input at all.
// clang-format off
constexpr std::array<std::string_view, 71> with_value = {
    "-o", "-x", "-I", "-D", "-U", "-L", "-B", "-F", "-T", "-u", "-z", "-e", "-A", "-G", "-V", "-b",
    "-MF", "-MT", "-MQ", "-MJ", "-include", "-imacros", "-include-pch", "-idirafter", "-iframework", "-iprefix",
    "-iquote", "-isysroot", "-isystem", "-isystem-after", "-ivfsoverlay", "-iwithprefix", "-iwithprefixbefore",
    "-iwithsysroot", "-cxx-isystem", "-c-isystem", "-Xclang", "-Xlinker", "-Xassembler", "-Xpreprocessor",
    "-Xanalyzer", "-Xopenmp-target", "-Xoffload-linker", "-mllvm", "-mmlir", "-arch", "-target", "--param",
    "--sysroot", "--config", "-resource-dir", "-rpath", "-serialize-diagnostics", "--serialize-diagnostics",
    "-working-directory", "-dumpdir", "-framework", "-Tdata", "-Ttext", "-Tbss", "-aux-info", "-specs", "-wrapper",
    "-ftrapv-handler", "--output", "--include-directory", "--define-macro", "--undefine-macro", "--language",
    "--library-directory", "--for-linker"};
// clang-format on

template <std::size_t size>
bool is_one_of(const std::array<std::string_view, size>& list, std::string_view word)
{
    return std::find(list.begin(), list.end(), word) != list.end();
}

/// Whether a word is the wrapper's own; if so it is taken in. `next` is the word after it, if there is one;
/// `used` becomes 2 where that is the option's value.
bool take_own(const std::string& word, const std::string* next, CompilerArguments& arguments, std::size_t& used)
{
    constexpr std::string_view runtime = "--runtime=";
    if (word.starts_with(runtime) || word == "--runtime") {
        const bool separate = word == "--runtime";
        arguments.runtime = !separate ? word.substr(runtime.size()) : next != nullptr ? *next : "";
        used = separate && next != nullptr ? 2 : 1;
        if (arguments.runtime.empty()) {
            arguments.error = "--runtime names no layer: --runtime=NAME, or --runtime=FOLDER/layer.yaml";
        }
    } else if (word == "--lint") {
        arguments.linted_runtime = arguments.runtime;
        arguments.runtime = "lint";
    } else if (word == "-Wstillpoint-unknown-call" || word == "-Wno-error=stillpoint-unknown-call") {
        arguments.unknown_call = "warn";
    } else if (word == "-Wno-stillpoint-unknown-call") {
        arguments.unknown_call = "off";
    } else if (word == "-Werror=stillpoint-unknown-call") {
        arguments.unknown_call = "error";
    } else if (word == "--stillpoint-show") {
        arguments.show = true;
    } else if (word == "--stillpoint-files") {
        arguments.list_files = true;
    } else if (word == "--stillpoint-help") {
        arguments.help = true;
    } else if (word.starts_with("--stillpoint-") || word.find("stillpoint-unknown-call") != std::string::npos) {
        arguments.error = text_of("unknown option {} (see --stillpoint-help)", word);
    } else {
        return false;
    }
    return true;
}

/// The words with every response file in their place.
Words expanded(const Words& words, int depth)
{
    Words all;
    for (const std::string& word : words) {
        const bool is_file = word.size() > 1 && word.front() == '@' && depth < response_files_max;
        const auto inner = is_file ? words_of_response_file(word.substr(1)) : std::nullopt;
        if (!inner) {
            all.push_back(word);
            continue;
        }
        const Words inside = expanded(*inner, depth + 1);
        all.insert(all.end(), inside.begin(), inside.end());
    }
    return all;
}

/// Takes the own options out of `words`.
void take_own_options(Words& words, CompilerArguments& arguments)
{
    Words others;
    for (std::size_t at = 0; at < words.size();) {
        std::size_t used = 1;
        if (is_one_of(with_value, words[at]) && at + 1 < words.size()) {
            others.push_back(words[at++]);  // its value is never an option of ours
            others.push_back(words[at++]);
            continue;
        }
        if (!take_own(words[at], at + 1 < words.size() ? &words[at + 1] : nullptr, arguments, used)) {
            others.push_back(words[at]);
        }
        at += used;
    }
    words = std::move(others);
}

bool is_header(std::string_view file, std::string_view language)
{
    if (!language.empty() && language != "none") {
        return language.ends_with("-header");
    }
    constexpr std::array<std::string_view, 7> suffixes = {"h", "hh", "H", "hp", "hpp", "hxx", "h++"};
    const std::size_t dot = file.rfind('.');
    return dot != std::string_view::npos && is_one_of(suffixes, file.substr(dot + 1));
}

/// Reads Clang's own options, `words` being free of response files.
void look_for_a_link(const Words& words, CompilerArguments& arguments)
{
    bool stops_before = false;
    bool has_inputs = false;
    bool only_inputs = false;
    std::string_view language;
    for (std::size_t at = 0; at < words.size(); ++at) {
        const std::string_view word = words[at];
        const bool has_value = !only_inputs && at + 1 < words.size() && is_one_of(with_value, word);
        if (only_inputs || word == "-" || !word.starts_with("-")) {
            has_inputs = has_inputs || !is_header(word, language);
        } else if (word == "--") {
            only_inputs = true;
        } else if (word == "-x" || word == "--language") {
            language = has_value ? std::string_view(words[at + 1]) : "";
        } else if (word.starts_with("-x")) {
            language = word.substr(2);
        } else if (word == "-l" || (word.starts_with("-l") && word.size() > 2)) {
            has_inputs = true;
        } else if (word == "-o" || word == "--output") {
            arguments.output = has_value ? words[at + 1] : "";
        } else if (word.starts_with("-o")) {
            arguments.output = word.substr(2);
        } else if (word.starts_with("-L")) {
            arguments.libraries.emplace_back(word.size() > 2 ? word.substr(2) : has_value ? words[at + 1] : "");
        } else if (word == "-Xlinker" && has_value) {
            stops_before = stops_before || words[at + 1] == "-r" || words[at + 1] == "--relocatable";
        }
        stops_before = stops_before || (!only_inputs && is_one_of(without_link, word)) ||
                       (!only_inputs && word.starts_with("-fmodule-header="));
        at += has_value ? 1 : 0;
    }
    arguments.links = has_inputs && !stops_before;
    arguments.names_a_language = !language.empty();
}

/// After "--" everything is an input. What the wrapper adds at the end is not, so the "--" goes, and a file whose name
/// looks like an option is named by its folder.
void remove_end_of_options(Words& words)
{
    const auto end = std::find(words.begin(), words.end(), "--");
    for (auto word = end + 1; word != words.end(); ++word) {
        if (word->starts_with("-") && *word != "-") {
            *word = "./" + *word;
        }
    }
    words.erase(end);
}

}  // namespace

CompilerArguments read_compiler_arguments(const std::vector<std::string>& words)
{
    CompilerArguments arguments;
    if (!words.empty() && words.front().starts_with("-cc1")) {
        arguments.words = words;
        arguments.is_frontend = true;
        return arguments;
    }
    const Words everything = expanded(words, 0);
    Words others = everything;
    take_own_options(others, arguments);
    look_for_a_link(others, arguments);
    // Response files stay what they are, unless they hold what the compiler must not see.
    CompilerArguments outside_only;
    Words outside = words;
    take_own_options(outside, outside_only);
    const bool own_inside = everything.size() - others.size() != words.size() - outside.size();
    const bool ends_options = arguments.links && std::find(others.begin(), others.end(), "--") != others.end();
    arguments.words = own_inside || ends_options ? others : outside;
    if (ends_options) {
        remove_end_of_options(arguments.words);
    }
    return arguments;
}

}  // namespace stillpoint::tool
