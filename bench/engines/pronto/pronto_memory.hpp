#pragma once
// Memory for a structure that lies inside a durable object of pronto. The object's methods are what is logged; the structure is written
// against MemoryEngine as for every other engine, and commits the object's operation before it releases its locks, as equation 5.1 of
// the paper demands.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "../../harness/ending.hpp"
#include "../engine.hpp"
#include "../locked_sections.hpp"
#include "stillpoint/pronto.h"
#include "stillpoint/pronto_lock.hpp"
#include "stillpoint/stillpoint.h"
#include "../untyped_memory.hpp"
#include "../word_locks.hpp"

namespace bench {

/// A lock that a program has in its durable objects. The structures in there do not know their object, so it tells its run.
class ProntoMutex {
public:
    void lock() noexcept { lock_.lock(run_number.load(std::memory_order_relaxed)); }
    void unlock() noexcept { lock_.unlock(); }

    inline static constinit std::atomic<std::uint32_t> run_number{0};

private:
    stillpoint::pronto::object_lock lock_;
};

struct ProntoMemory : LockedSections<LocksOfWords<ProntoMutex>>, UntypedMemory<ProntoMemory> {
    static constexpr StoresSeen stores_seen = StoresSeen::announced;

    /// A structure may look first, under locks that it releases again, and change things only then: what has changed nothing commits
    /// nothing. Every change allocates, frees, or announces what it writes.
    template <unsigned locks_max>
    class Operation : public LockedSection<locks_max, LocksOfWords<ProntoMutex>> {
    public:
        Operation() = default;
        Operation(const Operation&) = delete;
        Operation& operator=(const Operation&) = delete;
        ~Operation()
        {
            if (std::exchange(has_changed_, false) && sp_pronto_commit_current() != SP_OK) {
                give_up(std::string("an operation is not durable: ") + sp_last_error());
            }
        }
    };

    static void* allocate(std::size_t size_bytes) { return checked(sp_malloc(size_bytes)); }
    static void* allocate_aligned(std::size_t alignment_bytes, std::size_t size_bytes)
    {
        return checked(sp_aligned_alloc(alignment_bytes, size_bytes));
    }
    static void deallocate(void* block)
    {
        has_changed_ = true;
        sp_free(block);
    }
    static void about_to_write(void*, std::size_t) noexcept { has_changed_ = true; }
    /// The names are the objects': inside of one, each structure is made once and found through it.
    static void* root(const char*, std::size_t size_bytes)
    {
        constexpr std::size_t line_bytes = 64;
        void* const block = allocate_aligned(line_bytes, (size_bytes + line_bytes - 1) / line_bytes * line_bytes);
        std::memset(block, 0, size_bytes);
        return block;
    }
    /// Operations are durable when they return; a snapshot that is due is made here and not in another's slice.
    static void settle() noexcept { (void)sp_pronto_snapshot(); }

    static std::optional<std::uint64_t> statistic(std::string_view name)
    {
        std::uint64_t value = 0;
        return sp_statistic(std::string(name).c_str(), &value) == SP_OK ? std::optional(value) : std::nullopt;
    }

private:
    static void* checked(void* block)
    {
        has_changed_ = true;
        return block != nullptr ? block : (out_of_memory(sp_last_error()), nullptr);
    }

    inline static thread_local constinit bool has_changed_ = false;
};
static_assert(MemoryEngine<ProntoMemory>);

/// Inside operations that are combined: these take turns without a lock, and the object commits them.
struct ProntoCombinedMemory : ProntoMemory {
    struct Mutex {};

    template <unsigned locks_max>
    class Operation {
    public:
        Operation() noexcept {}
        void lock(Mutex&) noexcept {}
        void unlock_unwritten(Mutex&) noexcept {}
        template <class Condition>
        void wait(Condition&, Mutex&) noexcept
        {
        }
    };
    template <unsigned locks_max>
    using Reading = Operation<locks_max>;
};
static_assert(MemoryEngine<ProntoCombinedMemory>);

}  // namespace bench
