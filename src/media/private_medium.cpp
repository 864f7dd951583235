#include "media/private_medium.hpp"

#include <algorithm>
#include <cstring>

namespace stillpoint {

Result<std::unique_ptr<PrivateMedium>> PrivateMedium::over(std::unique_ptr<Medium> file)
{
    std::unique_ptr<PrivateMedium> medium(new PrivateMedium(std::move(file)));
    const std::uint64_t pages = round_up(medium->size_bytes(), page_bytes) / page_bytes;
    if (auto reserved = medium->written_.reserve(pages * page_bytes, "a private copy of the pool"); !reserved) {
        return pass_on(reserved.error());
    }
    if (auto reserved = medium->is_written_.reserve(pages, "the pages of a private copy"); !reserved) {
        return pass_on(reserved.error());
    }
    return medium;
}

tl::unexpected<Failure> PrivateMedium::refusal() const
{
    return fail(SP_E_POOL_READ_ONLY, 0, "{}: opened by damaged=read-only: nothing is written to it, and nothing becomes durable", path());
}

Result<void> PrivateMedium::resize(std::uint64_t size) { return size == size_bytes() ? Result<void>{} : refusal(); }

Result<void> PrivateMedium::read(std::uint64_t offset, std::span<std::byte> destination) const
{
    if (auto read = file_->read(offset, destination); !read) {
        return read;
    }
    const std::uint64_t end = offset + destination.size();
    for (std::uint64_t at = offset; at < end;) {
        const std::uint64_t page_end = std::min((at / page_bytes + 1) * page_bytes, end);
        if (is_written_[at / page_bytes].load(std::memory_order_acquire) != 0) {
            std::memcpy(destination.data() + (at - offset), &written_[at], page_end - at);
        }
        at = page_end;
    }
    return {};
}

Result<void> PrivateMedium::write(std::span<const BlockWrite> batch)
{
    if (is_sealed_.load(std::memory_order_acquire)) {
        return refusal();
    }
    for (const BlockWrite& write : batch) {
        if (write.offset > size_bytes() || write.size > size_bytes() - write.offset) {
            return fail(SP_E_INVALID_ARGUMENT, 0, "{}: a write of {} bytes at {} is beyond the end", path(), write.size, write.offset);
        }
        std::memcpy(&written_[write.offset], write.data, write.size);
        for (std::uint64_t at = 0; at < write.size; at += page_bytes) {
            is_written_[(write.offset + at) / page_bytes].store(1, std::memory_order_release);
        }
    }
    return {};
}

Result<void> PrivateMedium::sync() { return is_sealed_.load(std::memory_order_acquire) ? Result<void>(refusal()) : Result<void>{}; }

}  // namespace stillpoint
