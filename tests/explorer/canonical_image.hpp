#pragma once
// An image as it is compared: a copy in which the engine has rewritten what is not part of the state.

#include <cstring>
#include <new>
#include <sys/mman.h>

#include "core/units.hpp"
#include "runtime/engine.hpp"

namespace stillpoint::explorer {

/// Copies the image only where the engine has something to rewrite.
class CanonicalImage {
public:
    CanonicalImage(const EngineDriver& driver, const std::byte* image, std::uint64_t bytes) : pages_(image), bytes_(bytes)
    {
        if (driver.make_canonical == nullptr) {
            return;
        }
        void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) {
            throw std::bad_alloc();
        }
        copy_ = static_cast<std::byte*>(memory);
        static constexpr std::byte zeroes[page_bytes] = {};
        for (std::uint64_t at = 0; at < bytes; at += page_bytes) {
            if (std::memcmp(image + at, zeroes, page_bytes) != 0) {
                std::memcpy(copy_ + at, image + at, page_bytes);
            }
        }
        driver.make_canonical(copy_, bytes);
        pages_ = copy_;
    }
    CanonicalImage(const CanonicalImage&) = delete;
    CanonicalImage& operator=(const CanonicalImage&) = delete;
    ~CanonicalImage()
    {
        if (copy_ != nullptr) {
            munmap(copy_, bytes_);
        }
    }

    [[nodiscard]] const std::byte* page(std::uint64_t index) const noexcept { return pages_ + index * page_bytes; }

private:
    const std::byte* pages_;
    std::byte* copy_ = nullptr;
    std::uint64_t bytes_;
};

}  // namespace stillpoint::explorer
