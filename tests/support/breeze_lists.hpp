#pragma once
// For the tests of the engine breeze: pools of lists on a medium that crashes, and what must hold in each.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engines/breeze/breeze_pool.hpp"
#include "support/crash_medium.hpp"

namespace stillpoint::breeze::testing {

struct Node {
    Node* next;
    std::uint64_t value;
    nvm_weak first;  ///< of its list, when it was added
    char text[96];
};
constexpr std::size_t lists = 4;
struct Lists {
    Node* heads[lists];
    std::uint64_t transactions;
};

NVM_TYPE(Node, NVM_HAS_PTR(Node, next), NVM_HAS_WEAK(Node, first));
NVM_TYPE(Lists, NVM_HAS_PTR(Lists, heads));

using Model = std::vector<std::vector<std::uint64_t>>;

constexpr std::uint64_t image_bytes = 4 * mib;

inline std::uintptr_t place(unsigned number) { return window_base + window_bytes / 4 + number * 64 * mib; }

inline std::shared_ptr<test::CrashMemory> new_memory(unsigned place_number)
{
    const Pool::CreateOptions options{pool_format(), image_bytes, image_bytes, place(place_number), &BreezePool::format};
    auto memory = std::make_shared<test::CrashMemory>(Pool::file_bytes_for(options).value());
    auto pool = Pool::create(std::make_unique<test::CrashMedium>(memory), options);
    EXPECT_TRUE(pool) << pool.error().message;
    return memory;
}

inline Result<std::unique_ptr<BreezePool>> open_memory(const std::shared_ptr<test::CrashMemory>& memory, unsigned place_number,
                                                       unsigned threads = 1)
{
    auto pool = Pool::open(std::make_unique<test::CrashMedium>(memory), pool_format(), false, true);
    if (!pool) {
        return pass_on(pool.error());
    }
    return BreezePool::open(std::move(*pool), {.base_address = place(place_number), .threads = threads, .counts_in_background = false});
}

inline Lists* lists_of(BreezePool& pool)
{
    const std::uint64_t root = pool.parts().memory.header().root;
    return root == 0 ? nullptr : reinterpret_cast<Lists*>(pool.parts().bytes_of(root));
}

inline std::uint64_t offset_in(BreezePool& pool, const void* address) { return pool.parts().memory.offset_of(address); }
inline std::uint64_t block_of(BreezePool& pool, const void* object) { return offset_in(pool, object) - object_header_bytes; }

template <class T>
void set(BreezePool& pool, Transaction& transaction, T& place, T value)
{
    ASSERT_TRUE(transaction.log_range(offset_in(pool, &place), sizeof place, {}, true));
    place = value;
}

/// One transaction by chance, in the pool and in the model, which some roll back. The commit's result. `waits`: see Transaction::commit().
/// `saved_midway`: what is stored becomes durable before the commit, as by another thread.
inline Result<void> run_transaction(BreezePool& pool, Model& model, std::mt19937_64& random, bool waits = true, bool saved_midway = false)
{
    Transaction& transaction = pool.begin();
    Model after = model;
    Lists* all = lists_of(pool);
    if (all == nullptr) {
        all = reinterpret_cast<Lists*>(transaction.allocate(NVM_TYPE_ID(Lists), sizeof(Lists), {}).value());
        EXPECT_TRUE(transaction.set_root(block_of(pool, all)));
        after.assign(lists, {});
    }
    const std::size_t from = random() % lists;
    const std::size_t to = random() % lists;
    const std::uint64_t kind = random() % 5;
    Node* const first = all->heads[from];
    if (kind <= 1 || first == nullptr) {  // A new node at the head.
        auto* const node = reinterpret_cast<Node*>(transaction.allocate(NVM_TYPE_ID(Node), sizeof(Node), {}).value());
        node->value = random();
        node->next = first;
        if (first != nullptr) {
            node->first = {first, pool.parts().memory.object(block_of(pool, first)).version};
        }
        set(pool, transaction, all->heads[from], node);
        after[from].insert(after[from].begin(), node->value);
    } else if (kind == 2) {  // The first node leaves, and nothing points to it.
        set(pool, transaction, all->heads[from], first->next);
        after[from].erase(after[from].begin());
    } else if (kind == 3) {  // The first node goes to another list.
        set(pool, transaction, all->heads[from], first->next);
        set(pool, transaction, first->next, all->heads[to]);
        set(pool, transaction, all->heads[to], first);
        after[from].erase(after[from].begin());
        after[to].insert(after[to].begin(), first->value);
    } else {  // Values change, some twice.
        std::size_t index = 0;
        for (Node* node = first; node != nullptr; node = node->next) {
            set(pool, transaction, node->value, random());
            set(pool, transaction, node->value, random());
            after[from][index++] = node->value;
        }
    }
    set(pool, transaction, all->transactions, all->transactions + 1);
    if (saved_midway) {
        static_cast<void>(pool.parts().memory.wait_durable());
    }
    Result<void> committed;
    if (random() % 6 == 0) {
        transaction.roll_back();
    } else {
        committed = transaction.commit(waits);
        model = after;
    }
    pool.end(transaction);
    return committed;
}

/// The lists as they are; one with the value UINT64_MAX alone where a pointer leads to no object.
inline Model model_of(BreezePool& pool)
{
    Model found;
    const Lists* const all = lists_of(pool);
    for (std::size_t i = 0; all != nullptr && i < lists; ++i) {
        found.emplace_back();
        for (const Node* node = all->heads[i]; node != nullptr; node = node->next) {
            const auto address = reinterpret_cast<std::uintptr_t>(node);
            const std::uint64_t block = pool.parts().target_of(address);
            if (block == 0 || !pool.parts().allocated(block) || found.back().size() > image_bytes / sizeof(Node)) {
                return {{UINT64_MAX}};
            }
            found.back().push_back(node->value);
        }
    }
    return found;
}

/// References counted by hand; of place 0: pointers that lead to no object.
inline std::map<std::uint64_t, std::uint32_t> references_of(PoolParts& parts)
{
    std::map<std::uint64_t, std::uint32_t> references;
    if (parts.memory.header().root != 0) {
        ++references[parts.memory.header().root];
    }
    for (std::uint64_t number = 0; number < parts.zones.count(); ++number) {
        parts.zones.visit_blocks(number, [&](std::uint64_t block) {
            if (!parts.allocated(block)) {
                return;
            }
            references.try_emplace(block, 0);
            const std::byte* const object = parts.bytes_of(block);
            const Type* const type = parts.type_of(block);
            if (type == nullptr) {  // Damaged: a complaint of its own.
                ++references[0];
                return;
            }
            type->visit_pointers(object, parts.memory.object(block).size, [&](std::uint64_t offset, const PointerRun& run) {
                std::uint64_t pointer = 0;
                std::memcpy(&pointer, object + offset, sizeof pointer);
                if (run.kind == PointerKind::strong && pointer != 0) {
                    ++references[parts.target_of(pointer)];
                }
            });
        });
    }
    return references;
}

/// A complaint about a pool without cycles once its counts are applied, where they are not exact, or something is kept that cannot be
/// reached.
inline std::optional<std::string> complaint_of_counts(BreezePool& pool, std::uint64_t reachable)
{
    PoolParts& parts = pool.parts();
    parts.counts.drain();
    const auto references = references_of(parts);
    for (const auto& [block, count] : references) {
        if (block == 0 || !parts.allocated(block)) {
            return "a pointer leads to no object, or a freed one, at " + std::to_string(block);
        }
        if (references_in(parts.memory.object(block).counts) != count || count == 0) {
            return "the object at " + std::to_string(block) + " has the count " +
                   std::to_string(references_in(parts.memory.object(block).counts)) + ", and " + std::to_string(count) +
                   " pointers lead to it";
        }
    }
    if (references.size() != reachable) {
        return std::to_string(references.size()) + " objects are there, and " + std::to_string(reachable) + " can be reached";
    }
    return std::nullopt;
}

inline std::uint64_t objects_in(const Model& model)
{
    std::uint64_t objects = model.empty() ? 0 : 1;
    for (const auto& list : model) {
        objects += list.size();
    }
    return objects;
}

}  // namespace stillpoint::breeze::testing
