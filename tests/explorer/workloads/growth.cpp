// A chain of large blocks that outgrows the pool: segments are appended between and inside operations.

#include "stillpoint/stillpoint.h"
#include "workloads/entries.hpp"

namespace stillpoint::explorer {

namespace {

class Growth final : public Workload {
    static constexpr std::size_t block_bytes = 700'000;
    static constexpr std::uint64_t blocks_max = 30;
    static constexpr std::size_t step_words = 256 * 1024 / sizeof(std::uint64_t);
    static constexpr std::size_t word_count = block_bytes / sizeof(std::uint64_t) - 2;
    struct Block {
        Block* next;
        std::uint64_t serial;
        std::uint64_t words[word_count];
    };
    struct Root {
        Block* first;
        std::uint64_t count;
        std::uint64_t serial;
    };

    std::size_t root_bytes() const override { return sizeof(Root); }

    void perform(void* memory, Random& random) override
    {
        auto& root = *static_cast<Root*>(memory);
        if (root.count == blocks_max || (root.count > 4 && random() % 4 == 0)) {
            Block* const gone = root.first;
            root.first = gone->next;
            sp_free(gone);
            --root.count;
            stored(root);
            return;
        }
        // One, or enough that the pool grows twice in one operation.
        const std::uint64_t wanted = random() % 3 == 0 ? 13 : 1;
        for (std::uint64_t i = 0; i < wanted && root.count < blocks_max; ++i) {
            add(root);
        }
    }

    static void add(Root& root)
    {
        auto* const block = static_cast<Block*>(sp_malloc(sizeof(Block)));
        block->next = root.first;
        block->serial = ++root.serial;
        for (std::size_t i = 0; i < word_count; i += step_words) {
            block->words[i] = block->serial;
            stored(block->words[i]);
        }
        root.first = block;
        ++root.count;
        stored(block->next);
        stored(block->serial);
        stored(root);
    }

    std::string check(const void* memory, const FindObject&) const override
    {
        const auto& root = *static_cast<const Root*>(memory);
        std::uint64_t count = 0;
        for (const Block* block = root.first; block != nullptr; block = block->next) {
            if (!may_be_followed(block) || ++count > blocks_max || block->serial > root.serial) {
                return "the chain is broken";
            }
            for (std::size_t i = 0; i < word_count; i += step_words) {
                if (block->words[i] != block->serial) {
                    return "block " + std::to_string(block->serial) + " is torn";
                }
            }
        }
        return count == root.count ? "" : "the count is " + std::to_string(root.count);
    }

    std::uint64_t digest(const void* memory, const FindObject&) const override
    {
        Digest digest;
        for (const Block* block = static_cast<const Root*>(memory)->first; block != nullptr; block = block->next) {
            digest.add(block->serial);
        }
        return digest.value();
    }
};

}  // namespace

std::unique_ptr<Workload> make_growth() { return std::make_unique<Growth>(); }

}  // namespace stillpoint::explorer
