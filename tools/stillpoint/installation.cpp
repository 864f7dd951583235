#include "installation.hpp"

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <unistd.h>

#include "output.hpp"

#ifndef STILLPOINT_LIBRARY_FROM_BIN
#define STILLPOINT_LIBRARY_FROM_BIN "../lib"
#endif
#ifndef STILLPOINT_DATA_FROM_BIN
#define STILLPOINT_DATA_FROM_BIN "../share"
#endif
#ifndef STILLPOINT_INCLUDE_FROM_BIN
#define STILLPOINT_INCLUDE_FROM_BIN "../include"
#endif

namespace stillpoint::tool {

namespace {

constexpr std::string_view plugin_prefix = "libstillpoint-nvhooks-";
constexpr std::string_view plugin_suffix = ".so";

/// The version in a plugin's name; 0 where the name is another file's.
int plugin_version(std::string_view name)
{
    if (!name.starts_with(plugin_prefix) || !name.ends_with(plugin_suffix)) {
        return 0;
    }
    name.remove_prefix(plugin_prefix.size());
    name.remove_suffix(plugin_suffix.size());
    int major = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), major);
    return error == std::errc() && end == name.data() + name.size() ? major : 0;
}

void add_plugins_of(const std::string& folder, std::vector<Plugin>& found)
{
    for (const std::string& name : names_in(folder)) {
        if (const int major = plugin_version(name); major > 0) {
            found.push_back({major, text_of("{}/{}", folder, name)});
        }
    }
}

}  // namespace

std::string resolved(const std::string& path)
{
    const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), &std::free);
    return real ? std::string(real.get()) : std::string();
}

std::vector<std::string> names_in(const std::string& folder)
{
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
        if (std::string name = entry->path().filename(); !name.starts_with(".")) {
            names.push_back(std::move(name));
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::string own_folder()
{
    char path[PATH_MAX];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    const std::string_view own(path, length > 0 ? static_cast<std::size_t>(length) : 0);
    return std::string(own.substr(0, own.rfind('/')));
}

std::string library_folder()
{
    for (const char* folder : {STILLPOINT_LIBRARY_FROM_BIN, "../lib"}) {
        const std::string path = resolved(text_of("{}/{}/{}", own_folder(), folder, library_name));
        if (!path.empty()) {
            return path.substr(0, path.rfind('/'));
        }
    }
    return {};
}

std::string include_folder()
{
    const std::string folder = resolved(text_of("{}/{}", own_folder(), STILLPOINT_INCLUDE_FROM_BIN));
    return access(text_of("{}/stillpoint/stillpoint.h", folder).c_str(), R_OK) == 0 ? folder : std::string();
}

std::string layers_folder() { return resolved(text_of("{}/{}/stillpoint/layers", own_folder(), STILLPOINT_DATA_FROM_BIN)); }

std::string bench_folder() { return resolved(text_of("{}/{}/stillpoint/bench", own_folder(), STILLPOINT_DATA_FROM_BIN)); }

std::string gdb_script() { return resolved(text_of("{}/{}/stillpoint/gdb/stillpoint-gdb.py", own_folder(), STILLPOINT_DATA_FROM_BIN)); }

std::string bench_workers_folder()
{
    for (const std::string& folder : {own_folder(), text_of("{}/{}/stillpoint", own_folder(), STILLPOINT_LIBRARY_FROM_BIN)}) {
        if (access(text_of("{}/bench_worker_volatile", folder).c_str(), X_OK) == 0) {
            return resolved(folder);
        }
    }
    return {};
}

std::vector<Plugin> plugins()
{
    std::vector<Plugin> found;
    for (const char* folder : {STILLPOINT_LIBRARY_FROM_BIN, "../lib"}) {
        const std::string libraries = resolved(text_of("{}/{}", own_folder(), folder));
        if (!libraries.empty()) {
            add_plugins_of(libraries + "/stillpoint", found);
            add_plugins_of(libraries, found);
        }
    }
    std::sort(found.begin(), found.end(), [](const Plugin& a, const Plugin& b) {
        return a.llvm_major != b.llvm_major ? a.llvm_major > b.llvm_major : a.path < b.path;
    });
    return found;
}

}  // namespace stillpoint::tool
