#include "pool/pool.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "core/canary.hpp"
#include "os/clock.hpp"
#include "pool/growth.hpp"
#include "pool/superblock.hpp"

namespace stillpoint {
namespace {

using layout::Superblock;
static_assert(Pool::segments_max == layout::superblock_segments_max);
static_assert(Pool::image_bytes_min == layout::image_bytes_min);

/// Source of zero writes.
constexpr std::size_t zero_bytes = 64 * kib;
alignas(page_bytes) const std::byte zeroes[zero_bytes] = {};

template <class... Args>
auto invalid(fmt::format_string<Args...> format, Args&&... args)
{
    return fail(SP_E_INVALID_ARGUMENT, 0, format, std::forward<Args>(args)...);
}

Result<void> write_zeroes(Medium& medium, std::uint64_t begin, std::uint64_t end)
{
    std::array<BlockWrite, 16> batch;
    while (begin < end) {
        std::size_t count = 0;
        for (; count < batch.size() && begin < end; ++count) {
            const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(zero_bytes, end - begin));
            batch[count] = {begin, zeroes, size};
            begin += size;
        }
        if (auto written = medium.write({batch.data(), count}); !written) {
            return written;
        }
    }
    return {};
}

/// File pages that `format` wants for a segment, or the failure where the number is absurd.
Result<std::uint64_t> segment_file_pages(const EngineFormat& format, std::uint64_t first_image_page, std::uint64_t image_pages,
                                         std::uint64_t image_bytes_max)
{
    const std::uint64_t file_pages = format.file_pages_for(first_image_page, image_pages, image_bytes_max);
    // 64 TiB: far above two copies of the largest image, far below any overflow.
    if (file_pages == 0 || file_pages > (std::uint64_t{1} << 34)) {
        return invalid("engine {}: {} file pages for a segment of {} image pages", format.name, file_pages, image_pages);
    }
    return file_pages;
}

Result<void> check_options(const Pool::CreateOptions& options)
{
    const EngineFormat& format = options.format;
    if (!valid_engine_name(format.name) || format.segment_file_pages == nullptr) {
        return invalid("engine name \"{}\" is not 1 to 15 characters of a-z, 0-9, '-' and '_', or "
                       "the engine does not size its segments",
                       format.name);
    }
    if (format.area_pages > (std::uint64_t{1} << 34)) {
        return invalid("engine {}: an area of {} pages", format.name, format.area_pages);
    }
    if (options.image_bytes % page_bytes != 0 || options.image_bytes < Pool::image_bytes_min) {
        return invalid("pool size {} is not a multiple of {} from {} on", options.image_bytes, page_bytes, Pool::image_bytes_min);
    }
    if (options.image_bytes_max % page_bytes != 0 || options.image_bytes_max < options.image_bytes ||
        options.image_bytes_max > window_bytes) {
        return invalid("pool maximum {} is not a multiple of {} from {} (the size) to {}", options.image_bytes_max, page_bytes,
                       options.image_bytes, window_bytes);
    }
    if (options.base_address % layout::base_address_alignment != 0 || options.base_address < window_base ||
        options.base_address - window_base > window_bytes - options.image_bytes_max) {
        return invalid("base address {:#x} is not a multiple of {:#x}, or {} bytes from there leave "
                       "the window at {:#x}",
                       options.base_address, layout::base_address_alignment, options.image_bytes_max, window_base);
    }
    return {};
}

/// Reads both copies. One that the medium cannot read counts as damaged.
SuperblockPair read_pair(const Medium& medium)
{
    SuperblockPair pair{};
    for (std::size_t copy = 0; copy < layout::superblock_copies; ++copy) {
        Superblock& block = pair.copies[copy];
        const auto read = medium.read(copy * page_bytes, std::as_writable_bytes(std::span(&block, 1)));
        pair.states[copy] = read ? judge_superblock(block) : SuperblockState::unreadable;
    }
    return pair;
}

/// A file too short for two superblocks.
tl::unexpected<Failure> too_short(const Medium& medium)
{
    const std::uint64_t size = medium.size_bytes();
    if (size == 0) {
        return fail(SP_E_NOT_A_POOL, 0, "{}: not a pool: the file is empty; delete it, or check the path", medium.path());
    }
    std::uint8_t magic[sizeof layout::superblock_magic] = {};
    const bool readable = size >= sizeof magic && medium.read(0, std::as_writable_bytes(std::span(magic))).has_value();
    if (readable && std::memcmp(magic, layout::superblock_magic, sizeof magic) == 0) {
        return fail(SP_E_POOL_TRUNCATED, 0,
                    "{}: the file was cut to {} bytes, less than its superblocks; restore it from a "
                    "copy",
                    medium.path(), size);
    }
    return fail(SP_E_NOT_A_POOL, 0, "{}: not a pool: the file has only {} bytes; check the path", medium.path(), size);
}

}  // namespace

void Pool::SuperblockDeleter::operator()(Superblock* superblock) const noexcept
{
    ::operator delete(superblock, std::align_val_t{page_bytes});
}

Pool::SuperblockPointer Pool::new_superblock()
{
    void* page = ::operator new(sizeof(Superblock), std::align_val_t{page_bytes}, std::nothrow);
    return SuperblockPointer(page == nullptr ? nullptr : ::new (page) Superblock{});
}

Result<Segment> Pool::first_segment(const CreateOptions& options)
{
    if (auto checked = check_options(options); !checked) {
        return pass_on(checked.error());
    }
    const std::uint64_t image_pages = options.image_bytes / page_bytes;
    const std::uint64_t first_page = options.format.first_segment_page(layout::superblock_copies + options.format.area_pages);
    return segment_file_pages(options.format, 0, image_pages, options.image_bytes_max).map([&](std::uint64_t file_pages) {
        return Segment{0, image_pages, first_page, file_pages};
    });
}

Result<std::uint64_t> Pool::file_bytes_for(const CreateOptions& options)
{
    return first_segment(options).map([](const Segment& first) { return (first.first_file_page + first.file_pages) * page_bytes; });
}

TwoFileRanges Pool::bytes_without_room(const CreateOptions& options, Room room)
{
    const auto first = first_segment(options);
    const auto [one, two] = first ? options.format.without_room(*first, options.image_bytes_max, room) : TwoFilePageRanges{};
    return {one.bytes(), two.bytes()};
}

Result<Pool> Pool::create(std::unique_ptr<Medium> medium, const CreateOptions& options)
{
    const auto first = first_segment(options);
    if (!first) {
        return pass_on(first.error());
    }
    const std::uint64_t file_bytes = (first->first_file_page + first->file_pages) * page_bytes;
    if (medium->size_bytes() < file_bytes) {
        return invalid("{}: {} bytes are too few for this pool, it needs {}", medium->path(), medium->size_bytes(), file_bytes);
    }
    Pool pool;
    pool.superblock_ = new_superblock();
    if (pool.superblock_ == nullptr) {
        return fail(SP_E_NO_MEMORY, ENOMEM, "{}: no memory for a superblock", medium->path());
    }
    Superblock& block = *pool.superblock_;
    std::memcpy(block.magic, layout::superblock_magic, sizeof block.magic);
    block.format_version = layout::pool_format_version;
    block.superblock_bytes = sizeof block;
    if (auto drawn = draw_uuid(); !drawn) {
        return pass_on(drawn.error());
    } else {
        std::copy(drawn->begin(), drawn->end(), block.uuid);
    }
    std::memcpy(block.engine_name, options.format.name.data(), options.format.name.size());
    block.engine_layout_version = options.format.layout_version;
    block.page_bytes = page_bytes;
    block.base_address = options.base_address;
    block.image_bytes = options.image_bytes;
    block.image_bytes_max = options.image_bytes_max;
    block.generation = 1;
    block.file_bytes = file_bytes;
    block.engine_area_first_page = layout::superblock_copies;
    block.engine_area_pages = options.format.area_pages;
    block.created_unix_seconds = os::wall_clock_ns() / 1'000'000'000u;
    block.durability = static_cast<std::uint32_t>(medium->durability());
    block.segment_count = 1;
    block.segments[0] = {first->first_image_page, first->image_pages, first->first_file_page, first->file_pages};

    pool.medium_ = std::move(medium);
    pool.take_facts();
    if (auto formatted = pool.format_medium(options); !formatted) {
        return pass_on(formatted.error());
    }
    return pool;
}

/// Marker and zeroes, sync, then the superblocks: a crash before the first good superblock
/// leaves the marker or nothing, and never a pool with an engine area that is not zero.
Result<void> Pool::format_medium(const CreateOptions& options)
{
    const SuperblockPointer page = new_superblock();
    if (page == nullptr) {
        return fail(SP_E_NO_MEMORY, ENOMEM, "{}: no memory for a superblock", medium_->path());
    }
    const layout::UnfinishedMarker marker = [] {
        layout::UnfinishedMarker made{};
        std::memcpy(made.magic, layout::unfinished_magic, sizeof made.magic);
        made.format_version = layout::pool_format_version;
        return made;
    }();
    std::memcpy(static_cast<void*>(page.get()), &marker, sizeof marker);
    const BlockWrite write{0, reinterpret_cast<const std::byte*>(page.get()), page_bytes};
    if (!is_removed(Canary::unfinished_marker)) {
        if (auto written = medium_->write({&write, 1}); !written) {
            return written;
        }
    }
    // Page 1 as well: a file that was not fresh must not keep an old superblock there.
    const std::uint64_t area_end = (superblock_->engine_area_first_page + superblock_->engine_area_pages) * page_bytes;
    if (!is_removed(Canary::area_zeroes)) {
        if (auto zeroed = write_zeroes(*medium_, page_bytes, area_end); !zeroed) {
            return zeroed;
        }
    }
    if (options.write_image != nullptr) {
        if (auto written = options.write_image(*this); !written) {
            return written;
        }
    }
    if (!is_removed(Canary::format_sync)) {
        if (auto synced = medium_->sync(); !synced) {
            return synced;
        }
    }
    return write_superblocks();
}

Result<Pool> Pool::open(std::unique_ptr<Medium> medium, const EngineFormat& expected, bool read_only, bool record_later)
{
    if (medium->size_bytes() < layout::superblock_copies * page_bytes) {
        return too_short(*medium);
    }
    const SuperblockPair pair = read_pair(*medium);
    const auto chosen = choose_superblock(pair, medium->path());
    if (!chosen) {
        return pass_on(chosen.error());
    }
    if (auto valid = validate_superblock(pair.copies[*chosen], medium->path()); !valid) {
        return pass_on(valid.error());
    }
    Pool pool;
    pool.superblock_ = new_superblock();
    if (pool.superblock_ == nullptr) {
        return fail(SP_E_NO_MEMORY, ENOMEM, "{}: no memory for a superblock", medium->path());
    }
    *pool.superblock_ = pair.copies[*chosen];
    pool.medium_ = std::move(medium);
    pool.read_only_ = read_only;
    pool.first_copy_ = 1 - *chosen;
    const std::uint64_t size = pool.medium_->size_bytes();
    if (size < pool.superblock_->file_bytes) {
        return fail(SP_E_POOL_TRUNCATED, 0,
                    "{}: the file has {} bytes, its superblock says {}: its end is missing; restore "
                    "it from a copy",
                    pool.medium_->path(), size, pool.superblock_->file_bytes);
    }
    if (auto checked = pool.check_engine(expected); !checked) {
        return pass_on(checked.error());
    }
    pool.medium_->set_durability(static_cast<Durability>(pool.superblock_->durability));
    pool.take_facts();
    pool.facts_.superblock_damaged = pair.states[1 - *chosen] != SuperblockState::good;
    if (read_only) {
        return pool;
    }
    ++pool.superblock_->generation;
    pool.facts_.generation = pool.superblock_->generation;
    pool.opening_unrecorded_ = true;
    if (!record_later) {
        if (auto recorded = pool.record_opening(); !recorded) {
            return pass_on(recorded.error());
        }
    }
    return pool;
}

/// Whether the engine that opens the pool can trust its areas to have the sizes it expects.
Result<void> Pool::check_engine(const EngineFormat& expected) const
{
    if (expected.name.empty()) {
        return {};
    }
    const Superblock& block = *superblock_;
    if (expected.name != std::string_view(block.engine_name)) {
        return fail(SP_E_POOL_ENGINE, 0, "{}: the pool belongs to engine {}, not to {}; run it with --engine {}", medium_->path(),
                    block.engine_name, expected.name, block.engine_name);
    }
    if (block.engine_layout_version > expected.layout_version) {
        return fail(SP_E_POOL_VERSION, 0,
                    "{}: the pool has layout version {} of engine {}, this library reads up to "
                    "version {}; use a newer Stillpoint",
                    medium_->path(), block.engine_layout_version, expected.name, expected.layout_version);
    }
    if (block.engine_layout_version < expected.layout_version) {
        return fail(SP_E_POOL_VERSION, 0,
                    "{}: an older Stillpoint made this pool: layout version {} of engine {}, this one reads version {}; "
                    "copy its data with the version that made it, or delete the file for an empty pool",
                    medium_->path(), block.engine_layout_version, expected.name, expected.layout_version);
    }
    if (block.engine_area_pages < expected.area_pages) {
        return fail(SP_E_POOL_CORRUPT, 0, "{}: engine area of {} pages, {} needs {}", medium_->path(), block.engine_area_pages,
                    expected.name, expected.area_pages);
    }
    for (std::uint32_t i = 0; expected.segment_file_pages != nullptr && i < block.segment_count; ++i) {
        const layout::SegmentRecord& segment = block.segments[i];
        const std::uint64_t needed = expected.file_pages_for(segment.first_image_page, segment.image_pages, first_maximum(block));
        if (segment.file_pages < needed) {
            return fail(SP_E_POOL_CORRUPT, 0, "{}: segment {} has {} file pages for {} image pages, {} needs {}", medium_->path(), i,
                        segment.file_pages, segment.image_pages, expected.name, needed);
        }
    }
    return {};
}

Result<void> Pool::grow(std::uint64_t image_bytes, const EngineFormat& format)
{
    if (read_only_ || frozen_) {
        return fail(SP_E_POOL_READ_ONLY, 0, "{}: cannot grow: {}", medium_->path(),
                    read_only_ ? "the pool is open for reading only" : "an earlier write of its superblock failed");
    }
    const std::uint64_t present = facts_.image_bytes;
    const std::uint64_t maximum = superblock_->image_bytes_max;
    if (image_bytes > maximum || present == maximum) {
        return fail(SP_E_POOL_FULL, 0,
                    "{}: {} bytes of durable memory asked, the pool's maximum is {}; end the program and raise it: `stillpoint grow`",
                    medium_->path(), image_bytes, maximum);
    }
    if (segment_count_ == segments_max) {
        return fail(SP_E_POOL_FULL, 0, "{}: all {} segments are in use at {} of at most {} bytes", medium_->path(), segments_max, present,
                    maximum);
    }
    const std::uint64_t least = std::min(maximum, round_up(std::max(image_bytes, present + 1), growth::granule_bytes));
    if (opening_unrecorded_) {
        return plan_segment(least, format);
    }
    const std::uint64_t wanted = std::max(least, growth::next_of_few(present, maximum, segments_max - segment_count_));
    auto grown = append_segment(wanted, format);
    // A disk that is nearly full may still hold what was asked for; but small segments must not
    // use up the records that the way to the maximum needs.
    const bool spare = superblock_->segment_count + 1 + growth::segments_to_maximum(least, maximum) <= segments_max;
    if (!grown && grown.error().code == SP_E_NO_SPACE && !frozen_ && least < wanted && spare) {
        grown = append_segment(least, format);
    }
    return grown;
}

/// The start that needs the segment may still be refused, and leaves the pool as it was: record_opening() appends it.
Result<void> Pool::plan_segment(std::uint64_t new_image_bytes, const EngineFormat& format)
{
    const std::uint64_t first_image_page = facts_.image_bytes / page_bytes;
    const std::uint64_t image_pages = new_image_bytes / page_bytes - first_image_page;
    const auto file_pages = segment_file_pages(format, first_image_page, image_pages, facts_.image_bytes_max);
    if (!file_pages) {
        return pass_on(file_pages.error());
    }
    segments_[segment_count_++] = {first_image_page, image_pages, facts_.file_bytes / page_bytes, *file_pages};
    facts_.image_bytes = new_image_bytes;
    facts_.file_bytes += *file_pages * page_bytes;
    return {};
}

/// A planned segment gets its room in the file, and its records in the superblock that is about to be written.
Result<void> Pool::append_planned_segments()
{
    if (segment_count_ == superblock_->segment_count) {
        return {};
    }
    const std::uint64_t old_end = superblock_->file_bytes;
    const std::uint64_t file_size = medium_->size_bytes();
    if (file_size < facts_.file_bytes) {
        if (auto resized = medium_->resize(facts_.file_bytes); !resized) {
            return resized;
        }
    }
    if (auto zeroed = zero_leftover(old_end, std::min(file_size, facts_.file_bytes)); !zeroed) {
        return zeroed;
    }
    for (; superblock_->segment_count < segment_count_; ++superblock_->segment_count) {
        const Segment& segment = segments_[superblock_->segment_count];
        superblock_->segments[superblock_->segment_count] = {segment.first_image_page, segment.image_pages, segment.first_file_page,
                                                             segment.file_pages};
    }
    superblock_->image_bytes = facts_.image_bytes;
    superblock_->file_bytes = facts_.file_bytes;
    return {};
}

Result<void> Pool::append_segment(std::uint64_t new_image_bytes, const EngineFormat& format)
{
    const std::uint64_t first_image_page = superblock_->image_bytes / page_bytes;
    const std::uint64_t image_pages = new_image_bytes / page_bytes - first_image_page;
    const auto file_pages = segment_file_pages(format, first_image_page, image_pages, facts_.image_bytes_max);
    if (!file_pages) {
        return pass_on(file_pages.error());
    }
    const std::uint64_t old_end = superblock_->file_bytes;
    const std::uint64_t file_size = medium_->size_bytes();
    const Segment segment{first_image_page, image_pages, old_end / page_bytes, *file_pages};
    const std::uint64_t new_end = (segment.first_file_page + segment.file_pages) * page_bytes;
    if (file_size < new_end) {
        const FilePageRange last = format.without_room(segment, facts_.image_bytes_first_max, medium_->room()).back();
        if (auto resized = medium_->resize_with_room(new_end, last.is_empty() ? new_end : last.bytes().begin); !resized) {
            return resized;
        }
    }
    if (auto zeroed = zero_leftover(old_end, std::min(file_size, new_end)); !zeroed) {
        return zeroed;
    }
    const std::uint32_t index = superblock_->segment_count++;
    superblock_->segments[index] = {segment.first_image_page, segment.image_pages, segment.first_file_page, segment.file_pages};
    superblock_->image_bytes = new_image_bytes;
    superblock_->file_bytes = new_end;
    if (auto written = write_superblocks(); !written) {
        // Frozen now: the old facts stay, and nothing builds on a size that may not be durable.
        superblock_->segments[index] = {};
        superblock_->segment_count = index;
        superblock_->image_bytes = first_image_page * page_bytes;
        superblock_->file_bytes = old_end;
        return written;
    }
    return {};
}

/// A file may be longer than its superblock says: a growth that crashed, bytes that were appended, or a
/// smaller copy of the pool that was written over it. In that case the leftover table pages have sound checksums,
/// and epochs that the pool will come to again. Engines rely on a new segment being zero, so what is not is
/// overwritten.
Result<void> Pool::zero_leftover(std::uint64_t begin, std::uint64_t end)
{
    bool wrote = false;
    std::array<std::byte, page_bytes> found;  // On the stack: a program's thread may be here.
    for (std::uint64_t offset = begin; offset < end; offset += page_bytes) {
        // A file may end inside a page if it was not this library that made it longer.
        const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(page_bytes, end - offset));
        if (auto read = medium_->read(offset, std::span(found).first(size)); !read) {
            return read;
        }
        if (std::memcmp(found.data(), zeroes, size) != 0 && !is_removed(Canary::leftover_zeroes)) {
            if (auto written = write_zeroes(*medium_, offset, offset + page_bytes); !written) {
                frozen_ = true;
                return written;
            }
            wrote = true;
        }
    }
    if (medium_->byte_addressable() && begin < end) {
        medium_->write_back(begin, end - begin);  // Zeroes of a process that was killed may be in the CPU's caches only.
        wrote = true;
    }
    if (wrote && !is_removed(Canary::leftover_sync)) {
        if (auto synced = medium_->sync(); !synced) {
            frozen_ = true;
            return synced;
        }
    }
    return {};
}

/// No malloc: an engine name fits in the string itself.
void Pool::take_facts()
{
    const Superblock& block = *superblock_;
    std::copy(std::begin(block.uuid), std::end(block.uuid), facts_.uuid.begin());
    facts_.format_version = block.format_version;
    facts_.engine_name = block.engine_name;
    facts_.engine_layout_version = block.engine_layout_version;
    facts_.durability = static_cast<Durability>(block.durability);
    facts_.feature_bits = block.feature_bits;
    facts_.base_address = block.base_address;
    facts_.image_bytes = block.image_bytes;
    facts_.image_bytes_max = block.image_bytes_max;
    facts_.image_bytes_first_max = first_maximum(block);
    facts_.generation = block.generation;
    facts_.file_bytes = block.file_bytes;
    facts_.engine_area_first_page = block.engine_area_first_page;
    facts_.engine_area_pages = block.engine_area_pages;
    facts_.created_unix_seconds = block.created_unix_seconds;
    segment_count_ = block.segment_count;
    for (std::size_t i = 0; i < segment_count_; ++i) {
        const layout::SegmentRecord& record = block.segments[i];
        segments_[i] = {record.first_image_page, record.image_pages, record.first_file_page, record.file_pages};
    }
}

}  // namespace stillpoint
