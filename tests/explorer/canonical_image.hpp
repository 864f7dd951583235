#pragma once
// An image as it is compared: a copy in which two images of one state have the same bytes.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>
#include <sys/mman.h>
#include <vector>

#include "core/units.hpp"

namespace stillpoint::explorer {

/// Gives two images of one state the same bytes, where an engine's image has more than the state (backups beside values, old bytes in free
/// blocks). `base` is a copy of a sound image in private anonymous memory.
using MakeCanonical = void (*)(std::byte* base, std::uint64_t image_bytes);
/// nullptr: the engine's images have nothing more. Those that have are listed by a file of their own in tests/explorer/engines.
[[nodiscard]] MakeCanonical canonical_form_of(std::string_view engine) noexcept;

/// A static object of this type lists one.
class CanonicalForm {
public:
    CanonicalForm(std::string_view engine, MakeCanonical make) noexcept;

private:
    friend MakeCanonical canonical_form_of(std::string_view engine) noexcept;

    std::string_view engine_;
    MakeCanonical make_;
    const CanonicalForm* next_;
};

/// Copies the image only where there is something to rewrite.
class CanonicalImage {
public:
    /// Pages that are not resident are zeroes.
    CanonicalImage(std::string_view engine, const std::byte* image, const std::vector<unsigned char>& resident)
        : pages_(image), bytes_(resident.size() * page_bytes)
    {
        const MakeCanonical make = canonical_form_of(engine);
        if (make == nullptr) {
            return;
        }
        void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) {
            throw std::bad_alloc();
        }
        copy_ = static_cast<std::byte*>(memory);
        static constexpr std::byte zeroes[page_bytes] = {};
        for (std::uint64_t at = 0; at < bytes_; at += page_bytes) {
            if (resident[at / page_bytes] != 0 && std::memcmp(image + at, zeroes, page_bytes) != 0) {
                std::memcpy(copy_ + at, image + at, page_bytes);
            }
        }
        make(copy_, bytes_);
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
