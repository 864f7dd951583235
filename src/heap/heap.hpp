#pragma once
// The persistent allocator.
//
// Durable parts: for each span (64 KiB) its size class and, for each block of it, one byte
// that is 1 while the block is allocated. Nothing else: free lists, thread caches and counters
// live in DRAM and are rebuilt from those bytes, so a block that a dead thread had cached, or
// that a rolled-back epoch had allocated, is simply free. A malloc or free dirties one byte.
//
// With TableFormat::logged the engine keeps durable memory by lines and in place. Spans and marks are then logged words, 64
// marks in each; spans may be typed; and what was freed is not given out again before the free is durable, because the state of an
// older epoch still has it (delayed_frees.hpp).
//
// Every member is called inside a FASE (the C API does that), so the engine's quiescent state
// sees the tables between calls, never in one.

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/findings.hpp"
#include "core/result.hpp"
#include "pool/image_layout.hpp"
#include "stillpoint/stillpoint.h"

namespace stillpoint {

class Heap {
public:
    static constexpr std::size_t span_bytes = 64 * 1024;
    /// So many are attached at once at most.
    static constexpr std::size_t heaps_max = 16;

    /// Asks for a larger image; returns its new size in bytes, or the failure that
    /// sp_last_error() shows. Called with no lock of the heap held but the growth lock.
    using Grow = Result<std::uint64_t> (*)(void* context, std::uint64_t image_bytes_wanted);

    struct Options {
        std::byte* image_base;          ///< mapped image
        std::uint64_t heap_offset;      ///< ImageGeometry::heap_offset
        std::uint64_t image_bytes;      ///< present size
        std::uint64_t image_bytes_max;  ///< the tables are laid out for this
        Grow grow;
        void* grow_context;
        layout::TableFormat table_format = layout::TableFormat::plain;
        /// The contents of free memory may differ from what the medium has: it was not loaded, or is in the CPU's caches only.
        bool free_memory_is_unknown = false;
        /// Where the maximum was raised: the one that the heap was made with, and where its tables lie (image_heap.hpp); 0: it never was.
        std::uint64_t image_bytes_first_max = 0;
        std::uint64_t span_table_offset = 0;
    };

    /// Takes an image as recovered (or zeroed) and builds the DRAM side. It reads the span table
    /// only; the bytes of a span are read when a thread first wants a block of it. Heaps share nothing:
    /// several may be attached, each to an image of its own. image_base must be a multiple of span_bytes.
    /// Errors: pool_corrupt, no_memory (also where heaps_max are attached), already_open (the image has a heap), invalid_argument.
    /// Threads: any, at any time.
    [[nodiscard]] static Result<Heap*> attach(const Options& options);
    /// Drops the DRAM side, and what threads have cached of it. No thread may be inside a member of this heap, or call one afterwards;
    /// other heaps may be in use.
    void detach() noexcept;

    /// nullptr: no memory; the reason is in last_failure() of the calling thread.
    [[nodiscard]] void* allocate(std::size_t size_bytes) noexcept;
    [[nodiscard]] void* allocate_zeroed(std::size_t size_bytes) noexcept;
    [[nodiscard]] void* allocate_aligned(std::size_t alignment, std::size_t size_bytes) noexcept;
    /// nullptr as `block` allocates. Size 0 makes the block as small as blocks are; it does not free it.
    /// `about_to_die` (may be null) is told of memory that the block loses, by a move or at its end, before another thread can be given it.
    using AboutToDie = void (*)(const void* begin, std::size_t size_bytes) noexcept;
    [[nodiscard]] void* reallocate(void* block, std::size_t size_bytes, AboutToDie about_to_die = nullptr) noexcept;
    /// A pointer that is not a live block of this heap ends the program with a message that
    /// says which (double free, interior pointer, foreign address): it cannot be made durable.
    void deallocate(void* block) noexcept;
    [[nodiscard]] std::size_t usable_size(const void* block) const noexcept;

    // -- Typed slabs: with TableFormat::logged -------------------------------------------------
    /// A type of durable objects, as the program describes it.
    struct ObjectLayout {
        struct Member {
            std::uint32_t offset_bytes;  ///< of the first
            std::uint16_t kind;  ///< of a logged variable, or a heap::member_kind
            std::uint16_t count;
        };
        const char* type_name;  ///< for messages; nullptr: none
        std::uint32_t size_bytes;
        std::uint32_t alignment_bytes;
        std::span<const Member> members;  ///< runs of logged variables and locks, by offset
    };
    /// The number of a layout in the image's table, where it is put if it is not there. Errors: invalid_argument (it contradicts itself),
    /// no_space (255 others are there).
    [[nodiscard]] Result<std::uint16_t> find_layout(const ObjectLayout& layout) noexcept;
    /// As allocate_aligned(), `alignment` at most 4096: for objects of that layout, `size_bytes` of them. Old bytes.
    [[nodiscard]] void* allocate_typed(std::uint16_t layout, std::size_t alignment, std::size_t size_bytes) noexcept;
    /// Spares allocate_typed() its search: what small objects of a layout are known by until detach(). 0: they are not small, or it failed.
    [[nodiscard]] std::uint16_t tag_of_typed(std::uint16_t layout, std::size_t alignment, std::size_t size_bytes) noexcept;
    [[nodiscard]] void* allocate_tagged(std::uint16_t tag) noexcept;
    /// As allocate_zeroed(), of a block that was just allocated.
    void clear_block(void* block, std::size_t size_bytes) noexcept;
    /// For a thread that tells before it leaves its FASE: its frees may then be done some frees later, when the cache line of the mark,
    /// which is mostly cold, has come. finish_frees() does those that wait; false does them too. Both are of the thread, for every heap:
    /// a thread does the frees of a heap before it leaves the FASE that they belong to.
    static void let_frees_wait(bool may_wait) noexcept;
    static void finish_frees() noexcept;
    /// The number of the layout of a live block; 0: it is not typed.
    [[nodiscard]] std::uint16_t layout_number_of(const void* block) const noexcept;
    /// Whether a live block's layout has a logged variable or a lock of that kind at `address`: recovery finds it.
    [[nodiscard]] bool is_member(const void* address, unsigned kind) const noexcept;

    /// The live block that `address` lies in, for messages.
    struct Block {
        const std::byte* begin;  ///< nullptr: none
        std::size_t usable_bytes;
    };
    [[nodiscard]] Block find_block(const void* address) const noexcept;

    /// The bytes of the tables that say that a live block is allocated: all of them zero where it is free. Not of a heap with logged
    /// tables. size_bytes 0: no live block begins at `block`.
    struct BlockState {
        const std::byte* bytes;
        std::size_t size_bytes;
    };
    [[nodiscard]] BlockState state_of_block(const void* block) const noexcept;

    /// Gives the calling thread's cached blocks of this heap back: at thread exit. The thread may go on to use
    /// the heap. A thread that ends without this is noticed later, at the next shortage.
    void flush_thread_cache() noexcept;

    [[nodiscard]] sp_heap_statistics statistics() const noexcept;
    /// Shows each live block to `visit`, which may not call the heap. A thread's allocation meanwhile may be shown or not.
    /// Cost: a look at every mark.
    void visit_live_blocks(void (*visit)(void* context, const std::byte* block, std::size_t bytes), void* context) const noexcept;
    /// Every invariant of the durable tables: classes known, runs within bounds and not
    /// overlapping, allocation bytes 0 or 1. Errors: pool_corrupt, naming the span.
    /// Needs no attached heap, and the image may be mapped read-only and anywhere; no thread changes it meanwhile.
    /// With `findings` it tells each and returns ok.
    [[nodiscard]] static Result<void> check(const Options& options, Findings* findings = nullptr);
    /// Whether a live block of at least `size_bytes` begins at that offset of a sound image. Needs no attached heap.
    [[nodiscard]] static bool is_live_block(const Options& options, std::uint64_t offset, std::uint64_t size_bytes) noexcept;
    /// The owner of the bytes at that offset of a sound image. Needs no attached heap.
    enum class Owner {
        heap,  ///< some of them are the heap's tables, or lie outside it, or in two blocks
        nobody,  ///< a small block that is free
        program,  ///< a live block, or spans without marks: the rest of a large run, or free ones
    };
    [[nodiscard]] static Owner owner_of(const Options& options, std::uint64_t offset, std::uint64_t size_bytes) noexcept;

    /// The calling thread's, whichever heap it called.
    [[nodiscard]] static const Failure& last_failure() noexcept;

    Heap(const Heap&) = delete;
    Heap& operator=(const Heap&) = delete;

protected:
    constexpr Heap() noexcept = default;
    ~Heap() = default;
};

}  // namespace stillpoint
