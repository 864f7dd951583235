#pragma once
// Texts that the applications read. They stand for files, so they lie in ordinary memory; the same bytes are made everywhere.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

/// The word of that number: lower-case letters, short for small numbers, different for different ones.
[[nodiscard]] std::string word_of_number(std::uint64_t number);

/// Several texts in one: text i is [begins[i], begins[i + 1]).
struct Texts {
    std::string bytes;
    std::vector<std::size_t> begins;

    [[nodiscard]] std::size_t count() const noexcept { return begins.size() - 1; }
    [[nodiscard]] std::string_view operator[](std::size_t i) const noexcept
    {
        return std::string_view(bytes).substr(begins[i], begins[i + 1] - begins[i]);
    }
};

/// Different words in no order, a line each: line i ends with '\n'.
[[nodiscard]] Texts make_dictionary(std::size_t words);

/// Words as frequent as Zipf's law has them, of a vocabulary of 40,000, with punctuation and line ends between them.
[[nodiscard]] std::string make_text(std::size_t size_bytes);

/// Pages of some KiB with links (<a href="...">) to 20,000 places, a few of them popular by Zipf's law. At least one page.
[[nodiscard]] Texts make_pages(std::size_t size_bytes);

}  // namespace bench
