#pragma once
// The image of a pool as it is mapped: the medium's own memory, so that the program's stores are the medium's.

#include <array>
#include <atomic>
#include <cstdint>

#include "core/result.hpp"
#include "core/sanitizers.hpp"
#include "engines/breeze/breeze_layout.hpp"
#include "engines/breeze/journaled_image.hpp"
#include "pool/pool.hpp"
#include "runtime/shadow.hpp"

namespace stillpoint::breeze {

/// Words of the image that several threads, or a thread and recovery, read while they are stored.
[[nodiscard]] inline std::uint64_t load_word(const std::uint64_t& word) noexcept
{
    return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
}
inline void store_word(std::uint64_t& word, std::uint64_t value) noexcept { std::atomic_ref(word).store(value, std::memory_order_release); }

/// A word of an object that the program may be storing meanwhile, with a plain store. Aligned words do not tear, and either value will do
/// for a collection, which a transaction tells of the old and the new one.
[[nodiscard]] STILLPOINT_NO_THREAD_SANITIZER inline std::uint64_t load_word_of_program(const std::byte* place) noexcept
{
    return *reinterpret_cast<const volatile std::uint64_t*>(place);
}

class PoolMemory {
public:
    /// Where to map: the address that is wanted, and whether another one will do.
    struct Place {
        std::uintptr_t base;
        bool or_another;
    };

    /// A pool with a journal is read first: its image is private memory. `round_bytes`: see Journal::replay().
    /// Errors: pool_corrupt, io, no_memory.
    [[nodiscard]] Result<void> read_journaled(Pool& pool, std::uint64_t round_bytes);
    /// The header, before the image is mapped. Errors: io.
    [[nodiscard]] Result<PoolHeader> read_header(const Pool& pool) const;
    /// Errors: window_taken, no_memory, io.
    [[nodiscard]] Result<void> map(Pool& pool, Place place);
    void unmap() noexcept { addresses_.unmap(); }

    [[nodiscard]] std::byte* base() const noexcept { return base_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
    [[nodiscard]] bool contains(std::uintptr_t address) const noexcept
    {
        return address - reinterpret_cast<std::uintptr_t>(base_) < bytes_;
    }
    [[nodiscard]] std::uint64_t offset_of(const void* address) const noexcept
    {
        return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - base_);
    }
    template <class T>
    [[nodiscard]] T& at(std::uint64_t offset) const noexcept
    {
        return *reinterpret_cast<T*>(base_ + offset);
    }
    [[nodiscard]] PoolHeader& header() const noexcept { return at<PoolHeader>(0); }
    [[nodiscard]] ObjectHeader& object(std::uint64_t offset) const noexcept { return at<ObjectHeader>(offset); }

    /// Any thread.
    void write_back(const void* address, std::uint64_t size_bytes) const noexcept;
    /// Stores whole lines past the caches: durable after the fence of the same thread. Any thread.
    void store_lines(std::uint64_t offset, const void* data, std::uint64_t size_bytes) const noexcept
    {
        if (is_journaled_) {
            store_noted(offset, data, size_bytes);
        } else {
            medium_->append_lines(file_offset_ + offset, data, size_bytes);
        }
    }
    /// The lines of these words.
    void write_back_lines(std::span<const std::uintptr_t> lines, std::span<const StoredWords> stored) const noexcept
    {
        if (is_journaled_) {
            journal_.note(stored);
        } else {
            medium_->write_back_lines(lines);
        }
    }
    /// Everything that this thread has written back comes before what it writes back later; in a mapped pool it is durable.
    void fence() const noexcept
    {
        if (!is_journaled_) {
            medium_->fence();
        }
    }
    /// After a fence: what was written back before is durable. Errors: io, no_space.
    [[nodiscard]] Result<void> make_durable() const noexcept { return is_journaled_ ? journal_.make_durable() : Result<void>{}; }
    /// Transactions that were committed before are durable. Errors: io, no_space; those of a medium that has lost pages.
    [[nodiscard]] Result<void> wait_durable() const noexcept
    {
        if (auto durable = make_durable(); !durable) {
            return durable;
        }
        return medium_->has_lost_pages() ? medium_->check_intact() : Result<void>{};
    }
    /// Errors: io, no_space.
    [[nodiscard]] Result<void> close() const noexcept { return is_journaled_ ? journal_.close() : Result<void>{}; }
    /// Written back, then a fence.
    void persist(const void* address, std::uint64_t size_bytes) const noexcept
    {
        write_back(address, size_bytes);
        fence();
    }
    /// One store, written back, then a fence.
    void persist_word(std::uint64_t& word, std::uint64_t value) const noexcept
    {
        store_word(word, value);
        persist(&word, sizeof word);
    }
    [[nodiscard]] Medium& medium() const noexcept { return *medium_; }

private:
    [[nodiscard]] Result<void> map_at(Pool& pool, std::uintptr_t base);
    void store_noted(std::uint64_t offset, const void* data, std::uint64_t size_bytes) const noexcept;

    Shadow addresses_;
    Medium* medium_ = nullptr;
    std::byte* base_ = nullptr;
    std::uint64_t bytes_ = 0;
    std::uint64_t file_offset_ = 0;  ///< of the image
    bool is_journaled_ = false;
    mutable JournaledImage journal_;
};

/// Lines that are written back together: one that is added twice in succession is written back once. The words of the ranges that are
/// added are the caller's: no other thread stores to them meanwhile, but by store_word().
class LinesToWriteBack {
public:
    explicit LinesToWriteBack(const PoolMemory& memory) noexcept : memory_(memory) {}
    LinesToWriteBack(const LinesToWriteBack&) = delete;
    LinesToWriteBack& operator=(const LinesToWriteBack&) = delete;
    ~LinesToWriteBack() { flush(); }

    void add(const void* address, std::uint64_t size_bytes) noexcept;
    void flush() noexcept
    {
        memory_.write_back_lines({lines_.data(), count_}, {stored_.data(), count_});
        count_ = 0;
    }

private:
    const PoolMemory& memory_;
    static constexpr std::size_t lines_max = 128;
    std::array<std::uintptr_t, lines_max> lines_;
    std::array<StoredWords, lines_max> stored_;  ///< the same lines, for a journal
    std::size_t count_ = 0;
};

}  // namespace stillpoint::breeze
