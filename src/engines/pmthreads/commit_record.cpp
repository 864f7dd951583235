#include "engines/pmthreads/commit_record.hpp"

#include <array>
#include <cstring>

#include "core/checksum.hpp"

namespace stillpoint::pmthreads {

namespace {

constexpr std::size_t copies = 2;

std::uint64_t record_checksum(const CommitRecord& record) noexcept
{
    return checksum64(&record, offsetof(CommitRecord, checksum), commit_magic);
}

bool is_valid(const CommitRecord& record, const Pool& pool, std::uint64_t parity) noexcept
{
    return record.magic == commit_magic && record.checksum == record_checksum(record) &&
           record.pool_uuid == pool.facts().uuid && record.parity == parity &&
           record.epoch % 2 == parity && record.epoch != 0;
}

std::uint64_t page_of(const Pool& pool, std::uint64_t parity, std::size_t copy) noexcept
{
    return pool.facts().engine_area_first_page + parity * copies + copy;
}

}  // namespace

Result<void> store_commit_record(Pool& pool, CommitRecord record)
{
    record.parity = static_cast<std::uint32_t>(record.epoch % 2);
    record.checksum = record_checksum(record);
    alignas(page_bytes) std::array<std::byte, copies * page_bytes> pages{};
    for (std::size_t copy = 0; copy < copies; ++copy) {
        std::memcpy(pages.data() + copy * page_bytes, &record, sizeof record);
    }
    const std::uint64_t offset = byte_offset(FilePage{page_of(pool, record.parity, 0)});
    Medium& medium = pool.medium();
    if (medium.byte_addressable()) {
        for (std::size_t copy = 0; copy < copies; ++copy) {
            medium.store(offset + copy * page_bytes, &record, sizeof record);
            medium.write_back(offset + copy * page_bytes, sizeof record);
        }
        return {};
    }
    const BlockWrite write{offset, pages.data(), pages.size()};
    return medium.write({&write, 1});
}

Result<std::optional<CommitRecord>> load_commit_record(const Pool& pool)
{
    std::optional<CommitRecord> newest;
    Failure unreadable;
    unsigned damaged_pairs = 0;
    for (std::uint64_t parity = 0; parity < 2; ++parity) {
        bool pair_has_bytes = false;
        bool pair_has_record = false;
        bool pair_is_unreadable = false;
        for (std::size_t copy = 0; copy < copies; ++copy) {
            CommitRecord record{};
            const std::uint64_t offset = byte_offset(FilePage{page_of(pool, parity, copy)});
            if (auto read = pool.medium().read(
                    offset, {reinterpret_cast<std::byte*>(&record), sizeof record});
                !read) {
                unreadable = read.error();  // The twin may do.
                pair_is_unreadable = true;
                continue;
            }
            const CommitRecord zero{};
            pair_has_bytes |= std::memcmp(&record, &zero, sizeof record) != 0;
            if (!is_valid(record, pool, parity)) {
                continue;
            }
            pair_has_record = true;
            if (!newest || record.epoch > newest->epoch) {
                newest = record;
            }
        }
        if (pair_is_unreadable && !pair_has_record) {
            return pass_on(unreadable);  // It may have held the newest epoch.
        }
        if (pair_has_bytes && !pair_has_record) {
            ++damaged_pairs;
        }
    }
    // An interrupted write damages one pair, and while the first epoch is written the other is empty.
    if (damaged_pairs == 2) {
        return fail(SP_E_POOL_CORRUPT, 0,
                    "{}: no commit record is valid (file pages {} to {}); restore the pool from a copy",
                    pool.medium().path(), page_of(pool, 0, 0), page_of(pool, 1, 1));
    }
    return newest;
}

}  // namespace stillpoint::pmthreads
