#include "media/page_digests.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unistd.h>

#include "arch/checksum.hpp"
#include "media/errno_text.hpp"
#include "media/whole_transfers.hpp"

namespace stillpoint {

bool are_zero(const std::byte* bytes, std::size_t size) noexcept
{
    return bytes[0] == std::byte{0} && std::memcmp(bytes, bytes + 1, size - 1) == 0;
}

Result<PageDigests> PageDigests::of_zeroes(std::uint64_t bytes, std::uint64_t seed)
{
    PageDigests made;
    made.pages_ = bytes / page_bytes;
    made.seed_ = seed;
    if (auto reserved = made.digests_.reserve(made.pages_, "digests of pages"); !reserved) {
        return pass_on(reserved.error());
    }
    return made;
}

std::uint64_t PageDigests::digest_of(const std::byte* page) const noexcept
{
    return are_zero(page, page_bytes) ? 0 : std::max<std::uint64_t>(checksum64(page, page_bytes, seed_), 1);
}

bool PageDigests::match(std::uint64_t first, const std::byte* bytes, std::size_t size) const noexcept
{
    for (std::size_t at = 0; at < size; at += page_bytes) {
        if ((*this)[first + at / page_bytes] != digest_of(bytes + at)) {
            return false;
        }
    }
    return true;
}

std::uint64_t PageDigests::of_all() const noexcept
{
    std::uint64_t sum = 0;
    for (std::uint64_t page = 0; page < pages_; ++page) {
        if (digests_[page] != 0) {
            sum += mix64(page, digests_[page]);
        }
    }
    return mix64(pages_, sum ^ seed_);
}

Result<PageDigests> PageDigests::of_file(int file, const std::string& path, std::uint64_t bytes, std::uint64_t seed)
{
    auto made = of_zeroes(bytes, seed);
    if (!made) {
        return made;
    }
    constexpr std::size_t piece_bytes = mib;
    const auto piece = std::make_unique<std::byte[]>(piece_bytes);
    for (std::uint64_t at = 0; at < bytes;) {
        const off_t data = lseek(file, static_cast<off_t>(at), SEEK_DATA);
        if (data < 0 && errno == ENXIO) {
            break;  // A hole up to the end.
        }
        at = data > 0 ? std::max(at, static_cast<std::uint64_t>(data) / page_bytes * page_bytes) : at;
        if (at >= bytes) {
            break;
        }
        const auto wanted = std::min<std::uint64_t>(piece_bytes, bytes - at);
        std::size_t got = 0;
        if (const int error = read_all(file, piece.get(), wanted, at, got); error != 0 || got != wanted) {
            return fail(error == 0 ? SP_E_POOL_TRUNCATED : SP_E_IO, error, "cannot read {} at byte {}: {}", path, at,
                        error != 0 ? describe_errno(error) : "the file ends before");
        }
        for (std::size_t place = 0; place < got; place += page_bytes) {
            made->set((at + place) / page_bytes, made->digest_of(piece.get() + place));
        }
        at += got;
    }
    return made;
}

}  // namespace stillpoint
