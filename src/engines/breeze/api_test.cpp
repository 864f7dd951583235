// The C API on files:
//   - What commits is there after the pool was closed and opened; what aborts is not.
//   - Pointers out of the pool are refused when the transaction commits, with structure, field and line.
//   - nvm_free refuses a live object. Objects without references are freed; weak pointers to them become null.
//   - Two copies of a pool are open at once, and a pool is mapped elsewhere where its addresses are taken.
//   - Cycles are freed by nvm_collect, and nothing that can be reached.
//   - A damaged header costs its object alone; a type that was changed is refused.

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "engines/breeze/open_pools.hpp"
#include "stillpoint/breeze.hpp"
#include "support/temporary_directory.hpp"

namespace stillpoint::breeze::testing {
namespace {

struct Item {
    Item* next;
    Item* other;
    nvm_weak friend_item;
    std::uint64_t value;
};
struct Variant {
    std::uint32_t tag;
    std::uint32_t reserved;
    union {
        Item* item;
        std::uint64_t number;
    } content;
};
struct Pair {
    Variant variants[2];
    Item* items[3];
};
struct Text {
    std::uint64_t length;
    char bytes[8];  ///< and more
};

NVM_TYPE(Item, NVM_HAS_PTR(Item, next), NVM_HAS_PTR(Item, other), NVM_HAS_WEAK(Item, friend_item));
NVM_TYPE(Variant, NVM_HAS_PTR_IF(Variant, content, tag, 1));
NVM_TYPE(Pair, NVM_HAS_STRUCT(Pair, variants, Variant), NVM_HAS_PTR(Pair, items));
NVM_TYPE(Text, NVM_HAS_TAIL(Text, bytes));

class BreezeApi : public ::testing::Test {
protected:
    static constexpr nvm_options memory{
        .medium = "memory", .durability = "process", .base_address = 0, .threads = 1, .collect = 0, .stays = 0};
    NVM_POOL* create(const char* name = "pool")
    {
        NVM_POOL* const pool = nvm_pool_create_with(path(name).c_str(), 4 << 20, &memory);
        EXPECT_NE(pool, nullptr) << sp_last_error();
        return pool;
    }
    NVM_POOL* open(const char* name = "pool", const nvm_options& options = memory)
    {
        NVM_POOL* const pool = nvm_pool_open_with(path(name).c_str(), &options);
        EXPECT_NE(pool, nullptr) << sp_last_error();
        return pool;
    }
    [[nodiscard]] std::string path(const char* name) const { return directory_.file(name); }
    static Item* make(NVM_POOL* pool, std::uint64_t value)
    {
        auto* const item = static_cast<Item*>(nvm_alloc(pool, NVM_TYPE_ID(Item), sizeof(Item)));
        EXPECT_NE(item, nullptr) << sp_last_error();
        item->value = value;
        return item;
    }
    /// A root with a list of `count` items.
    static void fill(NVM_POOL* pool, std::uint64_t count)
    {
        ASSERT_EQ(nvm_tx_begin(pool), SP_OK);
        Item* first = nullptr;
        for (std::uint64_t i = 0; i < count; ++i) {
            Item* const item = make(pool, i);
            item->next = first;
            first = item;
        }
        ASSERT_EQ(nvm_pool_set_root(pool, first), SP_OK);
        ASSERT_EQ(nvm_tx_commit(pool), SP_OK) << sp_last_error();
    }
    static std::uint64_t length(NVM_POOL* pool)
    {
        std::uint64_t count = 0;
        for (const Item* item = static_cast<Item*>(nvm_pool_root(pool)); item != nullptr; item = item->next) {
            ++count;
        }
        return count;
    }
    static std::uint64_t objects(NVM_POOL* pool)
    {
        EXPECT_EQ(nvm_drain(pool), SP_OK);
        nvm_pool_facts facts;
        EXPECT_EQ(nvm_facts(pool, &facts), SP_OK);
        return facts.objects;
    }
    test::TemporaryDirectory directory_;
};

TEST_F(BreezeApi, ObtainingOpensOrMakes)
{
    setenv("STILLPOINT_MEDIUM", "memory", 1);
    NVM_POOL* pool = nvm_pool_obtain(path("pool").c_str(), 4 << 20);
    ASSERT_NE(pool, nullptr) << sp_last_error();
    auto* const item = static_cast<Item*>(nvm_pool_obtain_root(pool, NVM_TYPE_ID(Item), sizeof(Item)));
    ASSERT_NE(item, nullptr) << sp_last_error();
    EXPECT_EQ(item->value, 0U);
    ASSERT_EQ(nvm_tx_begin(pool), SP_OK);
    NVM_SET(item->value, 7);
    ASSERT_EQ(nvm_tx_commit(pool), SP_OK);
    ASSERT_EQ(nvm_pool_close(pool), SP_OK);

    pool = nvm_pool_obtain(path("pool").c_str(), 64 << 20);
    ASSERT_NE(pool, nullptr) << sp_last_error();
    EXPECT_EQ(static_cast<Item*>(nvm_pool_obtain_root(pool, NVM_TYPE_ID(Item), sizeof(Item)))->value, 7U);
    EXPECT_EQ(nvm_pool_obtain_root(pool, NVM_TYPE_ID(Pair), sizeof(Pair)), nullptr);
    EXPECT_NE(std::string(sp_last_error()).find("the root is an object of type"), std::string::npos) << sp_last_error();
    ASSERT_EQ(nvm_pool_close(pool), SP_OK);
    unsetenv("STILLPOINT_MEDIUM");
    EXPECT_EQ(nvm_pool_obtain(path("no/such/folder").c_str(), 4 << 20), nullptr);
}

TEST_F(BreezeApi, KeepsWhatWasCommittedAndNothingElse)
{
    NVM_POOL* pool = create();
    fill(pool, 10);
    auto* root = static_cast<Item*>(nvm_pool_root(pool));
    ASSERT_EQ(nvm_tx_begin(pool), SP_OK);
    NVM_SET(root->value, 1000);
    NVM_SET(root->next, nullptr);
    ASSERT_EQ(nvm_tx_abort(pool), SP_OK);
    EXPECT_EQ(root->value, 9u);
    EXPECT_EQ(length(pool), 10u);
    ASSERT_EQ(nvm_pool_close(pool), SP_OK);
    pool = open();
    EXPECT_EQ(length(pool), 10u);
    EXPECT_EQ(objects(pool), 10u);
    EXPECT_EQ(nvm_pool_close(pool), SP_OK);
}

TEST_F(BreezeApi, RefusesPointersOutOfThePoolWithFieldAndLine)
{
    NVM_POOL* const pool = create();
    NVM_POOL* const other = create("other");
    fill(pool, 2);
    fill(other, 2);
    auto* const root = static_cast<Item*>(nvm_pool_root(pool));
    Item in_dram{};
    for (Item* const target : {&in_dram, static_cast<Item*>(nvm_pool_root(other))}) {
        ASSERT_EQ(nvm_tx_begin(pool), SP_OK);
        NVM_SET(root->other, target);
        EXPECT_EQ(nvm_tx_commit(pool), SP_E_NOT_DURABLE_ADDRESS);
        EXPECT_NE(std::strstr(sp_last_error(), "Item.other"), nullptr) << sp_last_error();
        EXPECT_NE(std::strstr(sp_last_error(), "api_test.cpp:"), nullptr) << sp_last_error();
        EXPECT_EQ(root->other, nullptr);
    }
    ASSERT_EQ(nvm_tx_begin(pool), SP_OK);
    EXPECT_EQ(nvm_tx_begin(other), SP_E_INVALID_ARGUMENT);
    EXPECT_EQ(nvm_log(nvm_pool_root(other), 8), SP_E_INVALID_ARGUMENT);
    EXPECT_EQ(nvm_tx_commit(pool), SP_E_INVALID_ARGUMENT);
    EXPECT_EQ(nvm_tx_abort(pool), SP_E_NO_TRANSACTION);
    EXPECT_EQ(nvm_log(root, 8), SP_E_NO_TRANSACTION);
    ASSERT_EQ(nvm_tx_begin(pool), SP_OK);
    EXPECT_EQ(nvm_alloc(pool, 12345, 8), nullptr);
    EXPECT_EQ(nvm_tx_commit(pool), SP_OK);
    EXPECT_EQ(nvm_pool_close(pool), SP_OK);
    EXPECT_EQ(nvm_pool_close(other), SP_OK);
}

TEST_F(BreezeApi, FreesWhatNothingPointsToAndNothingElse)
{
    NVM_POOL* pool = create();
    fill(pool, 5);
    auto* const root = static_cast<Item*>(nvm_pool_root(pool));
    ASSERT_EQ(nvm_tx_begin(pool), SP_OK);
    EXPECT_EQ(nvm_free(pool, root->next), SP_E_OBJECT_REFUSED) << sp_last_error();
    Item* const second = root->next;
    NVM_SET(root->next, second->next);
    EXPECT_EQ(nvm_free(pool, second), SP_OK) << sp_last_error();
    ASSERT_EQ(nvm_tx_commit(pool), SP_OK) << sp_last_error();
    EXPECT_EQ(objects(pool), 4u);

    ASSERT_EQ(nvm_tx_begin(pool), SP_OK);
    ASSERT_EQ(nvm_weak_set(pool, &root->friend_item, root->next), SP_OK);
    ASSERT_EQ(nvm_tx_commit(pool), SP_OK);
    EXPECT_EQ(nvm_weak_get(pool, &root->friend_item), root->next);
    ASSERT_EQ(nvm_tx_begin(pool), SP_OK);
    NVM_SET(root->next, nullptr);
    ASSERT_EQ(nvm_tx_commit(pool), SP_OK);
    EXPECT_EQ(objects(pool), 1u);
    EXPECT_EQ(nvm_weak_get(pool, &root->friend_item), nullptr);
    ASSERT_EQ(nvm_tx_begin(pool), SP_OK);
    EXPECT_EQ(nvm_log(root->friend_item.object, 8), SP_E_OBJECT_REFUSED);
    EXPECT_EQ(nvm_tx_commit(pool), SP_E_OBJECT_REFUSED);
    EXPECT_EQ(nvm_pool_close(pool), SP_OK);
}

TEST_F(BreezeApi, FreesCyclesByACollectionAndNothingThatCanBeReached)
{
    NVM_POOL* const pool = create();
    fill(pool, 3);
    auto* const root = static_cast<Item*>(nvm_pool_root(pool));
    for (int i = 0; i < 20; ++i) {
        ASSERT_EQ(nvm_tx_begin(pool), SP_OK);
        Item* const a = make(pool, 1);
        Item* const b = make(pool, 2);
        a->next = b;
        b->next = a;
        b->other = root->next;
        NVM_SET(root->other, a);
        ASSERT_EQ(nvm_tx_commit(pool), SP_OK) << sp_last_error();
    }
    EXPECT_EQ(objects(pool), 43u);
    nvm_collection figures;
    ASSERT_EQ(nvm_collect(pool, &figures), SP_OK) << sp_last_error();
    EXPECT_EQ(figures.objects_freed, 38u);
    EXPECT_EQ(figures.objects_kept, 5u);
    EXPECT_EQ(objects(pool), 5u);
    nvm_object_facts facts;
    ASSERT_EQ(nvm_object(pool, root->next, &facts), SP_OK);
    EXPECT_EQ(facts.references, 2u);
    EXPECT_EQ(nvm_pool_close(pool), SP_OK);
}

TEST_F(BreezeApi, OpensTwoCopiesOfAPoolAtOnce)
{
    NVM_POOL* pool = create();
    fill(pool, 100);
    ASSERT_EQ(nvm_tx_begin(pool), SP_OK);
    auto* pair = static_cast<Pair*>(nvm_alloc(pool, NVM_TYPE_ID(Pair), 2 * sizeof(Pair)));
    auto* text = static_cast<Text*>(nvm_alloc(pool, NVM_TYPE_ID(Text), sizeof(Text) + 300'000));
    ASSERT_NE(text, nullptr) << sp_last_error();
    std::strcpy(text->bytes + 200'000, "far away");
    auto* const root = static_cast<Item*>(nvm_pool_root(pool));
    pair[1].variants[0].tag = 1;
    pair[1].variants[0].content.item = root;
    pair[1].variants[1].tag = 2;
    pair[1].variants[1].content.number = reinterpret_cast<std::uintptr_t>(root);
    pair[1].items[2] = root->next;
    ASSERT_EQ(nvm_pool_set_root(pool, pair), SP_OK);
    ASSERT_EQ(nvm_tx_commit(pool), SP_OK) << sp_last_error();
    EXPECT_EQ(objects(pool), 102u);  // Nothing points to the text, which is new.
    ASSERT_EQ(nvm_pool_close(pool), SP_OK);
    std::filesystem::copy_file(path("pool"), path("copy"));
    pool = open("pool");
    NVM_POOL* const copy = open("copy");
    ASSERT_NE(copy, nullptr);
    pair = static_cast<Pair*>(nvm_pool_root(pool));
    auto* const other = static_cast<Pair*>(nvm_pool_root(copy));
    EXPECT_NE(pair, other);
    EXPECT_EQ(nvm_pool_of(other[1].variants[0].content.item), copy);
    EXPECT_EQ(nvm_pool_of(other[1].items[2]), copy);
    EXPECT_EQ(other[1].variants[0].content.item->next, other[1].items[2]);
    EXPECT_EQ(other[1].variants[1].content.number, pair[1].variants[1].content.number);
    EXPECT_EQ(objects(copy), 101u);
    nvm_pool_facts facts;
    ASSERT_EQ(nvm_facts(copy, &facts), SP_OK);
    EXPECT_EQ(facts.pointers_rewritten, 101u);
    EXPECT_EQ(facts.generation, 2u);

    ASSERT_EQ(nvm_tx_begin(copy), SP_OK);  // The member that the tag names changes.
    NVM_SET(other[1].variants[0].tag, 2);
    NVM_SET(other[1].items[2], nullptr);
    ASSERT_EQ(nvm_tx_commit(copy), SP_OK) << sp_last_error();
    EXPECT_EQ(objects(copy), 1u);
    EXPECT_EQ(nvm_pool_close(copy), SP_OK);
    EXPECT_EQ(nvm_pool_close(pool), SP_OK);
}

TEST_F(BreezeApi, RunsThreadsWithCollections)
{
    NVM_POOL* const pool = create();
    ASSERT_EQ(nvm_tx_begin(pool), SP_OK);
    auto* const pair = static_cast<Pair*>(nvm_alloc(pool, NVM_TYPE_ID(Pair), sizeof(Pair)));
    ASSERT_EQ(nvm_pool_set_root(pool, pair), SP_OK);
    ASSERT_EQ(nvm_tx_commit(pool), SP_OK);
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < 3; ++number) {
        threads.emplace_back([&, number] {
            for (int i = 0; i < 2000; ++i) {
                ASSERT_EQ(nvm_tx_begin(pool), SP_OK);
                Item* const item = make(pool, number);
                Item* const old = pair->items[number];
                item->next = i % 10 == 0 ? nullptr : old;
                if (old != nullptr) {
                    NVM_SET(old->other, item);  // A cycle, sometimes.
                }
                NVM_SET(pair->items[number], item);
                if (i % 7 == 3) {
                    ASSERT_EQ(nvm_tx_abort(pool), SP_OK);
                } else {
                    ASSERT_EQ(nvm_tx_commit(pool), SP_OK) << sp_last_error();
                }
            }
        });
    }
    for (int i = 0; i < 5; ++i) {
        nvm_collection figures;
        ASSERT_EQ(nvm_collect(pool, &figures), SP_OK) << sp_last_error();
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    ASSERT_EQ(nvm_collect(pool, nullptr), SP_OK);
    std::uint64_t reachable = 1;
    for (const Item* item : pair->items) {
        for (; item != nullptr; item = item->next) {
            EXPECT_TRUE(item->value < 3);
            ++reachable;
        }
    }
    EXPECT_EQ(objects(pool), reachable);
    EXPECT_EQ(nvm_pool_close(pool), SP_OK);
}

TEST_F(BreezeApi, KeepsTheRestWhereAHeaderIsDamaged)
{
    NVM_POOL* pool = create();
    fill(pool, 10);
    std::uint64_t place = 0;
    {
        BreezePool& inside = *open_pool(pool).value();
        const auto* const third = static_cast<Item*>(nvm_pool_root(pool))->next->next;
        place = inside.parts().memory.offset_of(third) - object_header_bytes + segment_alignment_bytes;
    }
    ASSERT_EQ(nvm_pool_close(pool), SP_OK);
    {
        std::fstream file(path("pool"), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(place + offsetof(ObjectHeader, version)));
        file.put('x');
    }
    pool = open();
    ASSERT_NE(pool, nullptr);
    EXPECT_EQ(length(pool), 10u);
    nvm_pool_facts facts;
    ASSERT_EQ(nvm_facts(pool, &facts), SP_OK);
    EXPECT_EQ(facts.damaged_objects, 1u);
    EXPECT_EQ(nvm_collect(pool, nullptr), SP_E_POOL_CORRUPT);
    EXPECT_EQ(objects(pool), 10u);
    EXPECT_EQ(nvm_pool_close(pool), SP_OK);
}

TEST_F(BreezeApi, RefusesATypeThatIsAnotherOneInThePool)
{
    NVM_POOL* pool = create();
    ASSERT_EQ(nvm_tx_begin(pool), SP_OK);
    ASSERT_NE(nvm_alloc(pool, NVM_TYPE_ID(Variant), sizeof(Variant)), nullptr);
    ASSERT_EQ(nvm_tx_commit(pool), SP_OK);
    ASSERT_EQ(nvm_pool_close(pool), SP_OK);
    nvm_field fields[] = {{"content", NVM_FIELD_POINTER, 0, 8, 1, "", 0, 0, 0, 0}};
    nvm_type changed = {"Variant", 16, fields, 1, 0};
    EXPECT_EQ(nvm_type_register(&changed), SP_E_OBJECT_TYPE);
    const pid_t child = fork();
    if (child == 0) {  // A process that knows another type of that name only.
        nvm_type other = {"Other", 16, fields, 1, 0};
        _exit(nvm_type_register(&other) == SP_OK && nvm_pool_open_with(path("pool").c_str(), &memory) != nullptr ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
}

TEST_F(BreezeApi, RollsBackWhatItsLogCannotHold)
{
    NVM_POOL* const pool = create();
    ASSERT_EQ(nvm_tx_begin(pool), SP_OK);
    auto* const text = static_cast<Text*>(nvm_alloc(pool, NVM_TYPE_ID(Text), sizeof(Text) + 100'000));
    ASSERT_EQ(nvm_pool_set_root(pool, text), SP_OK);
    ASSERT_EQ(nvm_tx_commit(pool), SP_OK) << sp_last_error();
    ASSERT_EQ(nvm_tx_begin(pool), SP_OK);
    NVM_SET(text->length, 1);
    EXPECT_EQ(nvm_log(text->bytes, 100'000), SP_E_TRANSACTION_TOO_LARGE);
    EXPECT_EQ(nvm_tx_commit(pool), SP_E_TRANSACTION_TOO_LARGE);
    EXPECT_EQ(text->length, 0u);
    ASSERT_EQ(nvm_tx_begin(pool), SP_OK);
    EXPECT_EQ(nvm_log(text->bytes, 100'100), SP_E_INVALID_ARGUMENT);  // Beyond the object.
    ASSERT_EQ(nvm_tx_begin(pool), SP_OK);                             // An inner one.
    ASSERT_EQ(nvm_tx_abort(pool), SP_OK);
    EXPECT_EQ(nvm_pool_close(pool), SP_E_INSIDE_FASE);
    EXPECT_EQ(nvm_collect(pool, nullptr), SP_E_INSIDE_FASE);
    EXPECT_EQ(nvm_tx_commit(pool), SP_E_INVALID_ARGUMENT);
    EXPECT_EQ(nvm_tx_commit(pool), SP_E_NO_TRANSACTION);
    EXPECT_EQ(nvm_tx_commit_early(pool), SP_E_NO_TRANSACTION);
    EXPECT_EQ(nvm_wait_durable(pool), SP_OK);
    EXPECT_EQ(nvm_pool_close(pool), SP_OK);
    EXPECT_EQ(nvm_pool_close(pool), SP_E_NOT_OPEN);
    EXPECT_EQ(nvm_tx_begin(pool), SP_E_NOT_OPEN);
}

TEST_F(BreezeApi, KeepsPinnedObjectsUntilTheyAreFreed)
{
    static const nvm_field fields[] = {NVM_IS_PINNED, {"bytes", NVM_FIELD_TAIL, 0, 0, 0, "", 0, 0, 0, 0}};
    static nvm_type type = {"Pinned", 1, fields, 2, 0};
    ASSERT_EQ(nvm_type_register(&type), SP_OK) << sp_last_error();
    NVM_POOL* pool = create();
    ASSERT_EQ(nvm_tx_begin(pool), SP_OK);
    ASSERT_NE(nvm_alloc(pool, type.id, 100), nullptr);
    void* const second = nvm_alloc(pool, type.id, 200);
    ASSERT_EQ(nvm_tx_commit(pool), SP_OK);
    ASSERT_EQ(nvm_collect(pool, nullptr), SP_OK);
    EXPECT_EQ(objects(pool), 2u);
    ASSERT_EQ(nvm_tx_begin(pool), SP_OK);
    EXPECT_EQ(nvm_free(pool, second), SP_OK) << sp_last_error();
    ASSERT_EQ(nvm_tx_commit(pool), SP_OK);
    ASSERT_EQ(nvm_pool_close(pool), SP_OK);
    pool = open();
    EXPECT_EQ(objects(pool), 1u);
    EXPECT_EQ(nvm_pool_close(pool), SP_OK);
}

TEST_F(BreezeApi, RollsBackForExceptionsInCpp)
{
    auto pool = breeze::pool::create(path("pool"), 4 << 20, memory);
    pool.atomically([&](transaction& tx) { tx.set_root(tx.make<Item>(NVM_TYPE_ID(Item))); });
    auto* const root = pool.root<Item>();
    EXPECT_THROW(pool.atomically([&](transaction& tx) {
        tx.set(root->value, 7);
        throw std::runtime_error("no");
    }),
                 std::runtime_error);
    EXPECT_EQ(root->value, 0u);
    pool.atomically([&](transaction& tx) { tx.set(root->value, 8); });
    pool.atomically_early([&](transaction& tx) { tx.set(root->value, 9); });
    pool.wait_durable();
    EXPECT_EQ(root->value, 9u);
}

}  // namespace
}  // namespace stillpoint::breeze::testing
