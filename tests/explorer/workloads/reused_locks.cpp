// Memory that was a lock in use becomes integers: in the same block, in one that was freed with the lock held, in one whose name was
// given to another, and in the end of a block that became shorter. The runtime's record of the lock ends with the lock, or recovery would
// release integers.

#include <algorithm>
#include <iterator>

#include "runtime/sync_uses.hpp"
#include "stillpoint/nvthreads.h"
#include "workloads/entries.hpp"

namespace stillpoint::explorer {

namespace {

enum Phase : std::uint64_t { nothing, lock_is_held, integers };

struct Block {
    static constexpr std::size_t word_count = 32;
    std::uint32_t words[word_count];
};

struct Reused {
    std::uint64_t phase;
    std::uint64_t serial;
    Block* block;
    std::uint64_t is_named;
};

/// Where objects have logged variables no memory changes its kind.
class ReusedLocks final : public WorkloadOn<PlainMemory, Reused> {
    using Memory = PlainMemory;
#if defined(__x86_64__)
    static constexpr std::uint32_t held = 0;  ///< of a spinlock of glibc; and an integer like any other
#else
    static constexpr std::uint32_t held = 1;
#endif
    static constexpr std::uint32_t released = 1 - held;

    void change(Reused& root, Random& random) override
    {
        if (root.phase == lock_is_held) {
            end_lock(root, root.is_named != 0 ? named_ways[random() % 2] : unnamed_ways[random() % 3]);
            root.phase = integers;
            ++root.serial;
            for (std::size_t i = 0; i < Block::word_count; ++i) {
                root.block->words[i] = integer(root.serial, i);
            }
        } else {
            choose_block(root, random);
            std::fill(std::begin(root.block->words), std::end(root.block->words), 0u);
            sync_uses::begin_lock(&lock_of(*root.block), SyncObjectKind::spinlock);
            lock_of(*root.block) = held;
            held_here_ = true;
            root.phase = lock_is_held;
        }
        Memory::filled(*root.block);
        Memory::stored(root);
    }

    enum class Way { in_place, freed, replaced, shorter };
    static constexpr Way unnamed_ways[] = {Way::in_place, Way::freed, Way::shorter};
    static constexpr Way named_ways[] = {Way::in_place, Way::replaced};
    static constexpr const char* name = "reused";

    /// A block that the name leads to from now on, zeroed; the one that it led to is freed.
    static Block* named_block()
    {
        auto* const block = static_cast<Block*>(nvmalloc(sizeof(Block), name));
        if (block == nullptr) {
            throw std::bad_alloc();
        }
        return block;
    }

    static void choose_block(Reused& root, Random& random)
    {
        if (root.is_named != 0 || (root.block != nullptr && random() % 2 == 0)) {
            return;
        }
        if (root.block != nullptr) {
            Memory::destroy(root.block);
        }
        root.is_named = random() % 2;
        root.block = root.is_named != 0 ? named_block() : Memory::make<Block>();
    }

    void end_lock(Reused& root, Way way)
    {
        if (way == Way::in_place) {
            lock_of(*root.block) = released;
            if (held_here_) {
                sync_uses::end_lock(&lock_of(*root.block));
            }
        } else if (way == Way::freed) {
            Memory::destroy(root.block);
            root.block = Memory::make<Block>();
        } else if (way == Way::replaced) {
            [[maybe_unused]] const Block* const other = named_block();
            root.block = Memory::make<Block>();  // Mostly what was freed just now.
            root.is_named = 0;
        } else {
            for (const std::size_t bytes : {sizeof(Block) - sizeof(std::uint64_t), sizeof(Block)}) {
                root.block = static_cast<Block*>(sp_realloc(root.block, bytes));
                if (root.block == nullptr) {
                    throw std::bad_alloc();
                }
            }
        }
        held_here_ = false;
    }

    [[nodiscard]] static std::uint32_t& lock_of(Block& block) { return block.words[Block::word_count - 1]; }
    [[nodiscard]] static std::uint32_t integer(std::uint64_t serial, std::size_t index)
    {
        return index == Block::word_count - 1 ? held : 1 + static_cast<std::uint32_t>((serial + index) % 3);
    }

    std::string problem_of(const Reused& root, const FindObject&) const override
    {
        if (root.phase == nothing) {
            return "";
        }
        if (root.phase > integers || !may_be_followed(root.block)) {
            return "there is no block";
        }
        for (std::size_t i = 0; i < Block::word_count; ++i) {
            const std::uint32_t word = root.block->words[i];
            const bool is_lock = i == Block::word_count - 1;  // Held, or released by a recovery.
            if (root.phase == integers ? word != integer(root.serial, i) : word > (is_lock ? 1u : 0u)) {
                return "word " + std::to_string(i) + " of the block is " + std::to_string(word);
            }
        }
        return "";
    }

    std::uint64_t digest_of(const Reused& root, const FindObject&) const override
    {
        Digest digest;
        digest.add(root.phase);
        digest.add(root.serial);
        return digest.value();
    }

    bool held_here_ = false;  ///< else by a run that is over, or not at all
};

}  // namespace

WorkloadMakers reused_locks()
{
    return {[]() -> std::unique_ptr<Workload> { return std::make_unique<ReusedLocks>(); }, nullptr};
}

}  // namespace stillpoint::explorer
