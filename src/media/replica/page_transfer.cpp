#include "media/replica/page_transfer.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "arch/checksum.hpp"
#include "media/page_digests.hpp"
#include "media/private_medium.hpp"

namespace stillpoint {

namespace {

constexpr std::uint64_t transfer_seed = 0x5354524144535452;
constexpr std::uint64_t piece_bytes = 4 * mib;

struct alignas(page_bytes) Page {
    std::array<std::byte, page_bytes> bytes{};
};

/// A piece of memory whose bytes may be written to a medium.
class Piece {
public:
    Piece() : pages_(piece_bytes / page_bytes) {}
    [[nodiscard]] std::byte* data() noexcept { return pages_.front().bytes.data(); }
    [[nodiscard]] std::span<std::byte> first(std::uint64_t bytes) noexcept { return {data(), bytes}; }

private:
    std::vector<Page> pages_;
};

std::uint64_t checksum_of(TransferTrailer trailer) noexcept
{
    trailer.checksum = 0;
    return checksum64(&trailer, sizeof trailer, transfer_seed);
}

/// The bytes of `medium`, and zeroes after its end.
Result<void> read_or_zero(const Medium& medium, std::uint64_t offset, std::span<std::byte> to)
{
    const std::uint64_t size = medium.size_bytes();
    const std::uint64_t there = offset < size ? std::min<std::uint64_t>(to.size(), size - offset) : 0;
    std::memset(to.data() + there, 0, to.size() - there);
    return there == 0 ? Result<void>{} : medium.read(offset, to.first(there));
}

/// The numbers of the pages that are not the same in both.
Result<std::vector<std::uint64_t>> differing_pages(const Medium& from, const Medium& to)
{
    std::vector<std::uint64_t> pages;
    Piece wanted;
    Piece present;
    for (std::uint64_t at = 0; at < from.size_bytes(); at += piece_bytes) {
        const std::uint64_t size = round_up(std::min(piece_bytes, from.size_bytes() - at), page_bytes);
        if (auto read = read_or_zero(from, at, wanted.first(size)); !read) {
            return pass_on(read.error());
        }
        if (auto read = read_or_zero(to, at, present.first(size)); !read) {
            return pass_on(read.error());
        }
        for (std::uint64_t place = 0; place < size; place += page_bytes) {
            if (std::memcmp(wanted.data() + place, present.data() + place, page_bytes) != 0) {
                pages.push_back((at + place) / page_bytes);
            }
        }
    }
    return pages;
}

Result<void> write_one(Medium& to, std::uint64_t offset, const std::byte* data, std::uint64_t size)
{
    const BlockWrite write{offset, data, static_cast<std::size_t>(size)};
    return to.write({&write, 1});
}

/// Reads pages by their numbers and hands them to `sink`, a piece at a time, with the place of the first among all.
template <class Sink>
Result<void> for_pieces_of_pages(const Medium& from, const std::vector<std::uint64_t>& numbers, Sink&& sink)
{
    Piece piece;
    constexpr std::size_t pages_max = piece_bytes / page_bytes;
    for (std::size_t done = 0; done < numbers.size();) {
        const std::size_t count = std::min(pages_max, numbers.size() - done);
        for (std::size_t page = 0; page < count;) {
            std::size_t run = 1;
            while (page + run < count && numbers[done + page + run] == numbers[done + page] + run) {
                ++run;
            }
            const std::span<std::byte> place(piece.data() + page * page_bytes, run * page_bytes);
            if (auto read = read_or_zero(from, numbers[done + page] * page_bytes, place); !read) {
                return read;
            }
            page += run;
        }
        if (auto taken = sink(done, piece.first(count * page_bytes)); !taken) {
            return taken;
        }
        done += count;
    }
    return {};
}

/// Writes what a trailer vouches for. Not durable yet.
Result<TransferTrailer> write_journal(const Medium& from, Medium& to, const std::vector<std::uint64_t>& numbers)
{
    TransferTrailer trailer{};
    std::memcpy(trailer.magic, TransferTrailer::magic_bytes, sizeof trailer.magic);
    trailer.version = TransferTrailer::version_known;
    const std::uint64_t present = round_up(std::max(from.size_bytes(), numbers.back() * page_bytes + page_bytes), page_bytes);
    const std::uint64_t number_bytes = round_up(numbers.size() * sizeof(std::uint64_t), page_bytes);
    trailer.numbers_offset = present;
    trailer.pages_offset = present + number_bytes;
    trailer.pages = numbers.size();
    const std::uint64_t end = trailer.pages_offset + numbers.size() * page_bytes + page_bytes;
    if (to.size_bytes() < end) {
        if (auto grown = to.resize(end); !grown) {
            return pass_on(grown.error());
        }
    }
    trailer.medium_bytes = to.size_bytes();
    std::vector<Page> number_pages(number_bytes / page_bytes);
    std::memcpy(number_pages.front().bytes.data(), numbers.data(), numbers.size() * sizeof(std::uint64_t));
    trailer.numbers_checksum = checksum64(number_pages.front().bytes.data(), number_bytes, transfer_seed);
    if (auto written = write_one(to, trailer.numbers_offset, number_pages.front().bytes.data(), number_bytes); !written) {
        return pass_on(written.error());
    }
    auto written = for_pieces_of_pages(from, numbers, [&](std::size_t first, std::span<std::byte> bytes) {
        trailer.pages_checksum = mix64(trailer.pages_checksum, checksum64(bytes.data(), bytes.size(), transfer_seed));
        return write_one(to, trailer.pages_offset + first * page_bytes, bytes.data(), bytes.size());
    });
    if (!written) {
        return pass_on(written.error());
    }
    trailer.checksum = checksum_of(trailer);
    return trailer;
}

Result<void> write_trailer(Medium& to, const TransferTrailer& trailer)
{
    Page page;
    std::memcpy(page.bytes.data(), &trailer, sizeof trailer);
    if (auto written = write_one(to, to.size_bytes() - page_bytes, page.bytes.data(), page_bytes); !written) {
        return written;
    }
    return to.sync();
}

/// The trailer of a transfer that was not finished.
Result<std::optional<TransferTrailer>> find_trailer(const Medium& medium)
{
    TransferTrailer trailer{};
    const std::uint64_t size = medium.size_bytes();
    if (size < 2 * page_bytes || size % page_bytes != 0) {
        return std::optional<TransferTrailer>{};
    }
    if (auto read = medium.read(size - page_bytes, std::as_writable_bytes(std::span(&trailer, 1))); !read) {
        return pass_on(read.error());
    }
    const bool is_one = std::memcmp(trailer.magic, TransferTrailer::magic_bytes, sizeof trailer.magic) == 0 &&
                        trailer.checksum == checksum_of(trailer) && trailer.medium_bytes == size;
    if (!is_one) {
        return std::optional<TransferTrailer>{};
    }
    const std::uint64_t pages_max = size / page_bytes;
    const bool fits = trailer.version == TransferTrailer::version_known && trailer.pages != 0 && trailer.pages <= pages_max &&
                      trailer.numbers_offset % page_bytes == 0 && trailer.numbers_offset < size &&
                      trailer.pages_offset == trailer.numbers_offset + round_up(trailer.pages * sizeof(std::uint64_t), page_bytes) &&
                      trailer.pages_offset < size && trailer.pages * page_bytes <= size - page_bytes - trailer.pages_offset;
    if (!fits) {
        return fail(SP_E_POOL_CORRUPT, 0,
                    "{}: the trailer of an unfinished transfer, in its last page, makes no sense; restore the pool "
                    "from a copy",
                    medium.path());
    }
    return std::optional{trailer};
}

Result<std::vector<std::uint64_t>> numbers_of(const Medium& medium, const TransferTrailer& trailer)
{
    const std::uint64_t number_bytes = trailer.pages_offset - trailer.numbers_offset;
    std::vector<std::uint64_t> numbers(number_bytes / sizeof(std::uint64_t));
    if (auto read = medium.read(trailer.numbers_offset, std::as_writable_bytes(std::span(numbers))); !read) {
        return pass_on(read.error());
    }
    const bool is_sound = checksum64(numbers.data(), number_bytes, transfer_seed) == trailer.numbers_checksum;
    numbers.resize(trailer.pages);
    if (!is_sound || std::ranges::any_of(numbers, [&](std::uint64_t page) { return page >= trailer.numbers_offset / page_bytes; })) {
        return fail(SP_E_POOL_CORRUPT, 0, "{}: the list of an unfinished transfer is damaged; restore the pool from a copy", medium.path());
    }
    return numbers;
}

/// The pages of a transfer, in the order of `numbers`, a piece at a time.
template <class Sink>
Result<void> for_pieces_of_journal(const Medium& medium, const TransferTrailer& trailer, Sink&& sink)
{
    Piece piece;
    for (std::uint64_t done = 0; done < trailer.pages * page_bytes;) {
        const std::uint64_t size = std::min(piece_bytes, trailer.pages * page_bytes - done);
        if (auto read = medium.read(trailer.pages_offset + done, piece.first(size)); !read) {
            return read;
        }
        if (auto taken = sink(done / page_bytes, piece.first(size)); !taken) {
            return taken;
        }
        done += size;
    }
    return {};
}

Result<void> check_journal(const Medium& medium, const TransferTrailer& trailer)
{
    std::uint64_t sum = 0;
    auto read = for_pieces_of_journal(medium, trailer, [&](std::uint64_t, std::span<std::byte> bytes) {
        sum = mix64(sum, checksum64(bytes.data(), bytes.size(), transfer_seed));
        return Result<void>{};
    });
    if (read && sum != trailer.pages_checksum) {
        return fail(SP_E_POOL_CORRUPT, 0, "{}: the pages of an unfinished transfer are damaged; restore the pool from a copy",
                    medium.path());
    }
    return read;
}

/// Not durable yet.
Result<void> apply_journal(Medium& medium, const TransferTrailer& trailer, const std::vector<std::uint64_t>& numbers)
{
    std::vector<BlockWrite> batch;
    return for_pieces_of_journal(medium, trailer, [&](std::uint64_t first, std::span<std::byte> bytes) {
        batch.clear();
        for (std::size_t at = 0; at < bytes.size(); at += page_bytes) {
            batch.push_back({numbers[first + at / page_bytes] * page_bytes, bytes.data() + at, page_bytes});
        }
        return medium.write(batch);
    });
}

/// Everything from the trailer on.
Result<void> apply_and_forget(Medium& medium, const TransferTrailer& trailer, const std::vector<std::uint64_t>& numbers)
{
    if (auto applied = apply_journal(medium, trailer, numbers); !applied) {
        return applied;
    }
    if (auto synced = medium.sync(); !synced) {
        return synced;
    }
    return write_trailer(medium, TransferTrailer{});
}

}  // namespace

Result<bool> have_same_bytes(const Medium& from, const Medium& to)
{
    const auto pages = differing_pages(from, to);
    return pages ? Result<bool>{pages->empty()} : Result<bool>{pass_on(pages.error())};
}

Result<void> copy_to_new(const Medium& from, Medium& to, std::uint64_t size_bytes)
{
    if (from.size_bytes() < size_bytes) {
        return fail(SP_E_POOL_TRUNCATED, 0, "{} has {} bytes of {}: it was copied incompletely; restore it from a copy", from.path(),
                    from.size_bytes(), size_bytes);
    }
    Piece piece;
    std::vector<BlockWrite> batch;
    for (std::uint64_t at = 0; at < size_bytes; at += piece_bytes) {
        const std::uint64_t size = round_up(std::min(piece_bytes, size_bytes - at), page_bytes);
        if (auto read = read_or_zero(from, at, piece.first(size)); !read) {
            return read;
        }
        batch.clear();
        for (std::uint64_t place = 0; place < size; place += page_bytes) {
            if (!are_zero(piece.data() + place, page_bytes)) {
                batch.push_back({at + place, piece.data() + place, page_bytes});
            }
        }
        if (auto written = to.write(batch); !written) {
            return written;
        }
    }
    return {};
}

Result<TransferFigures> transfer_pages(const Medium& from, Medium& to)
{
    const auto numbers = differing_pages(from, to);
    if (!numbers) {
        return pass_on(numbers.error());
    }
    const TransferFigures figures{from.size_bytes(), numbers->size()};
    if (numbers->empty()) {
        if (to.size_bytes() < from.size_bytes()) {
            if (auto grown = to.resize(from.size_bytes()); !grown) {
                return pass_on(grown.error());
            }
        }
        return figures;
    }
    const auto trailer = write_journal(from, to, *numbers);
    if (!trailer) {
        return pass_on(trailer.error());
    }
    if (auto synced = to.sync(); !synced) {
        return pass_on(synced.error());
    }
    if (auto vouched = write_trailer(to, *trailer); !vouched) {
        return pass_on(vouched.error());
    }
    if (auto applied = apply_and_forget(to, *trailer, *numbers); !applied) {
        return pass_on(applied.error());
    }
    return figures;
}

Result<void> finish_transfer(Medium& medium)
{
    const auto trailer = find_trailer(medium);
    if (!trailer || !*trailer) {
        return trailer ? Result<void>{} : pass_on(trailer.error());
    }
    const auto numbers = numbers_of(medium, **trailer);
    if (!numbers) {
        return pass_on(numbers.error());
    }
    if (auto sound = check_journal(medium, **trailer); !sound) {
        return sound;
    }
    // The trailer that a killed sender has left may be visible and not durable: pages in their places would then have nothing to end them.
    // A sync, and not another write of it, which a crash could tear.
    if (auto synced = medium.sync(); !synced) {
        return synced;
    }
    return apply_and_forget(medium, **trailer, *numbers);
}

Result<std::unique_ptr<Medium>> with_transfer_finished(std::unique_ptr<Medium> medium)
{
    const auto trailer = find_trailer(*medium);
    if (!trailer) {
        return pass_on(trailer.error());
    }
    if (!*trailer) {
        return medium;
    }
    auto copy = PrivateMedium::over(std::move(medium));
    if (!copy) {
        return pass_on(copy.error());
    }
    if (auto finished = finish_transfer(**copy); !finished) {
        return pass_on(finished.error());
    }
    (*copy)->seal();
    return std::unique_ptr<Medium>(std::move(*copy));
}

}  // namespace stillpoint
