// Fuzzer: any commit records, version tables and page copies. The pool has three epochs of a few pages; the input changes
// bytes of it: each three bytes say where (commit records, table, copies), at which place and by what. Its first byte
// says what is made consistent again, since else hardly an input would come past the checksums: bit 0 the checksums of
// commit records, bit 1 the digest of the table too.
//
// Demanded: an error with a text, or a state. Without bits 0 and 1 that state is one of the three epochs, whole. In any
// case the pool continues from it, on block and on byte-addressable media: two more epochs are committed, and found again, and nothing
// else has changed.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "arch/checksum.hpp"
#include "engines/pmthreads/pmthreads_engine.hpp"
#include "engines/pmthreads/pmthreads_layout.hpp"
#include "pool/commit_record.hpp"
#include "versions/epoch_writer.hpp"
#include "support/work_afterwards.hpp"
#include "support/patched_medium.hpp"

namespace {

using namespace stillpoint;
using stillpoint::pmthreads::driver;
using stillpoint::pmthreads::engine_area_pages;
using namespace stillpoint::versions;
using stillpoint::testing::PatchedFile;
using stillpoint::testing::PatchedMedium;

constexpr std::uint64_t image_bytes = 4 * mib;
constexpr std::uint64_t epochs = 3;
constexpr std::uint64_t commit_page = 2;
constexpr std::uint64_t table_page = commit_page + engine_area_pages;
constexpr std::uint64_t data_page = table_page + table_file_pages(image_bytes / page_bytes);

alignas(page_bytes) std::byte page_buffer[page_bytes];

void demand(bool condition)
{
    if (!condition) {
        std::abort();
    }
}

Result<std::unique_ptr<OpenedImage>> open(const std::shared_ptr<PatchedFile>& file) { return open_image(file, driver().format, false); }

/// Which pages an epoch writes, and with what.
std::uint64_t page_of(std::uint64_t epoch, std::uint64_t index) { return index * 3 % 7 + (epoch % 3) * 130; }
std::byte fill_of(std::uint64_t epoch, std::uint64_t index) { return std::byte(1 + (epoch * 16 + index) % 255); }
constexpr std::uint64_t pages_in_epoch = 5;

void write_epoch(OpenedImage& opened, std::uint64_t epoch)
{
    os::FutexLock lock;
    EpochWriter writer(opened.pool, opened.table, opened.locations, lock);
    demand(writer.reserve(image_bytes / page_bytes).has_value());
    writer.begin(epoch);
    for (std::uint64_t index = 0; index < pages_in_epoch; ++index) {
        std::memset(page_buffer, static_cast<int>(fill_of(epoch, index)), page_bytes);
        demand(writer.write_page(index, page_of(epoch, index), page_buffer, true).has_value());
        demand(writer.flush_gathered().has_value());
    }
    demand(writer.commit({epoch, image_bytes / page_bytes, 0, false}).has_value());
}

struct Base {
    std::shared_ptr<PatchedFile> file;
    std::vector<RecoveredImage> states;  ///< after each epoch
};

Base make_base()
{
    const Pool::CreateOptions options{.format = driver().format, .image_bytes = image_bytes, .image_bytes_max = image_bytes};
    auto file = std::make_shared<PatchedFile>(std::vector<std::byte>(Pool::file_bytes_for(options).value()));
    demand(Pool::create(std::make_unique<PatchedMedium>(file), options).has_value());
    Base base;
    for (std::uint64_t epoch = 1; epoch <= epochs; ++epoch) {
        auto opened = open(file);
        write_epoch(**opened, epoch);
        base.states.push_back((*open(file))->image);
    }
    base.file = std::make_shared<PatchedFile>(file->bytes());
    return base;
}

bool same_pages(const RecoveredImage& a, const RecoveredImage& b) { return a.report.epoch == b.report.epoch && a.pages == b.pages; }

void change(PatchedFile& file, const std::uint8_t* input)
{
    const std::uint64_t place = input[1];
    std::uint64_t offset = 0;
    switch (input[0] % 4) {
    case 0: offset = (commit_page + input[0] / 4 % 4) * page_bytes + place % sizeof(CommitRecord); break;
    case 1: offset = (table_page + input[0] / 4 % (data_page - table_page)) * page_bytes + place; break;  // header, and slots
    case 2: offset = (table_page + place % (data_page - table_page)) * page_bytes + input[0] / 4 * 64; break;
    default: offset = (data_page + input[0] / 4) * page_bytes + place * 16;
    }
    const std::byte value = file.bytes()[offset] ^ std::byte{input[2]};
    file.patch(offset, &value, 1);
}

/// Makes the checksums of records hold again; with `digest`, also their digest, and the checksums of table pages.
void seal(const std::shared_ptr<PatchedFile>& file, bool digest)
{
    for (std::uint64_t number = table_page; digest && number < data_page; ++number) {
        TablePage page;
        std::memcpy(&page, file->bytes().data() + number * page_bytes, sizeof page);
        auto pool = Pool::open(std::make_unique<PatchedMedium>(file), driver().format, true);
        VersionTable table;
        if (page.epoch != 0 && pool && table.reserve(image_bytes / page_bytes, pool->facts().uuid)) {
            const std::uint64_t index = (number - table_page) % ((data_page - table_page) / table_places) / table_copies;
            page.checksum = table_page_checksum(page, index * slots_per_table_page, table.hash_seed());
            file->patch(number * page_bytes, reinterpret_cast<const std::byte*>(&page), sizeof page);
        }
    }
    for (std::uint64_t page = 0; page < engine_area_pages; ++page) {
        CommitRecord record;
        std::memcpy(&record, file->bytes().data() + (commit_page + page) * page_bytes, sizeof record);
        if (digest) {
            auto pool = Pool::open(std::make_unique<PatchedMedium>(file), driver().format, true);
            VersionTable table;
            if (pool && table.reserve(image_bytes / page_bytes, pool->facts().uuid) &&
                table.load(pool->medium(), pool->segments(), record.epoch)) {
                record.table_digest = table.digest();
            }
        }
        record.checksum = checksum64(&record, offsetof(CommitRecord, checksum), commit_magic);
        file->patch((commit_page + page) * page_bytes, reinterpret_cast<const std::byte*>(&record), sizeof record);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static const Base base = make_base();
    if (size == 0) {
        return 0;
    }
    const auto& file = base.file;
    for (std::size_t at = 1; at + 3 <= size && at < 200; at += 3) {
        change(*file, data + at);
    }
    const bool sealed = (data[0] & 3U) != 0;
    if (sealed) {
        seal(file, (data[0] & 2U) != 0);
    }
    auto opened = open(file);
    if (!opened) {
        demand(!opened.error().text().empty());
    } else {
        bool known = sealed;
        for (const RecoveredImage& state : base.states) {
            known = known || same_pages(state, (*opened)->image);
        }
        demand(known);
        for (const bool mapped : {false, true}) {
            const std::size_t damaged = file->patches();
            demand(work_and_restart(file, driver().format, mapped).empty());
            file->undo_to(damaged);
        }
    }
    file->undo();
    return 0;
}
