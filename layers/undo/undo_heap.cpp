// Blocks. All that says which blocks are in use lies in the pool and is written through the log of the FASE that allocates or
// frees; so a crash leaves neither a leak nor an overlap. A thread writes only its own lists and chunks: what one
// FASE may still undo no other can have touched.

#include <cerrno>
#include <cstring>

#include "undo_machine.hpp"
#include "undo_runtime.hpp"

namespace stillpoint::undo {

namespace {

constexpr std::uint64_t shared_chunk_max = chunk_bytes / 4;  ///< larger blocks get chunks of their own

/// A block is only formed where nothing was in use, so nothing of it needs to be logged.
void* form_block(Thread& thread, std::uint64_t offset, unsigned size_class) noexcept
{
    auto& block = *reinterpret_cast<BlockHeader*>(runtime.pool.at(offset));
    block = {block_mark, size_class, 0};
    thread.lines.add(&block, sizeof block);
    return &block + 1;
}

void* carve(Thread& thread, unsigned size_class) noexcept
{
    const std::uint64_t bytes = class_bytes(size_class);
    if (thread.chunk == Chunks::none || chunk_bytes - runtime.pool.used(thread.chunk) < bytes) {
        // The old chunk stays owned until the restart: its entry of the table may be undone by this thread's log only.
        thread.chunk = runtime.chunks.take_with_room(bytes);
        if (thread.chunk == Chunks::none) {
            return nullptr;
        }
    }
    std::uint64_t& used = runtime.pool.used(thread.chunk);
    const std::uint64_t offset = runtime.pool.chunk_offset(thread.chunk) + used;
    store_logged(thread, used, used + bytes);
    return form_block(thread, offset, size_class);
}

void* carve_large(Thread& thread, unsigned size_class) noexcept
{
    const std::uint64_t count = (class_bytes(size_class) + chunk_bytes - 1) / chunk_bytes;
    const std::uint64_t first = runtime.chunks.take_empty(count);
    if (first == Chunks::none) {
        return nullptr;
    }
    std::uint64_t* used = &runtime.pool.used(first);
    log_range(thread, used, count * sizeof *used);
    for (std::uint64_t i = 0; i < count; ++i) {
        used[i] = chunk_bytes;
    }
    thread.lines.add(used, count * sizeof *used);
    return form_block(thread, runtime.pool.chunk_offset(first), size_class);
}

BlockHeader& block_at(std::uint64_t offset) noexcept
{
    if (!runtime.pool.is_block(offset)) {
        die("a list of free blocks is damaged, or the freed address is not a block");
    }
    return *reinterpret_cast<BlockHeader*>(runtime.pool.at(offset));
}

void push_free(Thread& thread, std::uint64_t offset) noexcept
{
    BlockHeader& block = block_at(offset);
    std::uint64_t& first = runtime.pool.slot(thread.slot).free_blocks[block.size_class];
    store_logged(thread, block.next, first);
    store_logged(thread, first, offset);
}

}  // namespace

// Not before the FASE ends: a block that it freed and allocated again would be written without its old bytes in the log, and
// undoing the free would give back a block whose contents are lost.
void free_blocks(Thread& thread) noexcept
{
    for (std::size_t i = 0; i < thread.freed.size(); ++i) {
        push_free(thread, thread.freed[i]);
    }
    thread.freed.clear();
}

}  // namespace stillpoint::undo

using namespace stillpoint::undo;

extern "C" {

void* undo_alloc(std::size_t size_bytes)
{
    Thread* thread = this_thread_if_any();
    if (thread == nullptr || thread->depth == 0) {
        (void)fail(EINVAL, "undo_alloc outside of a FASE");
        return nullptr;
    }
    const unsigned size_class = size_bytes > runtime.pool.geometry().size_bytes ? size_classes
                                                                                : class_for(size_bytes + sizeof(BlockHeader));
    if (size_class == size_classes) {
        (void)fail(ENOMEM, "the requested block is larger than the pool");
        return nullptr;
    }
    std::uint64_t& first = runtime.pool.slot(thread->slot).free_blocks[size_class];
    if (first != 0) {
        BlockHeader& block = block_at(first);
        store_logged(*thread, first, block.next);
        return &block + 1;
    }
    void* made = class_bytes(size_class) <= shared_chunk_max ? carve(*thread, size_class) : carve_large(*thread, size_class);
    if (made == nullptr) {
        (void)fail(ENOMEM, "the pool is full");
    }
    return made;
}

void undo_free(void* block)
{
    if (block == nullptr) {
        return;
    }
    undo_fase_begin();
    Thread& thread = this_thread();
    const std::uint64_t offset = runtime.pool.offset_of(block) - sizeof(BlockHeader);
    if (removed(Canary::free_at_once)) {
        push_free(thread, offset);
    } else {
        thread.freed.push(offset);
    }
    undo_fase_end();
}

void* undo_root(std::size_t size_bytes)
{
    if (!runtime.open) {
        (void)fail(EINVAL, "no pool is open");
        return nullptr;
    }
    Variables& variables = runtime.pool.variables();
    if (variables.root == 0) {
        undo_fase_begin();
        Thread& thread = this_thread();
        void* made = undo_alloc(size_bytes);
        if (made != nullptr) {
            std::memset(made, 0, size_bytes);
            thread.lines.add(made, size_bytes);
            store_logged(thread, variables.root_bytes, size_bytes);
            store_logged(thread, variables.root, runtime.pool.offset_of(made));
        }
        undo_fase_end();
        return made;
    }
    if (variables.root_bytes != size_bytes) {
        (void)fail(EINVAL, "the pool's root was made with another size");
        return nullptr;
    }
    return runtime.pool.at(variables.root);
}

}  // extern "C"
