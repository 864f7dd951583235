#pragma once
// Where the parts of this Stillpoint lie, seen from the command: the same folders under a build tree (build/) and
// under a prefix that it is installed to.

#include <string>
#include <string_view>
#include <vector>

namespace stillpoint::tool {

inline constexpr std::string_view library_name = "libstillpoint.so.1";
/// malloc for programs whose threads are processes.
inline constexpr std::string_view heap_library_name = "libstillpoint-heap.so.1";

/// The folder of this executable, without a slash at the end.
[[nodiscard]] std::string own_folder();

/// The folder of libstillpoint.so; empty if it is not there.
[[nodiscard]] std::string library_folder();

/// The folder above stillpoint/stillpoint.h; empty if it is not there.
[[nodiscard]] std::string include_folder();

/// The folder with one folder for each adaptation layer; empty if it is not there.
[[nodiscard]] std::string layers_folder();

/// The folder of the benchmark's driver, and the folder of its measured programs; empty if they are not there.
[[nodiscard]] std::string bench_folder();
[[nodiscard]] std::string bench_workers_folder();

/// The script that teaches gdb to read pools; empty if it is not there.
[[nodiscard]] std::string gdb_script();

/// The compiler plugin, which works with one major version of LLVM only.
struct Plugin {
    int llvm_major = 0;
    std::string path;
};

/// All that are there, the newest version first.
[[nodiscard]] std::vector<Plugin> plugins();

/// The file as an absolute path without links; empty if there is none.
[[nodiscard]] std::string resolved(const std::string& path);

/// The names in a folder, sorted, without those that begin with a dot; none if it cannot be read.
[[nodiscard]] std::vector<std::string> names_in(const std::string& folder);

}  // namespace stillpoint::tool
