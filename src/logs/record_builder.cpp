#include "logs/record_builder.hpp"

#include <algorithm>
#include <cstring>

namespace stillpoint::logs {

namespace {

/// So many words of zeroes and more have a run of their own: memory that was cleared.
constexpr std::uint64_t zeroes_min = 8;

std::uint64_t load_word(const std::byte* bytes) noexcept
{
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    return word;
}

struct ZeroRun {
    std::uint64_t begin;  ///< in words
    std::uint64_t words;  ///< 0: there is none, and `begin` is the end
};

/// The first run of so many zeroes that it is worth a run of its own. Looks at every zeroes_min-th word, and around those that are zero.
ZeroRun find_zeroes(const std::byte* bytes, std::uint64_t count) noexcept
{
    const auto is_zero = [bytes](std::uint64_t word) { return load_word(bytes + word * 8) == 0; };
    std::uint64_t looked = 0;  // Words before it belong to no such run.
    for (std::uint64_t at = zeroes_min - 1; at < count; at = looked + zeroes_min - 1) {
        if (!is_zero(at)) {
            looked = at + 1;
            continue;
        }
        std::uint64_t begin = at;
        while (begin > looked && is_zero(begin - 1)) {
            --begin;
        }
        std::uint64_t end = at + 1;
        while (end < count && is_zero(end)) {
            ++end;
        }
        if (end - begin >= zeroes_min) {
            return {begin, end - begin};
        }
        looked = end;
    }
    return {count, 0};
}

}  // namespace

void RecordBuilder::add_zeroes(std::uint64_t word, std::uint64_t count) noexcept
{
    while (count != 0) {
        const std::uint64_t here = std::min(count, run_words_max - word % run_words_max);
        if (!make_room(1)) {
            return;
        }
        open_run_ = no_run;
        at(count_++) = encode_run({RunKind::zeroes, here, word});
        word += here;
        count -= here;
    }
}

void RecordBuilder::add_words(std::uint64_t word, const std::byte* bytes, std::uint64_t count) noexcept
{
    while (count != 0) {
        const std::uint64_t here = std::min(count, run_words_max - word % run_words_max);
        const bool goes_on = open_run_ != no_run && word == next_word_ && word % run_words_max != 0;
        if (!make_room(here + (goes_on ? 0 : 1))) {
            return;
        }
        if (goes_on) {
            at(open_run_) += here << run_count_shift;
        } else {
            open_run_ = count_;
            at(count_++) = encode_run({RunKind::words, here, word});
        }
        std::memcpy(&at(count_), bytes, here * 8);
        count_ += here;
        next_word_ = word + here;
        word += here;
        bytes += here * 8;
        count -= here;
    }
}

void RecordBuilder::add_whole_words(std::uint64_t word, const std::byte* bytes, std::uint64_t count) noexcept
{
    while (count != 0) {
        const ZeroRun zeroes = find_zeroes(bytes, count);
        add_words(word, bytes, zeroes.begin);
        add_zeroes(word + zeroes.begin, zeroes.words);
        const std::uint64_t done = zeroes.begin + zeroes.words;
        word += done;
        bytes += done * 8;
        count -= done;
    }
}

void RecordBuilder::add_range(std::uint64_t offset, const void* memory, std::uint64_t size) noexcept
{
    const auto* bytes = static_cast<const std::byte*>(memory);
    while (size != 0) {
        const std::uint64_t inside = offset % 8;
        std::uint64_t here = size / 8 * 8;
        if (inside != 0 || size < 8) {
            here = std::min(size, 8 - inside);
            // Byte by byte: what a copy of a few bytes has stored would be loaded as a word, and waits for the store.
            std::uint64_t value = 0;
            for (std::uint64_t i = 0; i < here; ++i) {
                value |= static_cast<std::uint64_t>(bytes[i]) << (8 * (inside + i));
            }
            add_bytes(offset / 8, static_cast<std::uint8_t>(((1u << here) - 1) << inside), value);
        } else {
            add_whole_words(offset / 8, bytes, size / 8);
        }
        offset += here;
        bytes += here;
        size -= here;
    }
}

}  // namespace stillpoint::logs
