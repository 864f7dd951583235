#include "engines/respct/table_copies.hpp"

#include <cstring>

#include "arch/checksum.hpp"
#include "core/canary.hpp"
#include "engines/respct/file_place.hpp"

namespace stillpoint::respct {

namespace {

std::byte* page_aligned(std::vector<std::byte>& storage, std::uint64_t pages)
{
    storage.assign((pages + 1) * page_bytes, std::byte{0});
    return reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(storage.data()), page_bytes));
}

std::size_t newest_of(const CopyRecord& known) noexcept { return known.epoch[1] > known.epoch[0] ? 1 : 0; }

}  // namespace

CopyRecord& TableCopies::record(std::uint64_t page) noexcept { return reinterpret_cast<CopyRecord*>(records_)[page]; }

std::uint64_t table_seed(const Uuid& uuid) noexcept { return checksum64(&uuid, sizeof uuid, commit_magic); }

std::uint64_t checksum_of_copy(std::uint64_t seed, const std::byte* page, std::uint64_t number, std::uint64_t epoch) noexcept
{
    const std::uint64_t head[2] = {number, epoch};
    return checksum64(page, page_bytes, checksum64(head, sizeof head, seed));
}

std::uint64_t digest_of_record(std::uint64_t page, const CopyRecord& known) noexcept
{
    const std::size_t copy = newest_of(known);
    return known.epoch[copy] == 0 ? 0 : mix64(mix64(page, known.epoch[copy]), known.checksum[copy]);
}

Result<void> TableCopies::load(const Pool& pool, const ImageGeometry& geometry, const Committed& committed, std::byte* image,
                               Findings* findings)
{
    geometry_ = geometry;
    image_ = image;
    seed_ = table_seed(pool.facts().uuid);
    const std::uint64_t pages = geometry.table_pages;
    dirty_ = std::vector<std::atomic<bool>>(pages);
    captured_pages_.reserve(pages);
    captured_ = page_aligned(captured_storage_, pages);
    const std::uint64_t record_pages = round_up(pages * sizeof(CopyRecord), page_bytes) / page_bytes;
    records_ = page_aligned(record_storage_, record_pages);
    stale_record_pages_.assign(record_pages, false);
    for (std::uint64_t page = 0; page < record_pages; ++page) {
        const std::uint64_t offset = file_offset_of(pool, geometry.copy_records_offset / page_bytes + page);
        if (auto read = pool.medium().read(offset, {records_ + page * page_bytes, page_bytes}); !read) {
            return read;
        }
    }
    for (std::uint64_t page = 0; page < pages; ++page) {
        auto loaded = load_page(pool, page, committed.epoch);
        digest_ ^= digest_of(page);
        if (!loaded && loaded.error().code == SP_E_POOL_CORRUPT) {
            loaded = found(findings, pass_on(loaded.error()));
        }
        if (!loaded) {
            return loaded;
        }
    }
    if (digest_ != committed.digest && !is_removed(Canary::table_records_digest)) {
        return found(findings,
                     fail(SP_E_POOL_CORRUPT, 0,
                          "{}: the records of the pool's tables do not match the commit record of epoch {}; restore the pool from a copy",
                          pool.medium().path(), committed.epoch));
    }
    return {};
}

Result<void> TableCopies::load_page(const Pool& pool, std::uint64_t page, std::uint64_t durable)
{
    CopyRecord& known = record(page);
    for (std::size_t copy = 0; copy < 2; ++copy) {
        if (known.epoch[copy] > durable) {  // Not committed.
            known.epoch[copy] = 0;
            known.checksum[copy] = 0;
            stale_record_pages_[page * sizeof(CopyRecord) / page_bytes] = true;
        }
    }
    const std::size_t newest = newest_of(known);
    if (known.epoch[newest] == 0) {
        return {};
    }
    const std::uint64_t image_page = page + (newest == 1 ? geometry_.copies_offset / page_bytes : 0);
    std::byte* const bytes = image_ + page * page_bytes;
    if (auto read = pool.medium().read(file_offset_of(pool, image_page), {bytes, page_bytes}); !read) {
        return read;
    }
    if (checksum_of(bytes, page, known.epoch[newest]) != known.checksum[newest] && !is_removed(Canary::table_copy_checksum)) {
        return fail(SP_E_POOL_CORRUPT, 0,
                    "{}: image page {} (a table of the pool) does not have the checksum of epoch {}; restore the pool from a copy",
                    pool.medium().path(), page, known.epoch[newest]);
    }
    return {};
}

void TableCopies::note(const void* address, std::size_t size_bytes) noexcept
{
    const auto begin = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - image_);
    for (std::uint64_t page = begin / page_bytes; page <= (begin + size_bytes - 1) / page_bytes && page < geometry_.table_pages; ++page) {
        dirty_[page].store(true, std::memory_order_relaxed);
    }
    changed_.store(true, std::memory_order_relaxed);
}

void TableCopies::capture() noexcept
{
    captured_pages_.clear();
    if (!changed_.exchange(false, std::memory_order_relaxed)) {
        return;
    }
    for (std::uint64_t page = 0; page < geometry_.table_pages; ++page) {
        if (dirty_[page].exchange(false, std::memory_order_relaxed)) {
            std::memcpy(captured_ + captured_pages_.size() * page_bytes, image_ + page * page_bytes, page_bytes);
            captured_pages_.push_back(page);
        }
    }
}

Result<void> TableCopies::write(Pool& pool, std::uint64_t epoch)
{
    for (std::size_t page = 0; page < stale_record_pages_.size() && !is_removed(Canary::table_records_cleared); ++page) {
        if (stale_record_pages_[page]) {
            stale_record_pages_[page] = false;
            if (auto written = write_record_page(pool, page); !written) {
                return written;
            }
        }
    }
    for (std::size_t i = 0; i < captured_pages_.size() && !is_removed(Canary::table_copy_write); ++i) {
        if (auto written = write_page(pool, captured_pages_[i], captured_ + i * page_bytes, epoch); !written) {
            return written;
        }
    }
    return {};
}

Result<void> TableCopies::write_page(Pool& pool, std::uint64_t page, const std::byte* bytes, std::uint64_t epoch)
{
    CopyRecord& known = record(page);
    const std::size_t older = known.epoch[0] > known.epoch[1] ? 1 : 0;
    const std::size_t copy = is_removed(Canary::table_copy_turns) ? 0 : older;
    digest_ ^= digest_of(page);
    known.epoch[copy] = epoch;
    known.checksum[copy] = checksum_of(bytes, page, epoch);
    digest_ ^= digest_of(page);
    const std::uint64_t image_page = page + (copy == 1 ? geometry_.copies_offset / page_bytes : 0);
    const std::uint64_t record_page = page * sizeof(CopyRecord) / page_bytes;
    const BlockWrite write{file_offset_of(pool, image_page), bytes, page_bytes};
    if (auto written = pool.medium().write({&write, 1}); !written) {
        return written;
    }
    return write_record_page(pool, record_page);
}

Result<void> TableCopies::write_record_page(Pool& pool, std::uint64_t record_page)
{
    const std::uint64_t image_page = geometry_.copy_records_offset / page_bytes + record_page;
    const BlockWrite write{file_offset_of(pool, image_page), records_ + record_page * page_bytes, page_bytes};
    return pool.medium().write({&write, 1});
}

}  // namespace stillpoint::respct
