#include "backup.hpp"

#include <cstring>
#include <utility>

#include "../harness/random.hpp"
#include "compression.hpp"

namespace bench::backup {

std::vector<std::byte> make_backup(std::size_t size_bytes)
{
    Random random(5);
    std::vector<std::byte> bytes;
    bytes.reserve(size_bytes + (64 << 10));
    while (bytes.size() < size_bytes) {
        const std::size_t file_bytes = 4096 + random.below(60 << 10);
        if (bytes.size() > file_bytes && random.below(100) < 45) {
            const std::size_t before = random.below(bytes.size() - file_bytes);
            for (std::size_t i = 0; i < file_bytes; ++i) {
                bytes.push_back(bytes[before + i]);
            }
            continue;
        }
        for (const std::size_t end = bytes.size() + file_bytes; bytes.size() < end;) {
            std::uint64_t word = (random.below(64) + 1) * (random.below(64) + 1) * 0x9e3779b97f4a7c15u;
            for (std::size_t letters = 3 + random.below(6); letters > 0; --letters, word >>= 5) {
                bytes.push_back(static_cast<std::byte>('a' + word % 26));
            }
            bytes.push_back(static_cast<std::byte>(' '));
        }
    }
    bytes.resize(size_bytes);
    return bytes;
}

std::vector<std::byte> unpack(std::span<const std::byte> packed, std::size_t size_bytes)
{
    std::vector<std::byte> bytes;
    bytes.reserve(size_bytes);
    std::vector<std::pair<std::size_t, std::size_t>> known;  // begin and end in `bytes`
    while (packed.size() >= new_head_bytes) {
        const std::size_t begin = bytes.size();
        if (packed[0] == is_new) {
            std::uint32_t size = 0;
            std::memcpy(&size, &packed[1], sizeof size);
            packed = packed.subspan(new_head_bytes);
            if (size > packed.size() || !decompress(packed.first(size), bytes)) {
                break;
            }
            known.emplace_back(begin, bytes.size());
            packed = packed.subspan(size);
            continue;
        }
        std::uint64_t meant = 0;
        if (packed[0] != is_known || packed.size() < known_bytes) {
            break;
        }
        std::memcpy(&meant, &packed[1], sizeof meant);
        if (meant >= known.size()) {
            break;
        }
        for (auto [at, end] = known[meant]; at < end; ++at) {
            bytes.push_back(bytes[at]);
        }
        packed = packed.subspan(known_bytes);
    }
    return bytes;
}

}  // namespace bench::backup
