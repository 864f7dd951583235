#pragma once
// Counts the words of one file, in the worker's own volatile memory.
//
// A word is a longest run of ASCII letters, digits and underscores that does not begin with a digit; of a
// run longer than word_bytes_max the first word_bytes_max bytes count. Any bytes are
// accepted: a binary file has words too.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace word_index {

inline constexpr std::size_t word_bytes_max = 200;

struct Tally {
    std::uint32_t count = 0;
    std::uint32_t first_line = 0;
};

struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
};

using Tallies = std::unordered_map<std::string, Tally, TextHash, std::equal_to<>>;

/// Splits text that arrives in pieces; a word may straddle two of them.
class WordCounter {
public:
    explicit WordCounter(Tallies& tallies) noexcept : tallies_(tallies) {}

    void feed(std::string_view piece);
    /// After the last piece.
    void end();

private:
    void add(std::string_view word);

    Tallies& tallies_;
    std::string carried_;  ///< beginning of a run that reached the end of the last piece
    std::uint32_t line_ = 1;
};

/// Reads the file to its end and counts its words into `tallies` (emptied first).
/// False: the file cannot be read; errno says why.
[[nodiscard]] bool count_words(const char* path, Tallies& tallies);

}  // namespace word_index
