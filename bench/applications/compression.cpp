#include "compression.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace bench {

namespace {

constexpr std::size_t literals_max = 128;
constexpr std::size_t match_min = 4;
constexpr std::size_t match_max = 127 + match_min;
constexpr std::size_t distance_max = 65535;
constexpr unsigned table_bits = 12;

std::uint32_t four_bytes(const std::byte* at) noexcept
{
    std::uint32_t word = 0;
    std::memcpy(&word, at, sizeof word);
    return word;
}

void put_literals(std::span<const std::byte> literals, std::vector<std::byte>& out)
{
    while (!literals.empty()) {
        const std::size_t count = std::min(literals.size(), literals_max);
        out.push_back(static_cast<std::byte>(count - 1));
        out.insert(out.end(), literals.begin(), literals.begin() + static_cast<std::ptrdiff_t>(count));
        literals = literals.subspan(count);
    }
}

}  // namespace

void compress(std::span<const std::byte> data, std::vector<std::byte>& out)
{
    out.clear();
    std::array<std::uint32_t, 1u << table_bits> last_seen = {};  // position + 1 of four bytes with that hash
    std::size_t literals_begin = 0;
    std::size_t at = 0;
    while (at + match_min <= data.size()) {
        const std::uint32_t word = four_bytes(&data[at]);
        std::uint32_t& seen = last_seen[word * 2654435761u >> (32 - table_bits)];
        const std::size_t before = seen;
        seen = static_cast<std::uint32_t>(at + 1);
        if (before == 0 || at + 1 - before > distance_max || four_bytes(&data[before - 1]) != word) {
            ++at;
            continue;
        }
        const std::size_t limit = std::min(data.size() - at, match_max);
        std::size_t length = match_min;
        while (length < limit && data[before - 1 + length] == data[at + length]) {
            ++length;
        }
        put_literals(data.subspan(literals_begin, at - literals_begin), out);
        const std::size_t distance = at + 1 - before;
        out.push_back(static_cast<std::byte>(128 + length - match_min));
        out.push_back(static_cast<std::byte>(distance & 0xff));
        out.push_back(static_cast<std::byte>(distance >> 8));
        at += length;
        literals_begin = at;
    }
    put_literals(data.subspan(literals_begin), out);
}

bool decompress(std::span<const std::byte> compressed, std::vector<std::byte>& out)
{
    const std::size_t begin = out.size();
    std::size_t at = 0;
    while (at < compressed.size()) {
        const auto head = static_cast<std::size_t>(compressed[at++]);
        if (head < 128) {
            if (compressed.size() - at < head + 1) {
                return false;
            }
            out.insert(out.end(), compressed.begin() + static_cast<std::ptrdiff_t>(at),
                       compressed.begin() + static_cast<std::ptrdiff_t>(at + head + 1));
            at += head + 1;
            continue;
        }
        if (compressed.size() - at < 2) {
            return false;
        }
        const std::size_t distance = static_cast<std::size_t>(compressed[at]) | static_cast<std::size_t>(compressed[at + 1]) << 8;
        at += 2;
        if (distance == 0 || distance > out.size() - begin) {
            return false;
        }
        for (std::size_t left = head - 128 + match_min; left > 0; --left) {  // may overlap itself
            out.push_back(out[out.size() - distance]);
        }
    }
    return true;
}

}  // namespace bench
