#include "tree.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <sys/stat.h>

namespace word_index {

namespace fs = std::filesystem;

bool walk(const std::string& directory, Tree& tree, std::string& error)
{
    std::error_code failed;
    const fs::path root = fs::canonical(directory, failed);
    if (failed || !fs::is_directory(root, failed)) {
        error = directory + ": " + (failed ? failed.message() : "is not a directory");
        return false;
    }
    tree.directory = root.string();
    const std::size_t prefix = tree.directory == "/" ? 1 : tree.directory.size() + 1;
    auto entry = fs::recursive_directory_iterator(root, fs::directory_options::skip_permission_denied, failed);
    for (; !failed && entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
        const std::string& path = entry->path().native();
        struct stat facts{};
        // A file that vanishes between the listing and here is as if it had vanished before.
        if (lstat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
            continue;
        }
        tree.entries.push_back(
            {path.substr(prefix), static_cast<std::uint64_t>(facts.st_size), facts.st_mtim.tv_sec * 1'000'000'000 + facts.st_mtim.tv_nsec});
    }
    if (failed) {
        error = directory + ": " + failed.message();
        return false;
    }
    std::sort(tree.entries.begin(), tree.entries.end(), [](const TreeEntry& a, const TreeEntry& b) { return a.path < b.path; });
    return true;
}

}  // namespace word_index
