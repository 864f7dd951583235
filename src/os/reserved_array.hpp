#pragma once
// An array in address space that is reserved for its largest size and costs memory only where
// it is touched. For tables that grow while a program runs and that code which must not call
// malloc reads and writes.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <sys/mman.h>
#include <type_traits>
#include <utility>

#include "core/result.hpp"
#include "core/units.hpp"

namespace stillpoint::os {

/// Zeroed memory of so many bytes that costs nothing until it is touched. Errors: no_memory (no address space).
[[nodiscard]] inline Result<std::byte*> reserve_address_space(std::uint64_t bytes, const char* purpose)
{
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return fail(SP_E_NO_MEMORY, errno, "cannot reserve {} bytes of address space for {}", bytes, purpose);
    }
    return static_cast<std::byte*>(memory);
}

/// Address space for several arrays that begin and end together: one mapping costs less than one for each.
class ReservedSpace {
public:
    ReservedSpace() = default;
    ReservedSpace(const ReservedSpace&) = delete;
    ReservedSpace& operator=(const ReservedSpace&) = delete;
    ~ReservedSpace() { release(); }

    /// Everything that was lent is gone. Errors: no_memory (no address space).
    [[nodiscard]] Result<void> reserve(std::uint64_t bytes, const char* purpose)
    {
        release();
        const auto memory = reserve_address_space(bytes, purpose);
        if (!memory) {
            return pass_on(memory.error());
        }
        memory_ = *memory;
        bytes_ = bytes;
        return {};
    }
    /// Whole pages, which are zero; there are so many left.
    [[nodiscard]] std::byte* lend(std::uint64_t bytes) noexcept
    {
        std::byte* const lent = memory_ + lent_;
        lent_ += bytes;
        return lent;
    }

private:
    void release() noexcept
    {
        if (memory_ != nullptr) {
            munmap(memory_, bytes_);
        }
        memory_ = nullptr;
        bytes_ = 0;
        lent_ = 0;
    }

    std::byte* memory_ = nullptr;
    std::uint64_t bytes_ = 0;
    std::uint64_t lent_ = 0;
};

/// Elements start as zero bytes. Not thread-safe by itself; elements are plain memory.
template <class T>
class ReservedArray {
    static_assert(std::is_trivially_copyable_v<T> || std::is_standard_layout_v<T>);  // Zero bytes are its first value.

public:
    ReservedArray() = default;
    ReservedArray(const ReservedArray&) = delete;
    ReservedArray& operator=(const ReservedArray&) = delete;
    ReservedArray(ReservedArray&& other) noexcept { swap(other); }
    ReservedArray& operator=(ReservedArray&& other) noexcept
    {
        swap(other);
        return *this;
    }
    ~ReservedArray() { release(); }

    /// Errors: no_memory (no address space).
    [[nodiscard]] Result<void> reserve(std::uint64_t capacity, const char* purpose)
    {
        release();
        const std::size_t bytes = bytes_for(capacity);
        const auto memory = reserve_address_space(bytes, purpose);
        if (!memory) {
            return pass_on(memory.error());
        }
        elements_ = reinterpret_cast<T*>(*memory);
        capacity_ = capacity;
        mapped_bytes_ = bytes;
        return {};
    }

    /// The address space for so many elements.
    [[nodiscard]] static constexpr std::uint64_t bytes_for(std::uint64_t capacity) noexcept
    {
        return round_up(capacity * sizeof(T) + 1, page_bytes);
    }
    /// Takes bytes_for(capacity) of a space that has them, and lasts longer than the array's use.
    void borrow(ReservedSpace& space, std::uint64_t capacity) noexcept
    {
        release();
        elements_ = reinterpret_cast<T*>(space.lend(bytes_for(capacity)));
        capacity_ = capacity;
    }

    [[nodiscard]] T* data() noexcept { return elements_; }
    [[nodiscard]] const T* data() const noexcept { return elements_; }
    [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }
    T& operator[](std::uint64_t index) noexcept { return elements_[index]; }
    const T& operator[](std::uint64_t index) const noexcept { return elements_[index]; }

    /// Gives the memory of elements from `first` on back to the system; they read as zero.
    void discard_from(std::uint64_t first) noexcept
    {
        const std::size_t begin = round_up(first * sizeof(T), page_bytes);
        if (begin < mapped_bytes_) {
            madvise(reinterpret_cast<std::byte*>(elements_) + begin, mapped_bytes_ - begin, MADV_DONTNEED);
        }
    }

private:
    void release() noexcept
    {
        if (mapped_bytes_ != 0) {
            munmap(elements_, mapped_bytes_);
        }
        elements_ = nullptr;
        capacity_ = 0;
        mapped_bytes_ = 0;
    }
    void swap(ReservedArray& other) noexcept
    {
        std::swap(elements_, other.elements_);
        std::swap(capacity_, other.capacity_);
        std::swap(mapped_bytes_, other.mapped_bytes_);
    }

    T* elements_ = nullptr;
    std::uint64_t capacity_ = 0;
    std::size_t mapped_bytes_ = 0;  ///< 0: none, or borrowed ones
};

/// A bitmap of the same kind.
class ReservedBitmap {
public:
    [[nodiscard]] Result<void> reserve(std::uint64_t bits, const char* purpose)
    {
        bits_ = bits;
        return words_.reserve((bits + 63) / 64 + 1, purpose);
    }
    [[nodiscard]] std::uint64_t bits() const noexcept { return bits_; }
    [[nodiscard]] bool test(std::uint64_t bit) const noexcept { return ((words_[bit / 64] >> (bit % 64)) & 1u) != 0; }
    void set(std::uint64_t bit) noexcept { words_[bit / 64] |= std::uint64_t{1} << (bit % 64); }
    void clear(std::uint64_t bit) noexcept { words_[bit / 64] &= ~(std::uint64_t{1} << (bit % 64)); }
    void assign(std::uint64_t bit, bool value) noexcept { value ? set(bit) : clear(bit); }
    /// Bits 64*index to 64*index+63.
    std::uint64_t& word(std::uint64_t index) noexcept { return words_[index]; }
    [[nodiscard]] std::uint64_t word(std::uint64_t index) const noexcept { return words_[index]; }

private:
    ReservedArray<std::uint64_t> words_;
    std::uint64_t bits_ = 0;
};

}  // namespace stillpoint::os
