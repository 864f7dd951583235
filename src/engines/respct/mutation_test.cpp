// Mutations of what the engine keeps beside the program's bytes: one bit after the other of the commit records, the records of table
// copies, the tables and their second copies, the layouts of typed memory, the heap's span words and marks. A check of each tells damage
// or calls it sound; a start of a sound one works on: it allocates and frees, makes two epochs durable, and starts again. A start of a
// damaged one is refused, or works too; none ends by a signal. On block media and on byte-addressable ones.
//
// A sample by default; STILLPOINT_MUTATIONS=all (`make mutations`) takes every bit, but of pages that have a checksum every 997th.

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "arch/checksum.hpp"
#include "engines/respct/offline.hpp"
#include "engines/respct/recovery.hpp"
#include "engines/respct/respct_engine.hpp"
#include "heap/heap_state.hpp"
#include "support/cases.hpp"
#include "support/temporary_directory.hpp"
#include "pool/commit_record.hpp"
#include "pool/directory.hpp"
#include "pool/superblock.hpp"
#include "support/patched_medium.hpp"
#include "stillpoint/respct.h"
#include "support/crashing_program.hpp"

namespace stillpoint::respct {
namespace {

using Bytes = std::vector<std::byte>;
constexpr int root_is_damaged = 98;

/// Members of a typed object: a logged variable of 8 bytes and a lock.
const sp_respct_member members[] = {{0, SP_RESPCT_LOGGED_8, 1}, {32, SP_RESPCT_PTHREAD_MUTEX, 1}};
sp_respct_layout node = {"node", 96, 32, members, 2, 0, 0};

int fill()
{
    auto* const root = static_cast<void**>(sp_root("root", 64));
    if (root == nullptr) {
        return 1;
    }
    for (std::size_t bytes = 16; bytes < 100'000; bytes *= 5) {
        void* const kept = sp_malloc(bytes);
        void* const freed = sp_malloc(bytes);
        if (kept == nullptr || freed == nullptr) {
            return 2;
        }
        sp_free(freed);
    }
    for (const std::size_t count : {1U, 3U, 900U}) {
        if (sp_respct_allocate_zeroed(&node, count) == nullptr) {
            return 3;
        }
    }
    return sp_checkpoint();
}

int work()
{
    sp_heap_statistics figures{};
    if (sp_heap_stats(&figures) != SP_OK) {
        return 1;
    }
    if (sp_root_find("root", nullptr) == nullptr && errno != ENOENT) {
        return root_is_damaged;
    }
    for (int epoch = 0; epoch < 2; ++epoch) {
        for (std::size_t bytes = 16; bytes < 100'000; bytes *= 3) {
            void* const kept = sp_calloc(1, bytes);
            void* const freed = sp_malloc(bytes);
            if (kept == nullptr || freed == nullptr) {
                return 2;
            }
            sp_free(freed);
        }
        if (sp_respct_allocate_zeroed(&node, 2) == nullptr) {
            return 3;
        }
        if (sp_checkpoint() != SP_OK) {
            return 4;
        }
    }
    return 0;
}

Bytes bytes_of(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    Bytes bytes(std::filesystem::file_size(path));
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return bytes;
}

/// The checks of `stillpoint check` above the engine.
Result<void> check_layers(void* context, std::byte* base, std::uint64_t image_bytes)
{
    const PoolFacts& facts = *static_cast<const PoolFacts*>(context);
    if (auto header = check_image(base, layout::TableFormat::logged,
                                  {facts.image_bytes_first_max, facts.image_bytes_max, facts.base_address});
        !header) {
        return header;
    }
    const Heap::Options heap = heap_options(facts, base);
    const Directory directory(base, geometry_of(facts));
    if (auto sound = directory.check(image_bytes); !sound) {
        return sound;
    }
    bool all_live = true;
    directory.for_each([&](const DirectoryEntry& entry) {
        all_live = all_live && Heap::is_live_block(heap, entry.address - facts.base_address, entry.size_bytes);
    });
    return all_live ? Heap::check(heap) : fail(SP_E_POOL_CORRUPT, 0, "a handle names no live block");
}

struct BitRange {
    std::uint64_t begin;
    std::uint64_t bits;
    std::uint64_t step;
};

class RespctMutations : public ::testing::TestWithParam<const char*> {
protected:
    int run(const std::function<int()>& body)
    {
        return test::run_with_pool(
            pool_, std::string("engine=respct pool_size_mb=4 pool_max_mb=8 durability=process interval_ms=3600000 ") + GetParam(), body);
    }

    static bool take_all()
    {
        const char* const wish = std::getenv("STILLPOINT_MUTATIONS");
        return wish != nullptr && std::string_view(wish) == "all";
    }

    void write_pool(const Bytes& bytes) const
    {
        std::ofstream file(pool_, std::ios::binary);
        file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }

    void write_back(std::uint64_t offset, std::byte value) const
    {
        const int file = open(pool_.c_str(), O_RDWR | O_CLOEXEC);
        ASSERT_EQ(pwrite(file, sound_.data(), sound_.size(), 0), static_cast<ssize_t>(sound_.size()));
        ASSERT_EQ(pwrite(file, &value, 1, static_cast<off_t>(offset)), 1);
        ASSERT_EQ(ftruncate(file, static_cast<off_t>(sound_.size())), 0);
        close(file);
    }

    [[nodiscard]] bool check_calls_it_sound(std::uint64_t bit)
    {
        patched_->flip_bit(bit);
        const bool sound = patched_is_sound();
        patched_->undo();
        return sound;
    }

    [[nodiscard]] bool patched_is_sound() const
    {
        const auto pool = Pool::open(std::make_unique<testing::PatchedMedium>(patched_), driver().format, true);
        if (!pool) {
            return false;
        }
        PoolFacts facts = pool->facts();
        return check_pool(*pool, nullptr, &check_layers, &facts, nullptr).has_value();
    }

    /// Bits of the file that the engine and the heap read.
    [[nodiscard]] std::vector<BitRange> ranges() const
    {
        const auto pool = Pool::open(std::make_unique<testing::PatchedMedium>(patched_), driver().format, true);
        const PoolFacts& facts = pool->facts();
        const std::uint64_t image = pool->segments()[0].first_file_page * page_bytes;
        const ImageGeometry geometry = geometry_of(facts);
        const auto layout = heap::HeapLayout::of(geometry.heap_offset, facts.image_bytes_max, layout::TableFormat::logged);
        const std::uint64_t step = take_all() ? 1 : test::case_step(211, 1009);
        std::vector<BitRange> ranges;
        for (std::uint64_t page = 0; page < commit_area_pages; ++page) {
            ranges.push_back({(facts.engine_area_first_page + page) * page_bytes * 8, sizeof(CommitRecord) * 8, step});
        }
        ranges.push_back({(image + geometry.copy_records_offset) * 8, geometry.table_pages * sizeof(CopyRecord) * 8, step});
        ranges.push_back({image * 8, 2 * geometry.table_pages * page_bytes * 8, take_all() ? 997U : test::case_step(60'013, 240'007)});
        ranges.push_back({(image + layout.layouts_offset) * 8, sizeof(stillpoint::logged::Word) * 8, step});
        ranges.push_back({(image + layout.layouts_offset + sizeof(heap::LayoutRecord)) * 8, sizeof(heap::LayoutRecord) * 8, step});
        for (std::uint64_t span = 0; span < 24; ++span) {
            const std::uint64_t offset = layout.span_table_offset + span * sizeof(stillpoint::logged::Word);
            stillpoint::logged::Word word;
            std::memcpy(&word, sound_.data() + image + offset, sizeof word);
            ranges.push_back({(image + offset) * 8, sizeof word * 8, step});
            const heap::SpanEntry entry = heap::SpanWord{word.value}.entry();
            if (entry.kind() == heap::SpanKind::small && !heap::has_coarse_marks(heap::size_classes[entry.payload()])) {
                const std::uint64_t marks = layout.spans_offset + span * heap::span_bytes +
                                            heap::fine_marks_offset(span, heap::size_classes[entry.payload()]);
                ranges.push_back({(image + marks) * 8, sizeof(stillpoint::logged::Word) * 8, step});
            }
        }
        return ranges;
    }

    test::TemporaryDirectory directory_;
    std::string pool_ = directory_.file("test.pool");
    Bytes sound_;
    std::shared_ptr<testing::PatchedFile> patched_;
};

INSTANTIATE_TEST_SUITE_P(Media, RespctMutations, ::testing::Values("medium=file", "medium=memory"),
                         [](const auto& medium) { return std::string(medium.param).substr(sizeof "medium=" - 1); });

TEST_P(RespctMutations, OfOneBitAreFoundByTheCheckOrLeaveAPoolThatGoesOn)
{
    ASSERT_EQ(run(&fill), 0);
    ASSERT_EQ(run(&work), 0);
    sound_ = bytes_of(pool_);
    patched_ = std::make_shared<testing::PatchedFile>(sound_);
    std::uint64_t images = 0;
    std::uint64_t damaged = 0;
    std::uint64_t refused = 0;
    for (const BitRange& range : ranges()) {
        for (std::uint64_t bit = range.begin; bit < range.begin + range.bits; bit += range.step) {
            SCOPED_TRACE("byte " + std::to_string(bit / 8) + " of the file, bit " + std::to_string(bit % 8));
            ++images;
            const bool sound = check_calls_it_sound(bit);
            damaged += sound ? 0U : 1U;
            write_back(bit / 8, sound_[bit / 8] ^ std::byte(1U << (bit % 8)));
            const int outcome = run(&work);
            refused += outcome == test::could_not_open ? 1U : 0U;
            if (sound) {
                EXPECT_EQ(outcome, 0);
                EXPECT_TRUE(images % 8 != 0 || run(&work) == 0) << "the second start";
            } else {
                EXPECT_TRUE(outcome == 0 || outcome == test::could_not_open || outcome == root_is_damaged) << outcome;
            }
        }
    }
    std::printf("mutations, respct, %s: %llu images: %llu damaged, %llu refused\n", GetParam(), static_cast<unsigned long long>(images),
                static_cast<unsigned long long>(damaged), static_cast<unsigned long long>(refused));
    EXPECT_GT(images, damaged);
    EXPECT_GT(damaged, 0U);
}

// Forgeries: fields with another value, under checksums that hold.

constexpr std::uint64_t layout_checksum_seed = 0x535454595045444c;  ///< of heap/typed.cpp

/// The bytes of a pool's file, seen as what they are.
class Forged {
public:
    Forged(Bytes& bytes, const Pool& pool)
        : bytes_(bytes), area_(pool.facts().engine_area_first_page * page_bytes), image_(pool.segments()[0].first_file_page * page_bytes),
          layout_(heap::HeapLayout::of(geometry_of(pool.facts()).heap_offset, pool.facts().image_bytes_max, layout::TableFormat::logged))
    {
    }
    heap::LayoutTable& layouts() { return as<heap::LayoutTable>(image_ + layout_.layouts_offset); }
    void change_layout(void (*change)(heap::LayoutRecord& record))
    {
        heap::LayoutRecord& record = layouts().records[0];
        change(record);
        record.checksum = checksum64(&record, offsetof(heap::LayoutRecord, checksum), layout_checksum_seed);
    }
    /// The word of the first typed span.
    std::uint64_t& typed_span()
    {
        std::uint64_t offset = image_ + layout_.span_table_offset;
        while (heap::SpanWord{as<stillpoint::logged::Word>(offset).value}.layout() == 0) {
            offset += sizeof(stillpoint::logged::Word);
        }
        return as<stillpoint::logged::Word>(offset).value;
    }
    void change_superblocks(void (*change)(layout::Superblock& superblock))
    {
        for (std::size_t copy = 0; copy < layout::superblock_copies; ++copy) {
            auto& superblock = as<layout::Superblock>(copy * page_bytes);
            change(superblock);
            seal_superblock(superblock);
        }
    }
    /// Both copies of the newest commit record get an epoch that is so much later, an even number.
    void move_epoch(std::uint64_t later)
    {
        const std::uint64_t newest = commit(0).epoch > commit(2).epoch ? 0 : 2;
        for (std::uint64_t copy = newest; copy < newest + 2; ++copy) {
            commit(copy).epoch += later;
            commit(copy).checksum = checksum64(&commit(copy), offsetof(CommitRecord, checksum), commit_magic);
        }
    }

private:
    template <class T>
    T& as(std::uint64_t offset)
    {
        return *reinterpret_cast<T*>(bytes_.data() + offset);
    }
    CommitRecord& commit(std::uint64_t page) { return as<CommitRecord>(area_ + page * page_bytes); }

    Bytes& bytes_;
    std::uint64_t area_;
    std::uint64_t image_;
    heap::HeapLayout layout_;
};

struct Forgery {
    const char* name;
    void (*forge)(Forged& pool);
};

using Record = heap::LayoutRecord;

const Forgery forgeries[] = {
    {"one layout too many", [](Forged& pool) { ++pool.layouts().count.value; }},
    {"more layouts than there is room for", [](Forged& pool) { pool.layouts().count.value = heap::LayoutTable::records_max + 1; }},
    {"so many layouts that their bytes overflow", [](Forged& pool) { pool.layouts().count.value = UINT64_MAX; }},
    {"no layout, though spans are typed", [](Forged& pool) { pool.layouts().count.value = 0; }},
    {"a lock that is not aligned", [](Forged& pool) { pool.change_layout([](Record& record) { record.members[1].offset_bytes = 36; }); }},
    {"objects that are not aligned", [](Forged& pool) { pool.change_layout([](Record& record) { record.stride_bytes = 84; }); }},
    {"members beyond the object", [](Forged& pool) { pool.change_layout([](Record& record) { record.members[1].count = 2; }); }},
    {"a size of objects that is zero", [](Forged& pool) { pool.change_layout([](Record& record) { record.stride_bytes = 0; }); }},
    {"a kind of lock that is none", [](Forged& pool) { pool.change_layout([](Record& record) { record.members[1].kind = 13; }); }},
    {"a typed span whose blocks are not aligned",
     [](Forged& pool) { pool.typed_span() = heap::SpanWord::of(heap::SpanEntry::small(heap::class_for(112)), 1).word; }},
    {"a typed span of another layout", [](Forged& pool) { pool.typed_span() += std::uint64_t{1} << heap::SpanWord::layout_shift; }},
    {"tables beyond the image",
     [](Forged& pool) { pool.change_superblocks([](layout::Superblock& superblock) { superblock.image_bytes_max = window_bytes; }); }},
    {"an epoch that no pool reaches", [](Forged& pool) { pool.move_epoch(std::uint64_t{1} << 62); }},
    {"an epoch whose double overflows", [](Forged& pool) { pool.move_epoch(std::uint64_t{1} << 63); }},
};

TEST_P(RespctMutations, ThatKeepChecksumsAreRefusedByCheckAndStartAlike)
{
    ASSERT_EQ(run(&fill), 0);
    sound_ = bytes_of(pool_);
    const auto start = [this] {
        return test::run_with_pool(pool_, std::string("durability=process interval_ms=3600000 ") + GetParam(), &work);
    };
    for (const Forgery& forgery : forgeries) {
        SCOPED_TRACE(forgery.name);
        Bytes bytes = sound_;
        {
            patched_ = std::make_shared<testing::PatchedFile>(sound_);
            const auto pool = Pool::open(std::make_unique<testing::PatchedMedium>(patched_), driver().format, true);
            ASSERT_TRUE(pool);
            Forged forged(bytes, *pool);
            forgery.forge(forged);
        }
        patched_ = std::make_shared<testing::PatchedFile>(bytes);
        EXPECT_FALSE(patched_is_sound()) << "by the check";
        write_pool(bytes);
        EXPECT_EQ(start(), test::could_not_open) << "by a start";
        EXPECT_TRUE(bytes_of(pool_) == bytes) << "a refused pool has been changed";
    }
    write_pool(sound_);
    EXPECT_EQ(start(), 0) << "the pool that was not changed";
}

}  // namespace
}  // namespace stillpoint::respct
