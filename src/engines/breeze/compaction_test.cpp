// A new pool with the live objects of another one:
//   - It has what a program can reach, of all types and sizes, with the same contents, pointers and exact counts; it passes a check.
//   - Weak pointers lead to the moved objects; those to objects that are gone are null.
//   - Objects lie beside each other in the order in which they are reached, and what cannot be reached is left out.
//   - The old file is as it was. A damaged pool is refused, and a size that does not hold the objects; then there is no new file.

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engines/breeze/compaction.hpp"
#include "engines/breeze/offline.hpp"
#include "media/open.hpp"
#include "stillpoint/breeze.h"
#include "stillpoint/stillpoint.h"
#include "support/temporary_directory.hpp"

namespace stillpoint::breeze::testing {
namespace {

struct Leaf {
    Leaf* next;
    nvm_weak seen;
    std::uint64_t number;
};
struct Choice {
    std::uint32_t tag;
    std::uint32_t reserved;
    union {
        Leaf* leaf;
        std::uint64_t number;
    } content;
};
struct Table {
    Choice choices[2];
    Leaf* list;
    Leaf* ring;
    struct Many* many;
    struct CompactedBytes* bytes;
    char* inside;  ///< of `bytes`
    nvm_weak gone[3];
    struct Unused* unused;
};
struct Many {
    std::uint64_t count;
    Leaf* leaves[1];  ///< and more
};
struct CompactedBytes {
    std::uint64_t count;
    char bytes[8];  ///< and more
};
struct Unused {
    std::uint64_t number;
};
struct Kept {
    Leaf* leaf;
};

NVM_TYPE(Leaf, NVM_HAS_PTR(Leaf, next), NVM_HAS_WEAK(Leaf, seen));
NVM_TYPE(Choice, NVM_HAS_PTR_IF(Choice, content, tag, 1));
NVM_TYPE(Table, NVM_HAS_STRUCT(Table, choices, Choice), NVM_HAS_PTR(Table, list), NVM_HAS_PTR(Table, ring), NVM_HAS_PTR(Table, many),
         NVM_HAS_PTR(Table, bytes), NVM_HAS_PTR(Table, inside), NVM_HAS_WEAK(Table, gone), NVM_HAS_PTR(Table, unused));
NVM_TYPE(Many, NVM_HAS_PTR_TAIL(Many, leaves));
NVM_TYPE(CompactedBytes, NVM_HAS_TAIL(CompactedBytes, bytes));
NVM_TYPE(Unused);
NVM_TYPE(Kept, NVM_HAS_PTR(Kept, leaf), NVM_IS_PINNED);

constexpr std::uint64_t list_length = 300;
constexpr std::uint64_t many_count = 100'000;  ///< pointers of one object, which takes several zones
constexpr std::uint64_t bytes_count = 700 * kib;
constexpr std::uint64_t bytes_inside = 500 * kib;

class BreezeCompaction : public ::testing::TestWithParam<const char*> {
protected:
    static constexpr std::uint64_t size_bytes = 20 * mib;
    [[nodiscard]] nvm_options options() const
    {
        return {.medium = GetParam(), .durability = "process", .base_address = 0, .threads = 1, .collect = 0, .stays = 0};
    }
    [[nodiscard]] std::string path(const char* name) const { return directory_.file(name); }
    NVM_POOL* open(const char* name)
    {
        const nvm_options wanted = options();
        NVM_POOL* const pool = nvm_pool_open_with(path(name).c_str(), &wanted);
        EXPECT_NE(pool, nullptr) << sp_last_error();
        return pool;
    }
    template <class T>
    static T* make(NVM_POOL* pool, std::uint32_t type, std::uint64_t size = sizeof(T))
    {
        void* const object = nvm_alloc(pool, type, size);
        EXPECT_NE(object, nullptr) << sp_last_error();
        return static_cast<T*>(object);
    }
    static Leaf* make_leaf(NVM_POOL* pool, std::uint64_t number, Leaf* next)
    {
        Leaf* const leaf = make<Leaf>(pool, NVM_TYPE_ID(Leaf));
        leaf->number = number;
        leaf->next = next;
        return leaf;
    }
    void make_pool()
    {
        const nvm_options wanted = options();
        NVM_POOL* const pool = nvm_pool_create_with(path("old").c_str(), size_bytes, &wanted);
        ASSERT_NE(pool, nullptr) << sp_last_error();
        ASSERT_EQ(nvm_tx_begin(pool), SP_OK);
        auto* const table = make<Table>(pool, NVM_TYPE_ID(Table));
        ASSERT_EQ(nvm_pool_set_root(pool, table), SP_OK);
        std::vector<Leaf*> leaves(list_length);
        for (std::uint64_t i = list_length; i-- > 0;) {
            // Between the nodes of the list lie others, which are not kept.
            static_cast<void>(make_leaf(pool, UINT64_MAX, nullptr));
            leaves[i] = make_leaf(pool, i, table->list);
            table->list = leaves[i];
        }
        for (std::uint64_t i = 1; i < list_length; ++i) {
            nvm_weak_set(pool, &leaves[i]->seen, leaves[list_length - i]);
        }
        table->ring = make_leaf(pool, 1, make_leaf(pool, 2, make_leaf(pool, 3, nullptr)));
        table->ring->next->next->next = table->ring;
        table->choices[0] = {.tag = 1, .reserved = 0, .content = {.leaf = leaves[5]}};
        table->choices[1] = {.tag = 2, .reserved = 0, .content = {.number = reinterpret_cast<std::uint64_t>(leaves[5])}};
        table->many = make<Many>(pool, NVM_TYPE_ID(Many), sizeof(Many) + many_count * sizeof(Leaf*));
        table->many->count = many_count;
        for (std::uint64_t i = 0; i < many_count; ++i) {
            table->many->leaves[i] = leaves[i % list_length];
        }
        table->bytes = make<CompactedBytes>(pool, NVM_TYPE_ID(CompactedBytes), sizeof(CompactedBytes) + bytes_count);
        for (std::uint64_t i = 0; i < bytes_count; ++i) {
            table->bytes->bytes[i] = static_cast<char>(i * 7);
        }
        table->inside = table->bytes->bytes + bytes_inside;
        // A ring that nothing leads to but a weak pointer; its pointer to the list does not count in the new pool.
        Leaf* const lost = make_leaf(pool, 8, make_leaf(pool, 9, nullptr));
        lost->next->next = lost;
        nvm_weak_set(pool, &table->gone[0], lost);
        Many* const from_lost = make<Many>(pool, NVM_TYPE_ID(Many), sizeof(Many) + sizeof(Leaf*));
        from_lost->leaves[0] = leaves[0];
        from_lost->leaves[1] = reinterpret_cast<Leaf*>(from_lost);
        // An array of a type, and objects that no pointer keeps.
        auto* const array = make<Leaf>(pool, NVM_TYPE_ID(Leaf), 3 * sizeof(Leaf));
        array[2].next = leaves[7];
        auto* const kept = make<Kept>(pool, NVM_TYPE_ID(Kept));
        kept->leaf = array;
        table->unused = make<Unused>(pool, NVM_TYPE_ID(Unused));
        ASSERT_EQ(nvm_tx_commit(pool), SP_OK) << sp_last_error();
        ASSERT_EQ(nvm_tx_begin(pool), SP_OK);
        NVM_SET(table->unused, nullptr);
        ASSERT_EQ(nvm_tx_commit(pool), SP_OK) << sp_last_error();
        ASSERT_EQ(nvm_pool_close(pool), SP_OK);
    }
    [[nodiscard]] Result<Pool> opened(const char* name) const
    {
        MediumOptions wanted;
        wanted.path = path(name);
        auto medium = open_medium_read_only(wanted, true);
        if (!medium) {
            return pass_on(medium.error());
        }
        return Pool::open(std::move(*medium), EngineFormat{}, true);
    }
    void expect_sound(const char* name) const
    {
        const auto pool = opened(name);
        ASSERT_TRUE(pool) << pool.error().message;
        const auto copy = open_sound_copy(*pool, nullptr);
        EXPECT_TRUE(copy) << copy.error().message;
    }
    [[nodiscard]] Result<CompactionFigures> compact(std::uint64_t size = 0) const
    {
        const auto pool = opened("old");
        return pool ? compact_pool(*pool, {path("new"), size}, nullptr) : Result<CompactionFigures>(pass_on(pool.error()));
    }
    [[nodiscard]] std::string content(const char* name) const
    {
        std::string bytes(std::filesystem::file_size(path(name)), '\0');
        std::ifstream(path(name), std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        return bytes;
    }
    static void expect_references(NVM_POOL* pool, const void* object, std::uint32_t references)
    {
        nvm_object_facts facts;
        ASSERT_EQ(nvm_object(pool, object, &facts), SP_OK) << sp_last_error();
        EXPECT_EQ(facts.references, references);
    }

    test::TemporaryDirectory directory_;
};

constexpr std::uint64_t live_objects = 1 + list_length + 3 + 2 + 2;

void expect_contents(NVM_POOL* pool)
{
    const auto* const table = static_cast<const Table*>(nvm_pool_root(pool));
    ASSERT_NE(table, nullptr);
    std::vector<const Leaf*> leaves;
    for (const Leaf* leaf = table->list; leaf != nullptr; leaf = leaf->next) {
        ASSERT_EQ(leaf->number, leaves.size());
        leaves.push_back(leaf);
    }
    ASSERT_EQ(leaves.size(), list_length);
    for (std::uint64_t i = 1; i < list_length; ++i) {
        ASSERT_EQ(nvm_weak_get(pool, &leaves[i]->seen), leaves[list_length - i]) << i;
    }
    EXPECT_EQ(table->ring->next->next->next, table->ring);
    EXPECT_EQ(table->ring->next->number, 2u);
    EXPECT_EQ(table->choices[0].content.leaf, leaves[5]);
    EXPECT_EQ(table->choices[1].tag, 2u);
    EXPECT_NE(table->choices[1].content.number, 0u);
    ASSERT_EQ(table->many->count, many_count);
    for (std::uint64_t i = 0; i < many_count; ++i) {
        ASSERT_EQ(table->many->leaves[i], leaves[i % list_length]) << i;
    }
    for (std::uint64_t i = 0; i < bytes_count; ++i) {
        ASSERT_EQ(table->bytes->bytes[i], static_cast<char>(i * 7)) << i;
    }
    EXPECT_EQ(table->inside, table->bytes->bytes + bytes_inside);
    EXPECT_EQ(table->unused, nullptr);
}

TEST_P(BreezeCompaction, KeepsWhatCanBeReached)
{
    make_pool();
    const std::string before = content("old");
    const auto figures = compact();
    ASSERT_TRUE(figures) << figures.error().message;
    EXPECT_TRUE(content("old") == before) << "the old pool has changed";
    EXPECT_EQ(figures->objects_after, live_objects);
    EXPECT_EQ(figures->objects_before, live_objects + 3);
    EXPECT_EQ(figures->image_bytes_before, size_bytes);
    EXPECT_LT(figures->image_bytes_after, size_bytes / 3);
    EXPECT_EQ(figures->file_bytes_after, std::filesystem::file_size(path("new")));
    expect_sound("new");
    // Both are open, so the new one may lie elsewhere.
    NVM_POOL* const old = open("old");
    NVM_POOL* const pool = open("new");
    ASSERT_NE(pool, nullptr);
    expect_contents(old);
    expect_contents(pool);
    const auto* const table = static_cast<const Table*>(nvm_pool_root(pool));
    EXPECT_EQ(table->gone[0].object, nullptr);
    EXPECT_EQ(table->gone[0].version, 0u);
    // From the list, the large object, a tag and the array.
    const std::uint32_t from_many = many_count / list_length;
    expect_references(pool, table, 1);
    expect_references(pool, table->list, 2 + from_many);
    expect_references(pool, table->choices[0].content.leaf, 2 + from_many + 1);
    expect_references(pool, table->bytes, 2);
    nvm_pool_facts facts;
    ASSERT_EQ(nvm_facts(pool, &facts), SP_OK);
    EXPECT_EQ(facts.objects, live_objects);
    ASSERT_EQ(nvm_pool_close(old), SP_OK);
    ASSERT_EQ(nvm_pool_close(pool), SP_OK);
}

TEST_P(BreezeCompaction, LaysObjectsInTheOrderInWhichTheyAreReached)
{
    make_pool();
    ASSERT_TRUE(compact());
    NVM_POOL* const pool = open("new");
    ASSERT_NE(pool, nullptr);
    const auto* const table = static_cast<const Table*>(nvm_pool_root(pool));
    // The tag's list is reached first: from its sixth node to its end.
    std::uint64_t steps = 0;
    for (const Leaf* leaf = table->choices[0].content.leaf; leaf->next != nullptr; leaf = leaf->next) {
        const auto step = reinterpret_cast<std::uintptr_t>(leaf->next) - reinterpret_cast<std::uintptr_t>(leaf);
        steps += step == round_up(object_header_bytes + sizeof(Leaf), granule_bytes) ? 1u : 0u;
    }
    EXPECT_GE(steps, list_length - 12);
    ASSERT_EQ(nvm_pool_close(pool), SP_OK);
}

TEST_P(BreezeCompaction, MakesPoolsThatProgramsGoOnWith)
{
    make_pool();
    ASSERT_TRUE(compact(12 * mib));
    NVM_POOL* const pool = open("new");
    ASSERT_NE(pool, nullptr);
    auto* const table = static_cast<Table*>(nvm_pool_root(pool));
    for (int round = 0; round < 50; ++round) {
        ASSERT_EQ(nvm_tx_begin(pool), SP_OK);
        Leaf* const leaf = make_leaf(pool, 1000, table->ring);
        NVM_SET(table->ring, leaf);
        nvm_log(&table->gone[1], sizeof table->gone[1]);
        nvm_weak_set(pool, &table->gone[1], leaf);
        ASSERT_EQ(nvm_tx_commit(pool), SP_OK) << sp_last_error();
    }
    // The ring that was kept goes, and with it all that only it had.
    ASSERT_EQ(nvm_tx_begin(pool), SP_OK);
    NVM_SET(table->ring, nullptr);
    NVM_SET(table->many, nullptr);
    ASSERT_EQ(nvm_tx_commit(pool), SP_OK) << sp_last_error();
    ASSERT_EQ(nvm_collect(pool, nullptr), SP_OK) << sp_last_error();
    EXPECT_EQ(nvm_weak_get(pool, &table->gone[1]), nullptr);
    nvm_pool_facts facts;
    ASSERT_EQ(nvm_facts(pool, &facts), SP_OK);
    EXPECT_EQ(facts.objects, live_objects - 4);
    ASSERT_EQ(nvm_pool_close(pool), SP_OK);
    expect_sound("new");
    // And once more, from the new one.
    std::filesystem::rename(path("new"), path("old"));
    const auto again = compact();
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->objects_before, again->objects_after);
    EXPECT_LT(again->image_bytes_after, again->image_bytes_before);
}

TEST_P(BreezeCompaction, MakesAnEmptyPoolOfAnEmptyOne)
{
    const nvm_options wanted = options();
    ASSERT_EQ(nvm_pool_close(nvm_pool_create_with(path("old").c_str(), size_bytes, &wanted)), SP_OK);
    const auto figures = compact();
    ASSERT_TRUE(figures) << figures.error().message;
    EXPECT_EQ(figures->objects_after, 0u);
    EXPECT_EQ(figures->image_bytes_after, Pool::image_bytes_min);
    NVM_POOL* const pool = open("new");
    ASSERT_NE(pool, nullptr);
    EXPECT_EQ(nvm_pool_root(pool), nullptr);
    ASSERT_EQ(nvm_pool_close(pool), SP_OK);
}

TEST_P(BreezeCompaction, RefusesDamagedPoolsAndSizesThatAreTooSmall)
{
    make_pool();
    const auto small = compact(3 * mib);
    ASSERT_FALSE(small);
    EXPECT_EQ(small.error().code, SP_E_INVALID_ARGUMENT);
    EXPECT_NE(small.error().text().find("at least"), std::string_view::npos) << small.error().message;
    EXPECT_FALSE(std::filesystem::exists(path("new")));
    const auto large = compact(window_bytes);
    ASSERT_FALSE(large);
    EXPECT_EQ(large.error().code, SP_E_INVALID_ARGUMENT);
    std::uint64_t image = 0;
    std::uint64_t root = 0;
    {
        const auto pool = opened("old");
        ASSERT_TRUE(pool);
        image = pool->segments().front().first_file_page * page_bytes;
        ASSERT_TRUE(pool->medium().read(image + offsetof(PoolHeader, root), std::as_writable_bytes(std::span(&root, 1))));
    }
    std::fstream file(path("old"), std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(image + root + offsetof(ObjectHeader, size)));
    file.put('\x7f');
    file.close();
    const auto damaged = compact();
    ASSERT_FALSE(damaged);
    EXPECT_EQ(damaged.error().code, SP_E_POOL_CORRUPT);
    EXPECT_NE(damaged.error().text().find("byte " + std::to_string(root)), std::string_view::npos) << damaged.error().message;
    EXPECT_NE(damaged.error().text().find("stillpoint check"), std::string_view::npos) << damaged.error().message;
    EXPECT_FALSE(std::filesystem::exists(path("new")));
}

INSTANTIATE_TEST_SUITE_P(OnMemoryAndOnAFile, BreezeCompaction, ::testing::Values("memory", "file"));

}  // namespace
}  // namespace stillpoint::breeze::testing
