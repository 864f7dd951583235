// A chain of large blocks that outgrows the pool: segments are appended between and inside operations.

#include "workloads/entries.hpp"

namespace stillpoint::explorer {

namespace {

constexpr std::size_t block_bytes = 700'000;

/// Filled once, and then only read.
struct Block {
    static constexpr std::size_t word_count = block_bytes / sizeof(std::uint64_t) - 2;
    static constexpr std::size_t step_words = 256 * 1024 / sizeof(std::uint64_t);
    /// Blocks lie in the same places again; what they hold, and what they leave as it was, changes from page to page.
    [[nodiscard]] std::size_t first_word() const noexcept { return serial % 8 * (page_bytes / sizeof(std::uint64_t)); }
    Block* next;
    std::uint64_t serial;
    std::uint64_t words[word_count];
};

template <class Memory>
struct Chain {
    typename Memory::template Field<Block*> first;
    typename Memory::template Field<std::uint64_t> count;
    typename Memory::template Field<std::uint64_t> serial;
};

template <class Memory>
class Growth final : public WorkloadOn<Memory, Chain<Memory>> {
    using Root = Chain<Memory>;
    static constexpr std::uint64_t blocks_max = 30;

    void change(Root& root, Random& random) override
    {
        if (root.count == blocks_max || (root.count > 4 && random() % 4 == 0)) {
            Block* const gone = root.first;
            root.first = gone->next;
            Memory::destroy(gone);
            --root.count;
            Memory::stored(root);
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
        auto* const block = Memory::template make_unset<Block>();
        ++root.serial;
        block->next = root.first;
        block->serial = root.serial;
        for (std::size_t i = block->first_word(); i < Block::word_count; i += Block::step_words) {
            block->words[i] = block->serial;
            Memory::filled(block->words[i]);
        }
        root.first = block;
        ++root.count;
        Memory::filled(block, offsetof(Block, words));
        Memory::stored(root);
    }

    std::string problem_of(const Root& root, const FindObject&) const override
    {
        std::uint64_t count = 0;
        for (const Block* block = root.first; block != nullptr; block = block->next) {
            if (!may_be_followed(block) || ++count > blocks_max || block->serial > root.serial) {
                return "the chain is broken";
            }
            for (std::size_t i = block->first_word(); i < Block::word_count; i += Block::step_words) {
                if (block->words[i] != block->serial) {
                    return "block " + std::to_string(block->serial) + " is torn";
                }
            }
        }
        return count == root.count ? "" : "the count is " + std::to_string(root.count);
    }

    std::uint64_t digest_of(const Root& root, const FindObject&) const override
    {
        Digest digest;
        for (const Block* block = root.first; block != nullptr; block = block->next) {
            digest.add(block->serial);
        }
        return digest.value();
    }
};

}  // namespace

WorkloadMakers growth() { return over_each_memory<Growth>(); }

}  // namespace stillpoint::explorer
