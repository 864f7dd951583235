// FASEs: the log before a store, the lines after it, and the order in which a FASE becomes durable.
//
//   pre_nvm_write   old bytes into the log; write back; fence. Only now may the store happen.
//   post_nvm_write  remembers the lines.
//   outermost end   frees what the FASE freed; writes the lines back; fence; raises the slot's sequence number, which makes the log
//                   invalid; writes that back; fence. Then locks are given up.

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "arch/flush.hpp"
#include "undo_machine.hpp"
#include "undo_runtime.hpp"

namespace stillpoint::undo {

namespace {

constexpr std::uintptr_t line_bytes = 64;

void begin_log(Thread& thread) noexcept
{
    const Geometry& shape = runtime.pool.geometry();
    thread.seed = runtime.pool.log_seed(thread.slot);
    thread.entries = 0;
    thread.log_at = shape.slots_offset + thread.slot * shape.slot_bytes + sizeof(SlotHeader);
    thread.log_end = shape.slots_offset + (thread.slot + 1) * shape.slot_bytes;
}

void write_entry(Thread& thread, std::uint64_t offset, std::uint32_t size) noexcept
{
    std::byte* at = runtime.pool.at(thread.log_at);
    if (size != jump_mark) {
        std::memcpy(at + sizeof(EntryHeader), runtime.pool.at(offset), size);
    }
    EntryHeader entry{0, offset, size, thread.entries++};
    entry.checksum = entry_checksum(entry, at + sizeof(EntryHeader), thread.seed);
    std::memcpy(at, &entry, sizeof entry);
    if (!removed(Canary::log_write_back)) {
        (void)arch::flush(machine, at, entry_bytes(size));
    }
    thread.log_at += entry_bytes(size);
}

/// Leaves room for a jump after it, always.
void append(Thread& thread, std::uint64_t offset, std::uint32_t size) noexcept
{
    if (thread.log_end - thread.log_at < entry_bytes(size) + sizeof(EntryHeader)) {
        const std::uint64_t chunk = runtime.chunks.take_empty(1);
        if (chunk == Chunks::none) {
            die("the pool is full: no room for the log of this FASE");
        }
        thread.log_chunks.push(chunk);
        write_entry(thread, runtime.pool.chunk_offset(chunk), jump_mark);
        thread.log_at = runtime.pool.chunk_offset(chunk);
        thread.log_end = thread.log_at + chunk_bytes;
    }
    write_entry(thread, offset, size);
}

void end_outermost(Thread& thread) noexcept
{
    free_blocks(thread);
    if (thread.entries > 0 || !thread.lines.empty()) {
        thread.lines.write_back();
        if (!removed(Canary::commit_fence)) {
            machine.fence();
        }
    }
    if (thread.entries > 0) {
        std::uint64_t& sequence = runtime.pool.slot(thread.slot).sequence;
        __atomic_store_n(&sequence, sequence + 1, __ATOMIC_RELEASE);
        if (!removed(Canary::commit_write_back)) {
            machine.write_back(&sequence);
        }
        machine.fence();
        // An instruction that waits for the write backs, here rather than in the unlock that follows: the kernel preempts after
        // the instruction that took long, and within glibc's unlock every other thread would spin until this one runs again.
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    }
    for (std::size_t i = 0; i < thread.log_chunks.size(); ++i) {
        runtime.chunks.give_back(thread.log_chunks[i]);
    }
    thread.log_chunks.clear();
    thread.depth = 0;
    give_up_locks(thread);
}

bool durable(const void* address) noexcept { return reinterpret_cast<std::uintptr_t>(address) >> UNDO_WINDOW_SHIFT == UNDO_WINDOW_INDEX; }

}  // namespace

void WrittenLines::add(const void* address, std::size_t size_bytes) noexcept
{
    if (size_bytes == 0) {
        return;
    }
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t last = (begin + size_bytes - 1) & ~(line_bytes - 1);
    for (std::uintptr_t line = begin & ~(line_bytes - 1); line <= last; line += line_bytes) {
        const std::size_t place = line / line_bytes % places;
        if (line_[place] == line) {
            continue;
        }
        if (line_[place] == 0) {
            taken_[count_++] = static_cast<std::uint16_t>(place);
        } else if (!removed(Canary::data_write_back)) {
            machine.write_back(reinterpret_cast<const void*>(line_[place]));
            spilled_ = true;
        }
        line_[place] = line;
    }
}

void WrittenLines::write_back() noexcept
{
    for (std::size_t i = 0; i < count_; ++i) {
        std::uintptr_t& line = line_[taken_[i]];
        if (!removed(Canary::data_write_back)) {
            machine.write_back(reinterpret_cast<const void*>(line));
        }
        line = 0;
    }
    count_ = 0;
    spilled_ = false;
}

void log_range(Thread& thread, const void* address, std::size_t size_bytes) noexcept
{
    std::uint64_t offset = runtime.pool.offset_of(address);
    if (!runtime.open || offset > runtime.pool.geometry().size_bytes || size_bytes > runtime.pool.geometry().size_bytes - offset) {
        die("a store beyond the end of the pool, or after it was closed");
    }
    while (size_bytes > 0) {
        const auto piece = static_cast<std::uint32_t>(size_bytes < entry_bytes_max ? size_bytes : entry_bytes_max);
        append(thread, offset, piece);
        offset += piece;
        size_bytes -= piece;
    }
    if (!removed(Canary::log_fence)) {
        machine.fence();
    }
}

void store_logged(Thread& thread, std::uint64_t& word, std::uint64_t value) noexcept
{
    log_range(thread, &word, sizeof word);
    word = value;
    thread.lines.add(&word, sizeof word);
}

void die(const char* what) noexcept
{
    std::fprintf(stderr, "stillpoint: layer undo: %s; unfinished FASEs will be undone when the pool is opened again\n", what);
    std::abort();
}

}  // namespace stillpoint::undo

// ---- The hooks, and the functions of undo-hooks.h ---------------------------------------------------------------

using namespace stillpoint::undo;

extern "C" {

bool nvhooks_is_nvm(const void* address);
void nvhooks_pre_nvm_write(void* address, std::size_t size_bytes);
void nvhooks_post_nvm_write(void* address, std::size_t size_bytes);

bool nvhooks_is_nvm(const void* address) { return durable(address); }

// Outside of a FASE nothing can be undone, since nothing says where it would end: the store becomes durable by itself.
void nvhooks_pre_nvm_write(void* address, std::size_t size_bytes)
{
    Thread* thread = this_thread_if_any();
    if (thread != nullptr && thread->depth > 0 && size_bytes > 0) {
        log_range(*thread, address, size_bytes);
    }
}

void nvhooks_post_nvm_write(void* address, std::size_t size_bytes)
{
    Thread* thread = this_thread_if_any();
    if (thread != nullptr && thread->depth > 0) {
        thread->lines.add(address, size_bytes);
    } else {
        (void)stillpoint::arch::flush(machine, address, size_bytes);
        machine.fence();
    }
}

void undo_fase_begin(void)
{
    Thread& thread = this_thread();
    if (thread.depth++ == 0) {
        begin_log(thread);
    }
}

void undo_fase_end(void)
{
    Thread& thread = this_thread();
    if (thread.depth > 1) {
        --thread.depth;
    } else if (thread.depth == 1) {
        end_outermost(thread);
    }
}

}  // extern "C"
