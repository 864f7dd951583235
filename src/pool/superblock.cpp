#include "pool/superblock.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "arch/checksum.hpp"
#include "core/canary.hpp"
#include "media/increment_layout.hpp"

namespace stillpoint {
namespace {

using layout::Superblock;

// Limits that keep a hostile number from overflowing what is computed from it.
constexpr std::uint64_t file_pages_max = std::uint64_t{1} << 50;  // 4 EiB
constexpr std::uint64_t counter_max = std::uint64_t{1} << 62;     // sequence, generation

bool all_zero(const void* bytes, std::size_t size) noexcept
{
    const auto* first = static_cast<const std::uint8_t*>(bytes);
    return std::all_of(first, first + size, [](std::uint8_t byte) { return byte == 0; });
}

bool has_magic(const Superblock& copy, const std::uint8_t (&magic)[8]) noexcept
{
    return std::memcmp(copy.magic, magic, sizeof magic) == 0;
}

/// Names the field, so that a report of a bad pool can be acted on without a hex dump.
template <class... Args>
auto corrupt_superblock(std::string_view path, fmt::format_string<Args...> format, Args&&... args)
{
    char reason[256];
    const auto end = fmt::format_to_n(reason, sizeof reason, format, std::forward<Args>(args)...);
    return fail(SP_E_POOL_CORRUPT, 0, "{}: superblock: {}; restore the file from a copy, or delete it to start with an empty pool", path,
                std::string_view(reason, static_cast<std::size_t>(end.out - reason)));
}

Result<void> validate_version(const Superblock& block, std::string_view path)
{
    if (block.format_version > layout::pool_format_version) {
        return fail(SP_E_POOL_VERSION, 0,
                    "{}: the pool has format version {}, this library reads versions {} to {}; "
                    "use a newer Stillpoint",
                    path, block.format_version, layout::pool_format_version_oldest, layout::pool_format_version);
    }
    if (block.format_version < layout::pool_format_version_oldest) {
        return fail(SP_E_POOL_VERSION, 0, "{}: the pool has format version {}, this library reads versions {} to {}", path,
                    block.format_version, layout::pool_format_version_oldest, layout::pool_format_version);
    }
    const std::uint64_t unknown = block.feature_bits & layout::features_incompatible_mask & ~layout::features_known;
    if (unknown != 0) {
        return fail(SP_E_POOL_VERSION, 0,
                    "{}: the pool uses features {:#x} that this library (format version {}) does "
                    "not know; use a newer Stillpoint",
                    path, unknown, layout::pool_format_version);
    }
    return {};
}

Result<void> validate_identity(const Superblock& block, std::string_view path)
{
    if (block.superblock_bytes != sizeof(Superblock) || block.page_bytes != page_bytes) {
        return corrupt_superblock(path, "superblock_bytes is {} and page_bytes {}; both are 4096", block.superblock_bytes,
                                  block.page_bytes);
    }
    if (block.sequence == 0 || block.sequence > counter_max) {
        return corrupt_superblock(path, "sequence is {}", block.sequence);
    }
    if (block.generation == 0 || block.generation > counter_max) {
        return corrupt_superblock(path, "generation is {}", block.generation);
    }
    if (all_zero(block.uuid, sizeof block.uuid)) {
        return corrupt_superblock(path, "uuid is zero");
    }
    const std::size_t name_bytes = strnlen(block.engine_name, sizeof block.engine_name);
    if (name_bytes == sizeof block.engine_name) {
        return corrupt_superblock(path, "engine_name is not terminated");
    }
    if (!valid_engine_name({block.engine_name, name_bytes}) ||
        !all_zero(block.engine_name + name_bytes, sizeof block.engine_name - name_bytes)) {
        return corrupt_superblock(path, "engine_name is not 1 to 15 characters of a-z, 0-9, '-' and '_'");
    }
    if (block.durability > 1) {
        return corrupt_superblock(path, "durability is {}, not 0 (process) or 1 (power)", block.durability);
    }
    const bool extended = (block.feature_bits & layout::features_compatible_mask & ~layout::features_known) != 0;
    if (!extended && !all_zero(block.reserved, sizeof block.reserved)) {
        return corrupt_superblock(path, "reserved bytes are not zero");
    }
    return {};
}

Result<void> validate_image(const Superblock& block, std::string_view path)
{
    if (block.image_bytes_max > window_bytes || block.image_bytes_max % page_bytes != 0) {
        return corrupt_superblock(path, "image_bytes_max is {}: not a multiple of {} up to {}", block.image_bytes_max, page_bytes,
                                  window_bytes);
    }
    const bool is_raised = (block.feature_bits & layout::feature_raised_maximum) != 0;
    const std::uint64_t first_max = block.image_bytes_first_max;
    if (is_raised ? first_max < layout::image_bytes_min || first_max >= block.image_bytes_max || first_max % page_bytes != 0
                  : first_max != 0) {
        return corrupt_superblock(path, "image_bytes_first_max is {} where the maximum {}", first_max,
                                  is_raised ? "was raised to more" : "was never raised");
    }
    if (block.image_bytes < layout::image_bytes_min || block.image_bytes > block.image_bytes_max || block.image_bytes % page_bytes != 0) {
        return corrupt_superblock(path, "image_bytes is {}: not a multiple of {} from {} to {}", block.image_bytes, page_bytes,
                                  layout::image_bytes_min, block.image_bytes_max);
    }
    if (block.base_address % layout::base_address_alignment != 0) {
        return corrupt_superblock(path, "base_address {:#x} is not a multiple of {:#x}", block.base_address,
                                  layout::base_address_alignment);
    }
    // The subtraction cannot wrap: both operands of the comparison are at most window_bytes.
    if (block.base_address < window_base || block.base_address - window_base > window_bytes - block.image_bytes_max) {
        return corrupt_superblock(path, "base_address {:#x} with image_bytes_max {} leaves the window at {:#x}", block.base_address,
                                  block.image_bytes_max, window_base);
    }
    return {};
}

/// Segments cover the image without a hole, and lie in the file in ascending order, after
/// the engine area, without overlap. Holes in the file are allowed.
Result<void> validate_segments(const Superblock& block, std::string_view path)
{
    if (block.file_bytes % page_bytes != 0 || block.file_bytes / page_bytes > file_pages_max) {
        return corrupt_superblock(path, "file_bytes is {}", block.file_bytes);
    }
    const std::uint64_t file_pages = block.file_bytes / page_bytes;
    if (block.engine_area_first_page < layout::superblock_copies || block.engine_area_first_page > file_pages ||
        block.engine_area_pages > file_pages - block.engine_area_first_page) {
        return corrupt_superblock(path, "engine area of {} pages at page {} is not inside pages {} to {}", block.engine_area_pages,
                                  block.engine_area_first_page, layout::superblock_copies, file_pages);
    }
    if (block.segment_count == 0 || block.segment_count > layout::superblock_segments_max) {
        return corrupt_superblock(path, "segment_count is {}, not 1 to {}", block.segment_count, layout::superblock_segments_max);
    }
    const std::uint64_t image_pages = block.image_bytes / page_bytes;
    std::uint64_t next_image_page = 0;
    std::uint64_t next_file_page = block.engine_area_first_page + block.engine_area_pages;
    for (std::uint32_t i = 0; i < block.segment_count; ++i) {
        const layout::SegmentRecord& segment = block.segments[i];
        if (segment.first_image_page != next_image_page || segment.image_pages == 0 ||
            segment.image_pages > image_pages - next_image_page) {
            return corrupt_superblock(path, "segment {}: image pages {} + {} do not follow page {} of {}", i, segment.first_image_page,
                                      segment.image_pages, next_image_page, image_pages);
        }
        if (segment.first_file_page < next_file_page || segment.first_file_page > file_pages || segment.file_pages == 0 ||
            segment.file_pages > file_pages - segment.first_file_page) {
            return corrupt_superblock(path, "segment {}: file pages {} + {} are not inside pages {} to {}", i, segment.first_file_page,
                                      segment.file_pages, next_file_page, file_pages);
        }
        next_image_page += segment.image_pages;
        next_file_page = segment.first_file_page + segment.file_pages;
    }
    if (next_image_page != image_pages || next_file_page != file_pages) {
        return corrupt_superblock(path, "segments end at image page {} and file page {}, not at {} and {}", next_image_page, next_file_page,
                                  image_pages, file_pages);
    }
    const auto unused = std::span(block.segments).subspan(block.segment_count);
    if (!all_zero(unused.data(), unused.size_bytes())) {
        return corrupt_superblock(path, "segment records from {} on are not zero", block.segment_count);
    }
    return {};
}

}  // namespace

std::string_view to_text(SuperblockState state) noexcept
{
    switch (state) {
    case SuperblockState::good: return "good";
    case SuperblockState::zero: return "all zero";
    case SuperblockState::unfinished: return "marked as unfinished";
    case SuperblockState::foreign: return "without the magic number";
    case SuperblockState::damaged: return "damaged (its checksum does not hold)";
    case SuperblockState::unreadable: return "unreadable";
    }
    return "unknown";
}

bool valid_engine_name(std::string_view name) noexcept
{
    return !name.empty() && name.size() < sizeof(Superblock::engine_name) &&
           std::all_of(
               name.begin(), name.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'; });
}

std::uint64_t superblock_checksum(const Superblock& superblock) noexcept
{
    // The bytes on both sides of the field, each under its own seed, instead of a copy of the
    // page with the field cleared: this also runs on small thread stacks.
    const auto* bytes = reinterpret_cast<const std::byte*>(&superblock);
    constexpr std::size_t before = offsetof(Superblock, checksum);
    constexpr std::size_t after = before + sizeof(Superblock::checksum);
    const std::uint64_t head = checksum64(bytes, before, layout::superblock_checksum_seed);
    return checksum64(bytes + after, sizeof(Superblock) - after, head);
}

void seal_superblock(Superblock& superblock) noexcept { superblock.checksum = superblock_checksum(superblock); }

SuperblockState judge_superblock(const Superblock& copy) noexcept
{
    if (has_magic(copy, layout::superblock_magic)) {
        return copy.checksum == superblock_checksum(copy) || is_removed(Canary::superblock_checksum) ? SuperblockState::good
                                                                                                     : SuperblockState::damaged;
    }
    if (has_magic(copy, layout::unfinished_magic)) {
        return SuperblockState::unfinished;
    }
    return all_zero(&copy, sizeof copy) ? SuperblockState::zero : SuperblockState::foreign;
}

Result<std::size_t> choose_superblock(const SuperblockPair& pair, std::string_view path)
{
    const auto is = [&](std::size_t copy, SuperblockState state) { return pair.states[copy] == state; };
    const auto either = [&](SuperblockState state) { return is(0, state) || is(1, state); };
    using State = SuperblockState;

    if (is(0, State::good) && is(1, State::good)) {
        const std::uint64_t sequence0 = pair.copies[0].sequence;
        const std::uint64_t sequence1 = pair.copies[1].sequence;
        if (sequence0 == sequence1 && std::memcmp(&pair.copies[0], &pair.copies[1], sizeof pair.copies[0]) != 0) {
            return corrupt_superblock(path, "its two copies differ under one sequence number, {}", sequence0);
        }
        return std::size_t{sequence0 >= sequence1 ? 0U : 1U};
    }
    if (is(0, State::good)) {
        return std::size_t{0};
    }
    if (is(1, State::good)) {
        return std::size_t{1};
    }
    // Creation writes the marker to page 0 before it writes copy 1, and copy 0 last: a file
    // with the marker and no good copy never held anything.
    if (is(0, State::unfinished) || (is(0, State::zero) && is(1, State::zero))) {
        return fail(SP_E_NOT_A_POOL, 0,
                    "{}: not a pool: its creation was never finished, so it holds no data; delete "
                    "the file and start again",
                    path);
    }
    if (either(State::unreadable)) {
        return fail(SP_E_IO, 0,
                    "{}: no good superblock: copy 0 at offset 0 is {}, copy 1 at offset {} is {}; "
                    "check the disk, then restore the file from a copy",
                    path, to_text(pair.states[0]), page_bytes, to_text(pair.states[1]));
    }
    if (either(State::damaged)) {
        return fail(SP_E_POOL_CORRUPT, 0,
                    "{}: no good superblock: copy 0 at offset 0 is {}, copy 1 at offset {} is {}; "
                    "restore the file from a copy",
                    path, to_text(pair.states[0]), page_bytes, to_text(pair.states[1]));
    }
    if (has_magic(pair.copies[0], layout::increment_magic)) {
        return fail(SP_E_NOT_A_POOL, 0,
                    "{0}: not a pool: it is an increment; `stillpoint restore COPY {0} NEW` makes a pool of it and of the copy that it "
                    "follows, which `stillpoint info {0}` names",
                    path);
    }
    return fail(SP_E_NOT_A_POOL, 0, "{}: not a pool: no magic number in its first two pages; check the path", path);
}

Result<void> validate_superblock(const Superblock& superblock, std::string_view path)
{
    for (auto* const step : {validate_version, validate_identity, validate_image, validate_segments}) {
        if (auto checked = step(superblock, path); !checked) {
            return checked;
        }
    }
    return {};
}

}  // namespace stillpoint
