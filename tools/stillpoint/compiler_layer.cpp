#include "compiler_layer.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

#include "exit_codes.hpp"
#include "installation.hpp"
#include "os/descriptor.hpp"
#include "output.hpp"

namespace stillpoint::tool {

namespace {

template <class... Args>
tl::unexpected<Refusal> refuse(int exit_code, fmt::format_string<Args...> format, Args&&... args)
{
    return tl::unexpected(Refusal{exit_code, text_of(format, std::forward<Args>(args)...)});
}

std::string layers_there_are(const std::string& layers)
{
    std::string list;
    for (const std::string& name : names_in(layers)) {
        if (access(text_of("{}/{}/layer.yaml", layers, name).c_str(), F_OK) == 0) {
            list += list.empty() ? name : ", " + name;
        }
    }
    return list;
}

bool is_folder(const std::string& path)
{
    struct stat status{};
    return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

/// Empty: the file can be read.
std::string why_unreadable(const std::string& path)
{
    const os::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    char first = 0;
    return file.valid() && read(file.get(), &first, 1) >= 0 ? "" : std::strerror(errno);
}

/// One line of link.flags with its placeholders replaced.
tl::expected<std::string, std::string> replaced(std::string_view flag, const CompilerLayer& layer, const std::string& libraries)
{
    std::string text;
    for (std::size_t at = 0; at < flag.size(); ++at) {
        if (flag[at] == '}') {
            return tl::unexpected(std::string("a '}' without its '{'"));
        }
        if (flag[at] != '{') {
            text += flag[at];
            continue;
        }
        const std::size_t end = flag.find('}', at);
        if (end == std::string_view::npos) {
            return tl::unexpected(std::string("a '{' without its '}'"));
        }
        const std::string_view name = flag.substr(at + 1, end - at - 1);
        if (name != "lib" && name != "layer") {
            return tl::unexpected(text_of("{{{}}} is not known: use {{lib}}, the folder of Stillpoint's libraries, or "
                                          "{{layer}}, the layer's own",
                                          name));
        }
        text += name == "lib" ? libraries : layer.folder;
        at = end;
    }
    return text;
}

}  // namespace

tl::expected<CompilerLayer, Refusal> find_layer(const std::string& runtime)
{
    std::string path = runtime;
    if (runtime.find('/') == std::string::npos && !runtime.ends_with(".yaml")) {
        const std::string layers = layers_folder();
        path = text_of("{}/{}/layer.yaml", layers, runtime);
        if (access(path.c_str(), F_OK) != 0) {
            const std::string present = layers_there_are(layers);
            return refuse(exit_codes::no_input, "there is no layer '{}'; {}. For one of your own: --runtime=FOLDER/layer.yaml", runtime,
                          present.empty() ? "none at all lies in share/stillpoint/layers beside the command: install "
                                            "Stillpoint again"
                                          : "there are: " + present);
        }
    } else if (is_folder(runtime)) {
        path += "/layer.yaml";
    }
    if (const std::string reason = why_unreadable(path); !reason.empty()) {
        return refuse(exit_codes::no_input,
                      "cannot read the layer's configuration {}: {}. --runtime= takes the name of a layer or the path "
                      "of its layer.yaml",
                      path, reason);
    }
    const std::string absolute = resolved(path);
    return CompilerLayer{absolute.substr(0, absolute.rfind('/')), absolute};
}

tl::expected<std::vector<std::string>, Refusal> link_flags(const CompilerLayer& layer)
{
    const std::string path = layer.folder + "/link.flags";
    std::vector<std::string> flags;
    if (access(path.c_str(), F_OK) != 0) {
        return flags;
    }
    if (const std::string reason = why_unreadable(path); !reason.empty()) {
        return refuse(exit_codes::no_input, "cannot read {}: {}", path, reason);
    }
    const std::string libraries = library_folder();
    std::ifstream file(path);
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
        line.erase(line.find_last_not_of(" \t\r") + 1);
        line.erase(0, line.find_first_not_of(" \t"));
        if (line.empty() || line.front() == '#') {
            continue;
        }
        if (line.find_first_of(" \t") != std::string::npos) {
            return refuse(exit_codes::data_error, "{}:{}: '{}' is more than one word; write one flag a line", path, number, line);
        }
        auto flag = replaced(line, layer, libraries);
        if (!flag) {
            return refuse(exit_codes::data_error, "{}:{}: {}", path, number, flag.error());
        }
        if (line.find("{lib}") != std::string::npos && libraries.empty()) {
            return refuse(exit_codes::unavailable,
                          "{} is missing, and {} needs its folder: install Stillpoint again, or "
                          "build it whole (make)",
                          library_name, path);
        }
        flags.push_back(std::move(*flag));
    }
    return flags;
}

bool describes_types(const CompilerLayer& layer)
{
    std::ifstream configuration(layer.configuration);
    std::string line;
    while (std::getline(configuration, line)) {
        line.resize(std::min(line.size(), line.find('#')));
        std::erase_if(line, [](char one) { return one == ' ' || one == '\t' || one == '\r'; });
        if (line == "describe-types:yes") {
            return true;
        }
    }
    return false;
}

std::vector<std::string> files_of(const CompilerLayer& layer)
{
    std::vector<std::string> files = {layer.configuration};
    std::ifstream configuration(layer.configuration);
    std::string line;
    while (std::getline(configuration, line)) {
        line.resize(std::min(line.size(), line.find('#')));
        constexpr const char* separators = " \t\r,[]{}\"'";
        for (std::size_t at = line.find_first_not_of(separators); at != std::string::npos;) {
            const std::size_t end = std::min(line.size(), line.find_first_of(separators, at));
            const std::string word = line.substr(at, end - at);
            const std::string path = resolved(word.starts_with("/") ? word : layer.folder + "/" + word);
            if (word.ends_with(".yaml") && !path.empty()) {
                files.push_back(path);
            }
            at = line.find_first_not_of(separators, end);
        }
    }
    return files;
}

}  // namespace stillpoint::tool
