// Memory that was a lock in use becomes integers: in the same block, in one that was freed with the lock held, and in the end of a block
// that became shorter. What the runtime knows of the lock ends with it, or recovery would release integers.

#include <algorithm>
#include <iterator>

#include "runtime/sync_uses.hpp"
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
            end_lock(root, random() % 3);
            root.phase = integers;
            ++root.serial;
            for (std::size_t i = 0; i < Block::word_count; ++i) {
                root.block->words[i] = integer(root.serial, i);
            }
        } else {
            if (root.block == nullptr) {
                root.block = Memory::make<Block>();
            }
            std::fill(std::begin(root.block->words), std::end(root.block->words), 0u);
            sync_uses::begin_lock(&lock_of(*root.block), SyncObjectKind::spinlock);
            lock_of(*root.block) = held;
            held_here_ = true;
            root.phase = lock_is_held;
        }
        Memory::filled(*root.block);
        Memory::stored(root);
    }

    void end_lock(Reused& root, std::uint64_t way)
    {
        if (way == 0) {
            lock_of(*root.block) = released;
            if (held_here_) {
                sync_uses::end_lock(&lock_of(*root.block));
            }
        } else if (way == 1) {
            Memory::destroy(root.block);
            root.block = Memory::make<Block>();
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

    bool held_here_ = false;  ///< else by a run that is over, or by nobody
};

}  // namespace

WorkloadMakers reused_locks()
{
    return {[]() -> std::unique_ptr<Workload> { return std::make_unique<ReusedLocks>(); }, nullptr};
}

}  // namespace stillpoint::explorer
