#pragma once
// A list in reserved address space, for threads that must not call malloc.

#include <cstdint>
#include <span>
#include <utility>

#include "core/result.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::breeze {

template <class T>
class ReservedList {
public:
    /// Errors: no_memory.
    [[nodiscard]] Result<void> reserve(std::uint64_t capacity, const char* purpose) { return elements_.reserve(capacity, purpose); }
    /// See ReservedArray.
    [[nodiscard]] static constexpr std::uint64_t bytes_for(std::uint64_t capacity) noexcept
    {
        return os::ReservedArray<T>::bytes_for(capacity);
    }
    void borrow(os::ReservedSpace& space, std::uint64_t capacity) noexcept { elements_.borrow(space, capacity); }
    /// False: the list is full.
    bool push_back(const T& element) noexcept
    {
        if (size_ == elements_.capacity()) {
            return false;
        }
        elements_[size_++] = element;
        return true;
    }
    void clear() noexcept { size_ = 0; }
    void shorten_to(std::uint64_t size) noexcept { size_ = size; }
    /// Elements from `first` on, which are not in use, take no memory until they are used again.
    void discard_from(std::uint64_t first) noexcept { elements_.discard_from(first); }
    void swap(ReservedList& other) noexcept
    {
        std::swap(elements_, other.elements_);
        std::swap(size_, other.size_);
    }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] std::uint64_t capacity() const noexcept { return elements_.capacity(); }
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    [[nodiscard]] T& operator[](std::uint64_t index) noexcept { return elements_[index]; }
    [[nodiscard]] T& back() noexcept { return elements_[size_ - 1]; }
    void pop_back() noexcept { --size_; }
    [[nodiscard]] T* begin() noexcept { return elements_.data(); }
    [[nodiscard]] T* end() noexcept { return elements_.data() + size_; }
    [[nodiscard]] const T* begin() const noexcept { return elements_.data(); }
    [[nodiscard]] const T* end() const noexcept { return elements_.data() + size_; }
    [[nodiscard]] std::span<const T> view() const noexcept { return {begin(), size_}; }

private:
    os::ReservedArray<T> elements_;
    std::uint64_t size_ = 0;
};

}  // namespace stillpoint::breeze
