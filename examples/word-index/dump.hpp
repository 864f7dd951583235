#pragma once
// The canonical form of an index: text that is the same for the same files, however many
// threads built it, in whatever order, with however many crashes between.
//
//   file NUMBER STATE PATH           for each file, in order of number
//   WORD COUNT FILE:COUNT:LINE ...   for each word, in order of bytes; postings by file number

#include <cstdint>
#include <cstdio>

#include "index.hpp"

namespace word_index {

struct IndexSummary {
    std::uint64_t words = 0;
    std::uint64_t postings = 0;
    std::uint64_t occurrences = 0;
    std::uint64_t unreadable_files = 0;
    std::uint64_t bytes = 0;    ///< sizes of the readable files, as listed
    std::uint64_t digest = 0;   ///< FNV-1a of the canonical text
    std::uint64_t doubled = 0;  ///< postings of one file twice in one word: must be 0
};

/// Reads the finished index; no worker may be running. Writes the canonical text to `out`
/// unless it is null; ferror(out) tells whether that worked.
[[nodiscard]] IndexSummary summarise(const Index& index, std::FILE* out);

}  // namespace word_index
