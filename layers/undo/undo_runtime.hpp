#pragma once
// The common state of the sources of the runtime: the open pool, and what each thread keeps for its FASE.

#include <cstddef>
#include <cstdint>

#include "undo-hooks.h"
#include "undo_chunks.hpp"
#include "undo_pool.hpp"

namespace stillpoint::undo {

/// A list that grows, without exceptions: the runtime links no C++ library.
template <class T>
class List {
public:
    void push(const T& value) noexcept
    {
        if (count_ == room_) {
            grow();
        }
        items_[count_++] = value;
    }
    void clear() noexcept { count_ = 0; }
    void remove(std::size_t index) noexcept { items_[index] = items_[--count_]; }
    [[nodiscard]] std::size_t size() const noexcept { return count_; }
    [[nodiscard]] T& operator[](std::size_t index) const noexcept { return items_[index]; }
    void free() noexcept;

private:
    void grow() noexcept;

    T* items_ = nullptr;
    std::size_t count_ = 0;
    std::size_t room_ = 0;
};

/// The cache lines that a FASE has written and not yet written back. When two of them meet in one place the older is
/// written back at once: its old bytes are durable, so that is allowed.
class WrittenLines {
public:
    void add(const void* address, std::size_t size_bytes) noexcept;
    /// Writes all back. No fence.
    void write_back() noexcept;
    [[nodiscard]] bool empty() const noexcept { return count_ == 0 && !spilled_; }

private:
    static constexpr std::size_t places = 1024;
    std::uintptr_t line_[places] = {};   ///< 0: none
    std::uint16_t taken_[places] = {};   ///< which places are taken
    std::size_t count_ = 0;
    bool spilled_ = false;               ///< lines were written back that no fence has followed yet
};

/// One thread that has used durable memory. Its slot of the pool is its own until the thread ends.
struct Thread {
    std::uint32_t slot = 0;
    std::uint32_t depth = 0;           ///< of nested FASEs
    std::uint64_t id = 0;              ///< never 0
    std::uint64_t opening = 0;         ///< Runtime::opening at its first use
    // The log of the running FASE.
    std::uint64_t seed = 0;
    std::uint64_t log_at = 0;          ///< offset of the next entry
    std::uint64_t log_end = 0;
    std::uint32_t entries = 0;
    List<std::uint64_t> log_chunks;    ///< beyond the slot
    WrittenLines lines;
    List<std::uint64_t> freed;         ///< offsets of block headers: they join a list when the FASE ends
    List<undo_rwlock*> released;       ///< write locks to give up when the FASE has ended
    std::uint64_t chunk = Chunks::none;  ///< where blocks are carved
};

/// The open pool of the process.
struct Runtime {
    bool open = false;
    Pool pool{nullptr};
    Chunks chunks;
    bool direct = false;        ///< the mapping has MAP_SYNC
    std::uint64_t opening = 0;  ///< counts undo_open and undo_close: what a thread kept of an earlier pool is void
};

extern Runtime runtime;

/// The calling thread's; made at its first use, ended with the thread. Dies where there are too many.
[[nodiscard]] Thread& this_thread() noexcept;
/// The calling thread's, or NULL where it has none yet.
[[nodiscard]] Thread* this_thread_if_any() noexcept;

/// Makes the old bytes of a range durable, so that it may be written. Inside a FASE.
void log_range(Thread& thread, const void* address, std::size_t size_bytes) noexcept;
/// A logged store of the runtime itself.
void store_logged(Thread& thread, std::uint64_t& word, std::uint64_t value) noexcept;

/// Puts the blocks that the FASE has freed into the thread's lists.
void free_blocks(Thread& thread) noexcept;

/// Gives up the write locks that were released inside the FASE that has ended.
void give_up_locks(Thread& thread) noexcept;

/// Prints the message and aborts: a store that must be held back cannot be.
[[noreturn]] void die(const char* what) noexcept;

/// Sets errno and what undo_error() says; returns `code`.
int fail(int code, const char* what, const char* path = nullptr) noexcept;

}  // namespace stillpoint::undo
