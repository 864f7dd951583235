#pragma once
// The list of files below a directory, as it is now.

#include <cstdint>
#include <string>
#include <vector>

namespace word_index {

struct TreeEntry {
    std::string path;  ///< relative to the directory
    std::uint64_t size_bytes;
    std::int64_t modified_ns;
};

struct Tree {
    std::string directory;  ///< absolute, symbolic links resolved: the same text in every run
    std::vector<TreeEntry> entries;  ///< regular files, sorted by path; links are not followed
};

/// False: `error` says why. Sub-directories that may not be read are left out.
[[nodiscard]] bool walk(const std::string& directory, Tree& tree, std::string& error);

}  // namespace word_index
