#pragma once
// An image in plain memory in the window, with a heap on it: for the heap's own tests.

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <vector>

#include "core/units.hpp"
#include "heap/heap.hpp"
#include "heap/heap_layout.hpp"
#include "pool/growth.hpp"

namespace stillpoint {

class TestImage {
public:
    static constexpr std::uint64_t heap_offset = 64 * kib;

    explicit TestImage(std::uint64_t image_bytes, std::uint64_t image_bytes_max = 0, std::uintptr_t base = window_base)
        : bytes_max_(image_bytes_max != 0 ? image_bytes_max : image_bytes)
    {
        void* wanted = reinterpret_cast<void*>(base);
        memory_ = mmap(wanted, bytes_max_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
                       0);
        if (memory_ != wanted) {
            std::abort();  // Two images at one address, or the window is taken.
        }
        options = {.image_base = static_cast<std::byte*>(memory_),
                   .heap_offset = heap_offset,
                   .image_bytes = image_bytes,
                   .image_bytes_max = bytes_max_,
                   .grow = [](void* self, std::uint64_t wanted_bytes) -> Result<std::uint64_t> {
                       return static_cast<TestImage*>(self)->grow(wanted_bytes);
                   },
                   .grow_context = this};
    }
    ~TestImage()
    {
        detach();
        munmap(memory_, bytes_max_);
    }
    TestImage(const TestImage&) = delete;
    TestImage& operator=(const TestImage&) = delete;

    Heap& attach()
    {
        auto attached = Heap::attach(options);
        if (!attached) {
            ADD_FAILURE() << attached.error().message;
            std::abort();
        }
        heap_ = *attached;
        return *heap_;
    }
    void detach()
    {
        if (heap_ != nullptr) {
            heap_->detach();
            heap_ = nullptr;
        }
    }
    /// The effect of a crash on a process: the image is at an earlier point, DRAM is gone.
    Heap& crash_back_to(const std::vector<std::byte>& snapshot)
    {
        detach();
        std::memcpy(options.image_base, snapshot.data(), snapshot.size());
        // Growth is never undone; what was appended since is zero for all that recovery knows.
        std::memset(options.image_base + snapshot.size(), 0, options.image_bytes - snapshot.size());
        return attach();
    }
    [[nodiscard]] std::vector<std::byte> snapshot() const { return {options.image_base, options.image_base + options.image_bytes}; }
    [[nodiscard]] heap::HeapLayout layout() const { return heap::HeapLayout::of(heap_offset, bytes_max_, options.table_format); }
    [[nodiscard]] std::uint32_t* span_table() const
    {
        return reinterpret_cast<std::uint32_t*>(options.image_base + layout().span_table_offset);
    }

    Heap::Options options{};
    std::uint64_t growths = 0;
    bool refuses_to_grow = false;

private:
    Result<std::uint64_t> grow(std::uint64_t wanted_bytes)
    {
        if (refuses_to_grow) {
            return fail(SP_E_NO_SPACE, 28, "the disk is full");
        }
        ++growths;
        options.image_bytes = std::max(wanted_bytes, growth::next_image_bytes(options.image_bytes, options.image_bytes_max));
        return options.image_bytes;
    }

    std::uint64_t bytes_max_;
    void* memory_;
    Heap* heap_ = nullptr;
};

}  // namespace stillpoint
