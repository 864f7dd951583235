// Garbage, at the edges:
//   - A collection that crashes at any fence frees no object that can be reached, and the next opening frees the rest.
//   - Objects with more pointers than a record holds are rewritten, and freed, in parts that crashes may divide.
//   - A freed block that a record of an older run names is not taken for the object that lies there now.
//   - The ring of activation records wraps, and what waits in it when a process dies is counted once.
//   - A collection frees neither an object that is being made while it sweeps, nor one whose pointer comes back by a roll back.
//   - Large objects, blocks of every size, and zones that change their block size come through openings.

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "support/breeze_lists.hpp"

namespace stillpoint::breeze::testing {
namespace {

using test::CrashMemory;

struct Wide {
    std::uint64_t count;
    Node* nodes[1];  ///< and more
};
struct Ring {
    Ring* next;
    Node* node;
};
struct Blob {
    char first;
    char bytes[7];  ///< and more
};
NVM_TYPE(Wide, NVM_HAS_PTR_TAIL(Wide, nodes));
NVM_TYPE(Ring, NVM_HAS_PTR(Ring, next), NVM_HAS_PTR(Ring, node));
NVM_TYPE(Blob, NVM_HAS_TAIL(Blob, bytes));

template <class T>
T* make(Transaction& transaction, std::uint32_t type, std::uint64_t size = sizeof(T))
{
    auto object = transaction.allocate(type, size, {});
    EXPECT_TRUE(object) << object.error().message;
    return reinterpret_cast<T*>(*object);
}

void commit(BreezePool& pool, Transaction& transaction)
{
    const auto committed = transaction.commit();
    ASSERT_TRUE(committed) << committed.error().message;
    pool.end(transaction);
}

/// A root of lists with one node, and rings that cannot be reached, each with a pointer to that node.
void make_rings(BreezePool& pool, int rings, int length)
{
    Transaction& first = pool.begin();
    auto* const all = make<Lists>(first, NVM_TYPE_ID(Lists));
    all->heads[0] = make<Node>(first, NVM_TYPE_ID(Node));
    ASSERT_TRUE(first.set_root(block_of(pool, all)));
    commit(pool, first);
    for (int i = 0; i < rings; ++i) {
        Transaction& transaction = pool.begin();
        auto* const begin = make<Ring>(transaction, NVM_TYPE_ID(Ring));
        Ring* last = begin;
        for (int j = 1; j < length; ++j) {
            last->next = make<Ring>(transaction, NVM_TYPE_ID(Ring));
            last->node = all->heads[0];
            last = last->next;
        }
        last->next = begin;
        commit(pool, transaction);
    }
    pool.parts().counts.drain();
}

TEST(BreezeGarbage, IsCollectedWhollyAfterACrashWithinACollection)
{
    std::mt19937_64 random(1);
    std::vector<std::vector<std::byte>> crashes;
    auto memory = new_memory(0);
    auto pool = open_memory(memory, 0);
    ASSERT_TRUE(pool) << pool.error().message;
    make_rings(**pool, 6, 5);
    memory->before_fence = [&] {
        for (const auto lines : {CrashMemory::Lines::none, CrashMemory::Lines::all, CrashMemory::Lines::some}) {
            crashes.push_back(memory->crash(lines, random));
        }
    };
    const auto collected = (*pool)->collect();
    memory->before_fence = nullptr;
    ASSERT_TRUE(collected) << collected.error().message;
    EXPECT_EQ(collected->freed, 30u);
    EXPECT_EQ(collected->kept, 2u);
    EXPECT_EQ(complaint_of_counts(**pool, 2).value_or(""), "");
    std::uint64_t begun = 0;
    for (const auto& crash : crashes) {
        auto again = open_memory(std::make_shared<CrashMemory>(crash), 1);
        ASSERT_TRUE(again) << again.error().message;
        PoolParts& parts = (*again)->parts();
        parts.counts.drain();
        const auto references = references_of(parts);
        ASSERT_TRUE(references.size() == 32 || references.size() == 2) << references.size();  // Not begun, or ended by the opening.
        begun += references.size() == 2 ? 1u : 0u;
        for (const auto& [block, count] : references) {
            ASSERT_TRUE(block != 0 && parts.allocated(block));
            ASSERT_EQ(references_in(parts.memory.object(block).counts), count);
        }
        const auto rest = (*again)->collect();
        ASSERT_TRUE(rest) << rest.error().message;
        ASSERT_EQ(complaint_of_counts(**again, 2).value_or(""), "");
    }
    EXPECT_GT(begun, 0u);
}

/// The root, whose first lists have a node each.
Lists* make_lists(BreezePool& pool, int nodes)
{
    Transaction& transaction = pool.begin();
    auto* const all = make<Lists>(transaction, NVM_TYPE_ID(Lists));
    for (int i = 0; i < nodes; ++i) {
        all->heads[i] = make<Node>(transaction, NVM_TYPE_ID(Node));
    }
    EXPECT_TRUE(transaction.set_root(block_of(pool, all)));
    commit(pool, transaction);
    return all;
}

TEST(BreezeGarbage, RecordsOfAnOlderRunDoNotCountForObjectsThatHaveTheirBlocksNow)
{
    auto memory = new_memory(0);
    auto pool = open_memory(memory, 0);
    ASSERT_TRUE(pool) << pool.error().message;
    Lists* const all = make_lists(**pool, 1);
    (*pool)->parts().counts.drain();

    Transaction& second = (*pool)->begin();
    Node* const gone = all->heads[0];
    set<Node*>(**pool, second, all->heads[0], nullptr);
    ASSERT_TRUE(second.free_block(block_of(**pool, gone)));
    const std::uint64_t block = block_of(**pool, gone);
    commit(**pool, second);
    std::mt19937_64 random(1);
    auto crashed = std::make_shared<CrashMemory>(memory->crash(CrashMemory::Lines::all, random));

    auto again = open_memory(crashed, 1);  // The logs have the record that takes a reference from the block.
    ASSERT_TRUE(again) << again.error().message;
    bool is_used_again = false;
    for (int i = 0; i < 100 && !is_used_again; ++i) {
        Transaction& transaction = (*again)->begin();
        Lists* const lists = lists_of(**again);
        auto* const made = make<Node>(transaction, NVM_TYPE_ID(Node));
        is_used_again = block_of(**again, made) == block;
        made->next = lists->heads[0];
        set(**again, transaction, lists->heads[0], made);
        commit(**again, transaction);
    }
    EXPECT_TRUE(is_used_again);
    (*again)->parts().counts.drain();
    const auto references = references_of((*again)->parts());
    for (const auto& [object, count] : references) {
        ASSERT_TRUE((*again)->parts().allocated(object));
        ASSERT_EQ(references_in((*again)->parts().memory.object(object).counts), count);
    }
}

constexpr std::uint64_t pointers = 5000;
static_assert(pointers > 2 * rewrite_words_max);

/// The root is one object with many pointers.
void make_wide(BreezePool& pool)
{
    Transaction& transaction = pool.begin();
    auto* const wide = make<Wide>(transaction, NVM_TYPE_ID(Wide), sizeof(Wide) + pointers * sizeof(Node*));
    ASSERT_TRUE(transaction.set_root(block_of(pool, wide)));
    commit(pool, transaction);
    for (std::uint64_t first = 0; first < pointers; first += 250) {
        Transaction& part = pool.begin();
        for (std::uint64_t i = first; i < first + 250; ++i) {
            auto* const node = make<Node>(part, NVM_TYPE_ID(Node));
            node->value = i;
            set(pool, part, wide->nodes[i], node);
        }
        commit(pool, part);
    }
    pool.parts().counts.drain();
}

bool is_wide(BreezePool& pool)
{
    const auto* const wide = reinterpret_cast<Wide*>(pool.parts().bytes_of(pool.parts().memory.header().root));
    for (std::uint64_t i = 0; i < pointers; ++i) {
        if (pool.parts().target_of(reinterpret_cast<std::uintptr_t>(wide->nodes[i])) == 0 || wide->nodes[i]->value != i) {
            return false;
        }
    }
    return !complaint_of_counts(pool, pointers + 1).has_value();
}

TEST(BreezeGarbage, OfObjectsWithManyPointersIsFreedAndRewrittenInParts)
{
    std::mt19937_64 random(2);
    std::vector<std::vector<std::byte>> crashes;
    auto memory = new_memory(0);
    auto pool = open_memory(memory, 0);
    ASSERT_TRUE(pool) << pool.error().message;
    make_wide(**pool);
    ASSERT_TRUE(is_wide(**pool));
    const auto content = memory->crash(CrashMemory::Lines::all, random);
    auto moved = std::make_shared<CrashMemory>(content);
    moved->before_fence = [&] {
        if (random() % 4 == 0) {
            crashes.push_back(moved->crash(CrashMemory::Lines::some, random));
        }
    };
    auto elsewhere = open_memory(moved, 1);
    ASSERT_TRUE(elsewhere) << elsewhere.error().message;
    moved->before_fence = nullptr;
    EXPECT_TRUE(is_wide(**elsewhere));
    EXPECT_GT(crashes.size(), 3u);
    unsigned place_number = 2;
    for (const auto& crash : crashes) {
        auto again = open_memory(std::make_shared<CrashMemory>(crash), place_number);
        ASSERT_TRUE(again) << again.error().message;
        ASSERT_TRUE(is_wide(**again));
        place_number = 2 + place_number % 3;
    }
    {  // All of it goes.
        crashes.clear();
        moved->before_fence = [&] { crashes.push_back(moved->crash(CrashMemory::Lines::some, random)); };
        Transaction& transaction = (*elsewhere)->begin();
        ASSERT_TRUE(transaction.set_root(0));
        commit(**elsewhere, transaction);
        (*elsewhere)->parts().counts.drain();
        moved->before_fence = nullptr;
        EXPECT_EQ(complaint_of_counts(**elsewhere, 0).value_or(""), "");
        EXPECT_EQ((*elsewhere)->parts().zones.objects(), 0u);
    }
    for (std::size_t i = 4; i < crashes.size(); i += 3) {
        auto again = open_memory(std::make_shared<CrashMemory>(crashes[i]), 2);
        ASSERT_TRUE(again) << again.error().message;
        const bool is_rooted = (*again)->parts().memory.header().root != 0;
        ASSERT_EQ(complaint_of_counts(**again, is_rooted ? pointers + 1 : 0).value_or(""), "");
    }
}

TEST(BreezeGarbage, WaitsInARingOfRecordsThatWraps)
{
    std::mt19937_64 random(3);
    auto memory = new_memory(0);
    auto pool = open_memory(memory, 0);
    ASSERT_TRUE(pool) << pool.error().message;
    Model model;
    for (int i = 0; i < 3000; ++i) {  // Passes are made where the ring is full alone.
        EXPECT_TRUE(run_transaction(**pool, model, random));
        for (auto& list : model) {
            if (list.size() > 40) {
                Transaction& transaction = (*pool)->begin();
                Lists* const all = lists_of(**pool);
                set(**pool, transaction, all->heads[&list - model.data()], static_cast<Node*>(nullptr));
                commit(**pool, transaction);
                list.clear();
            }
        }
        if (i % 500 == 499) {
            auto again = open_memory(std::make_shared<CrashMemory>(memory->crash(CrashMemory::Lines::some, random)), 1);
            ASSERT_TRUE(again) << again.error().message;
            ASSERT_EQ(model_of(**again), model);
            ASSERT_EQ(complaint_of_counts(**again, objects_in(model)).value_or(""), "");
        }
    }
    EXPECT_EQ(complaint_of_counts(**pool, objects_in(model)).value_or(""), "");
}

void await(const std::function<bool()>& condition)
{
    while (!condition()) {
        std::this_thread::yield();
    }
}

TEST(BreezeGarbage, IsNotALargeObjectThatIsMadeWhileACollectionSweeps)
{
    auto memory = new_memory(0);
    auto pool = open_memory(memory, 0);
    ASSERT_TRUE(pool) << pool.error().message;
    make_rings(**pool, 2, 3);
    Transaction& first = (*pool)->begin();
    make<Blob>(first, NVM_TYPE_ID(Blob));  // The pool has the type.
    commit(**pool, first);
    const std::thread::id own = std::this_thread::get_id();
    std::atomic<bool> sweeps{false};
    std::atomic<bool> may_sweep{false};
    std::atomic<bool> has_swept{false};
    memory->before_fence = [&] {
        if (std::this_thread::get_id() == own) {  // The header of the large object, before its bytes are zeroed.
            may_sweep = true;
            await([&] { return has_swept.load(); });
        } else if ((*pool)->parts().memory.header().collecting == 1 && !sweeps.exchange(true)) {
            await([&] { return may_sweep.load(); });
        }
    };
    std::thread collector([&] {
        EXPECT_TRUE((*pool)->collect());
        has_swept = true;
    });
    await([&] { return sweeps.load(); });
    Transaction& transaction = (*pool)->begin();
    constexpr std::uint64_t size = 200'000;
    auto* const blob = make<Blob>(transaction, NVM_TYPE_ID(Blob), size);
    collector.join();
    memory->before_fence = nullptr;
    EXPECT_TRUE((*pool)->parts().allocated(block_of(**pool, blob)));
    transaction.roll_back();
    (*pool)->end(transaction);
    EXPECT_EQ((*pool)->parts().zones.objects(), 2u);
}

TEST(BreezeGarbage, IsNoObjectWhosePointerARollBackStoresAgainWhileACollectionMarks)
{
    auto memory = new_memory(0);
    auto pool = open_memory(memory, 0);
    ASSERT_TRUE(pool) << pool.error().message;
    Lists* const all = make_lists(**pool, 2);
    Transaction& transaction = (*pool)->begin();
    make<Node>(transaction, NVM_TYPE_ID(Node));
    const std::uint64_t node = block_of(**pool, all->heads[0]);
    const std::uint64_t other = block_of(**pool, all->heads[1]);
    set(**pool, transaction, all->heads[0], static_cast<Node*>(nullptr));
    std::thread collector;
    std::atomic<bool> has_begun{false};
    memory->before_write_back = [&] {  // The head of the new node; no old word is stored yet.
        if (has_begun.exchange(true)) {
            return;
        }
        collector = std::thread([&] { EXPECT_TRUE((*pool)->collect()); });
        await([&] { return (*pool)->parts().marks.is_active() && (*pool)->parts().marks.is_marked(other); });
    };
    transaction.roll_back();
    (*pool)->end(transaction);
    collector.join();
    memory->before_write_back = nullptr;
    EXPECT_EQ(block_of(**pool, all->heads[0]), node);
    EXPECT_TRUE((*pool)->parts().allocated(node));
    EXPECT_EQ(complaint_of_counts(**pool, 3).value_or(""), "");
}

TEST(BreezeGarbage, OfEverySizeLeavesRoomForEveryOther)
{
    std::mt19937_64 random(4);
    auto memory = new_memory(0);
    auto pool = open_memory(memory, 0);
    ASSERT_TRUE(pool) << pool.error().message;
    for (const std::uint64_t size : {8ul, 16ul, 100ul, 1024ul, 5000ul, 70'000ul, 130'000ul, 300'000ul, 1'000'000ul}) {
        for (int round = 0; round < 2; ++round) {
            // As many as fit; the transaction is rolled back the first time, and nothing links them the second.
            Transaction& transaction = (*pool)->begin();
            std::uint64_t count = 0;
            for (; count < 300; ++count) {
                auto object = transaction.allocate(NVM_TYPE_ID(Blob), size, {});
                if (!object) {
                    EXPECT_EQ(object.error().code, SP_E_POOL_FULL);
                    break;
                }
                ASSERT_EQ((*object)[size - 1], std::byte{0});
                std::memset(*object, 0xff, size);
            }
            EXPECT_GE(count, size > 500'000 ? 1u : 2u) << size;
            if (round == 0) {
                transaction.roll_back();
                (*pool)->end(transaction);
                continue;
            }
            commit(**pool, transaction);
            EXPECT_EQ((*pool)->parts().zones.objects(), count);
            auto again = open_memory(std::make_shared<CrashMemory>(memory->crash(CrashMemory::Lines::some, random)), 1);
            ASSERT_TRUE(again) << again.error().message;
            EXPECT_EQ((*again)->figures().objects, count);
            EXPECT_EQ((*again)->parts().damaged_objects, 0u);
            (*again)->parts().counts.drain();
            EXPECT_EQ((*again)->parts().zones.objects(), 0u);
            ASSERT_TRUE((*pool)->collect());
            EXPECT_EQ((*pool)->parts().zones.objects(), 0u);
        }
    }
}

}  // namespace
}  // namespace stillpoint::breeze::testing
