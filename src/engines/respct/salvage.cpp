#include "engines/respct/salvage.hpp"

#include <array>
#include <memory>
#include <vector>

#include "engines/respct/file_place.hpp"
#include "engines/respct/recovery.hpp"
#include "engines/respct/table_copies.hpp"
#include "pool/commit_record.hpp"

namespace stillpoint::respct {

namespace {

struct alignas(page_bytes) Page : std::array<std::byte, page_bytes> {};

/// The state of a page of the tables.
struct Verdict {
    std::array<bool, 2> verifies{};  ///< copies that are committed and have their checksum
    bool is_suspect = false;  ///< its record may be damaged: a copy that it names does not verify, or was never committed
};

class Salvage {
public:
    Salvage(Pool& pool, const CommitRecord& record)
        : pool_(pool), record_(record), geometry_(geometry_of(pool.facts())), seed_(table_seed(pool.facts().uuid)),
          record_pages_(round_up(geometry_.table_pages * sizeof(CopyRecord), page_bytes) / page_bytes), records_(record_pages_),
          verdicts_(geometry_.table_pages)
    {
    }
    [[nodiscard]] Result<SalvageReport> run();

private:
    [[nodiscard]] CopyRecord& known(std::uint64_t page) noexcept
    {
        constexpr std::uint64_t records_of_page = page_bytes / sizeof(CopyRecord);
        return reinterpret_cast<CopyRecord*>(records_[page / records_of_page].data())[page % records_of_page];
    }
    [[nodiscard]] std::uint64_t place_of(std::uint64_t page, std::size_t copy) const noexcept
    {
        return file_offset_of(pool_, page + (copy == 1 ? geometry_.copies_offset / page_bytes : 0));
    }
    [[nodiscard]] Result<void> read_copies();
    [[nodiscard]] Result<void> examine(std::uint64_t page);
    /// True: the digest of the commit record proves which copies are in force, with one record made again where that must be. Errors: io.
    [[nodiscard]] Result<bool> explain_digest();
    /// If the record of that page alone is damaged: the digest says which copy it named, and the copy has its own checksum. Errors: io.
    [[nodiscard]] Result<bool> make_record_again(std::uint64_t page);
    void judge(std::uint64_t page);
    void list(std::uint64_t page, std::uint64_t epoch);
    [[nodiscard]] std::uint64_t digest();
    [[nodiscard]] Result<void> write();

    Pool& pool_;
    CommitRecord record_;
    ImageGeometry geometry_;
    std::uint64_t seed_;
    std::uint64_t record_pages_;
    std::vector<Page> records_;
    std::vector<Verdict> verdicts_;
    SalvageReport report_;
};

Result<void> Salvage::examine(std::uint64_t page)
{
    CopyRecord& record = known(page);
    Verdict& verdict = verdicts_[page];
    for (std::size_t copy = 0; copy < 2; ++copy) {
        if (record.epoch[copy] == 0) {
            verdict.is_suspect = verdict.is_suspect || record.checksum[copy] != 0;
            continue;
        }
        Page bytes;
        if (auto read = pool_.medium().read(place_of(page, copy), bytes); !read) {
            return read;
        }
        const bool is_committed = record.epoch[copy] <= record_.epoch;
        verdict.verifies[copy] = is_committed && checksum_of_copy(seed_, bytes.data(), page, record.epoch[copy]) == record.checksum[copy];
        verdict.is_suspect = verdict.is_suspect || !verdict.verifies[copy];
    }
    return {};
}

Result<void> Salvage::read_copies()
{
    for (std::uint64_t page = 0; page < record_pages_; ++page) {
        const std::uint64_t offset = file_offset_of(pool_, geometry_.copy_records_offset / page_bytes + page);
        if (auto read = pool_.medium().read(offset, records_[page]); !read) {
            return read;
        }
    }
    for (std::uint64_t page = 0; page < geometry_.table_pages; ++page) {
        if (auto examined = examine(page); !examined) {
            return examined;
        }
    }
    return {};
}

/// As recovery counts it: without copies that were never committed.
std::uint64_t digest_of_committed(std::uint64_t page, CopyRecord record, std::uint64_t durable) noexcept
{
    for (std::size_t copy = 0; copy < 2; ++copy) {
        record.epoch[copy] = record.epoch[copy] > durable ? 0 : record.epoch[copy];
    }
    return digest_of_record(page, record);
}

std::uint64_t Salvage::digest()
{
    std::uint64_t digest = 0;
    for (std::uint64_t page = 0; page < geometry_.table_pages; ++page) {
        digest ^= digest_of_committed(page, known(page), record_.epoch);
    }
    return digest;
}

/// Epochs that a record says, and those from which one bit is another. The digest decides.
std::vector<std::uint64_t> likely_epochs(const CopyRecord& record)
{
    std::vector<std::uint64_t> epochs(record.epoch.begin(), record.epoch.end());
    for (const std::uint64_t epoch : record.epoch) {
        for (unsigned bit = 0; bit < 64; ++bit) {
            epochs.push_back(epoch ^ std::uint64_t{1} << bit);
        }
    }
    return epochs;
}

Result<bool> Salvage::make_record_again(std::uint64_t page)
{
    CopyRecord& record = known(page);
    const std::uint64_t wanted = record_.table_digest ^ digest() ^ digest_of_committed(page, record, record_.epoch);
    for (std::size_t copy = 0; copy < 2; ++copy) {
        Page bytes;
        if (auto read = pool_.medium().read(place_of(page, copy), bytes); !read) {
            return pass_on(read.error());
        }
        for (const std::uint64_t epoch : likely_epochs(record)) {
            if (epoch == 0 || epoch > record_.epoch) {
                continue;
            }
            CopyRecord made{};
            made.epoch[copy] = epoch;
            made.checksum[copy] = checksum_of_copy(seed_, bytes.data(), page, epoch);
            if (digest_of_record(page, made) == wanted) {
                record = made;
                verdicts_[page].verifies = {copy == 0, copy == 1};
                return true;
            }
        }
    }
    return false;
}

Result<bool> Salvage::explain_digest()
{
    if (digest() == record_.table_digest) {
        return true;
    }
    for (std::uint64_t page = 0; page < geometry_.table_pages; ++page) {
        if (!verdicts_[page].is_suspect) {
            continue;
        }
        if (auto made = make_record_again(page); !made || *made) {
            return made;
        }
    }
    return false;
}

void Salvage::list(std::uint64_t page, std::uint64_t epoch)
{
    (epoch == 0 ? report_.pages_lost : report_.pages_older) += 1;
    auto& unsound = report_.unsound;
    if (!unsound.empty() && unsound.back().first_page + unsound.back().pages == page && unsound.back().epoch == epoch) {
        ++unsound.back().pages;
    } else {
        unsound.push_back({page, 1, epoch});
    }
}

void Salvage::judge(std::uint64_t page)
{
    CopyRecord& record = known(page);
    const std::array<bool, 2>& verifies = verdicts_[page].verifies;
    for (std::size_t copy = 0; copy < 2; ++copy) {
        if (record.epoch[copy] > record_.epoch) {  // A crash has left it, or it is damaged.
            record.epoch[copy] = 0;
        }
    }
    const bool has_copies = record.epoch[0] != 0 || record.epoch[1] != 0;
    const std::size_t newest = record.epoch[1] > record.epoch[0] ? 1 : 0;
    const std::size_t kept = verifies[newest] ? newest : 1 - newest;
    for (std::size_t copy = 0; copy < 2; ++copy) {
        if (copy != kept || !verifies[copy]) {
            record.epoch[copy] = 0;
            record.checksum[copy] = 0;
        }
    }
    if (!verifies[kept]) {
        if (has_copies || !report_.tables_proved) {  // Without copies that were committed the page is one of zeroes.
            list(page, 0);
        }
    } else if (report_.tables_proved && kept == newest) {
        ++report_.pages_sound;
    } else {
        list(page, record.epoch[kept]);
    }
}

Result<void> Salvage::write()
{
    for (std::uint64_t page = 0; page < record_pages_; ++page) {
        const BlockWrite write{file_offset_of(pool_, geometry_.copy_records_offset / page_bytes + page), records_[page].data(), page_bytes};
        if (auto written = pool_.medium().write({&write, 1}); !written) {
            return written;
        }
    }
    // The record of the epoch before has another digest, and is not in force again.
    const Page zeroes{};
    const std::uint64_t pair = pool_.facts().engine_area_first_page + (1 - record_.epoch % 2) * 2;
    for (std::uint64_t copy = 0; copy < 2; ++copy) {
        const BlockWrite write{(pair + copy) * page_bytes, zeroes.data(), page_bytes};
        if (auto written = pool_.medium().write({&write, 1}); !written) {
            return written;
        }
    }
    if (auto dropped = drop_epochs_from(pool_, record_.epoch + 1); !dropped) {
        return dropped;
    }
    record_.table_digest = digest();
    if (auto stored = store_commit_record(pool_, record_); !stored) {
        return stored;
    }
    return pool_.medium().sync();
}

Result<SalvageReport> Salvage::run()
{
    report_.epoch = record_.epoch;
    if (auto read = read_copies(); !read) {
        return pass_on(read.error());
    }
    const auto explained = explain_digest();
    if (!explained) {
        return pass_on(explained.error());
    }
    report_.tables_proved = *explained;
    for (std::uint64_t page = 0; page < geometry_.table_pages; ++page) {
        judge(page);
    }
    report_.pages_unproved = (pool_.facts().image_bytes - geometry_.heap_offset) / page_bytes;
    if (auto written = write(); !written) {
        return pass_on(written.error());
    }
    return std::move(report_);
}

}  // namespace

Result<SalvageReport> salvage_pool(Pool& pool)
{
    const auto record = load_commit_record(pool);
    if (!record) {
        return pass_on(record.error());
    }
    if (!*record) {
        return SalvageReport{};
    }
    return std::make_unique<Salvage>(pool, **record)->run();
}

}  // namespace stillpoint::respct
