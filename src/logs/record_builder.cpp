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

void RecordBuilder::add_range(std::uint64_t offset, const void* memory, std::uint64_t size) noexcept
{
    const auto* bytes = static_cast<const std::byte*>(memory);
    while (size != 0) {
        const std::uint64_t inside = offset % 8;
        if (inside != 0 || size < 8) {
            const std::uint64_t here = std::min(size, 8 - inside);
            std::uint64_t value = 0;
            std::memcpy(reinterpret_cast<std::byte*>(&value) + inside, bytes, here);
            add_bytes(offset / 8, static_cast<std::uint8_t>(((1u << here) - 1) << inside), value);
            offset += here;
            bytes += here;
            size -= here;
            continue;
        }
        std::uint64_t zeroes = 0;
        while (zeroes < size / 8 && load_word(bytes + zeroes * 8) == 0) {
            ++zeroes;
        }
        if (zeroes >= zeroes_min) {
            add_zeroes(offset / 8, zeroes);
        } else {
            zeroes = std::max(zeroes, std::uint64_t{1});
            for (std::uint64_t i = 0; i < zeroes; ++i) {
                add_word(offset / 8 + i, load_word(bytes + i * 8));
            }
        }
        offset += zeroes * 8;
        bytes += zeroes * 8;
        size -= zeroes * 8;
    }
}

}  // namespace stillpoint::logs
