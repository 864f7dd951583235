#include "text.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <memory>
#include <unistd.h>

namespace word_index {
namespace {

constexpr std::size_t read_bytes = 256 * 1024;

constexpr std::array<bool, 256> make_word_bytes() noexcept
{
    std::array<bool, 256> table{};
    for (std::size_t c = 0; c < table.size(); ++c) {
        table[c] = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    }
    return table;
}

constexpr std::array<bool, 256> word_bytes = make_word_bytes();

bool in_word(char c) noexcept { return word_bytes[static_cast<unsigned char>(c)]; }

}  // namespace

void WordCounter::add(std::string_view word)
{
    if (word.front() >= '0' && word.front() <= '9') {
        return;
    }
    word = word.substr(0, word_bytes_max);
    auto found = tallies_.find(word);
    if (found == tallies_.end()) {
        found = tallies_.emplace(std::string(word), Tally{0, line_}).first;
    }
    if (found->second.count != UINT32_MAX) {
        ++found->second.count;
    }
}

void WordCounter::feed(std::string_view piece)
{
    std::size_t at = 0;
    while (at < piece.size()) {
        std::size_t end = at;
        while (end < piece.size() && in_word(piece[end])) {
            ++end;
        }
        const std::string_view run = piece.substr(at, end - at);
        if (end == piece.size()) {
            // Kept to word_bytes_max bytes, so that a huge run cannot take huge memory.
            carried_.append(run.substr(0, word_bytes_max - carried_.size()));
            return;
        }
        if (!carried_.empty()) {
            carried_.append(run.substr(0, word_bytes_max - carried_.size()));
            add(carried_);
            carried_.clear();
        } else if (!run.empty()) {
            add(run);
        }
        if (piece[end] == '\n' && line_ != UINT32_MAX) {
            ++line_;
        }
        at = end + 1;
    }
}

void WordCounter::end()
{
    if (!carried_.empty()) {
        add(carried_);
        carried_.clear();
    }
}

bool count_words(const char* path, Tallies& tallies)
{
    tallies.clear();
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0) {
        return false;
    }
    const auto buffer = std::make_unique<char[]>(read_bytes);
    WordCounter counter(tallies);
    ssize_t got = 0;
    do {
        got = read(file, buffer.get(), read_bytes);
        if (got > 0) {
            counter.feed({buffer.get(), static_cast<std::size_t>(got)});
        }
    } while (got > 0 || (got < 0 && errno == EINTR));
    const int read_error = errno;
    close(file);
    errno = read_error;
    counter.end();
    return got == 0;
}

}  // namespace word_index
