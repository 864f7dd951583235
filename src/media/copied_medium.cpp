#include "media/copied_medium.hpp"

#include <algorithm>
#include <cstring>

#include "media/errno_text.hpp"
#include "media/whole_transfers.hpp"

namespace stillpoint {

namespace {

tl::unexpected<Failure> refusal(const std::string& path) { return fail(SP_E_POOL_READ_ONLY, 0, "{}: a copy is not written to", path); }

}  // namespace

Result<void> CopiedMedium::resize(std::uint64_t size) { return size == size_bytes() ? Result<void>{} : Result<void>{refusal(path_)}; }
Result<void> CopiedMedium::sync() { return changed_ != nullptr ? Result<void>{} : Result<void>{refusal(path_)}; }

Result<void> CopiedMedium::write(std::span<const BlockWrite> batch)
{
    if (changed_ == nullptr) {
        return refusal(path_);
    }
    for (const BlockWrite& write : batch) {
        for (std::size_t at = 0; at < write.size; at += page_bytes) {
            if (auto patched = changed_->patch((write.offset + at) / page_bytes, write.data + at); !patched) {
                return patched;
            }
        }
    }
    return {};
}

Result<void> CopiedMedium::read(std::uint64_t offset, std::span<std::byte> destination) const
{
    if (offset > size_bytes() || destination.size() > size_bytes() - offset) {
        return fail(SP_E_POOL_TRUNCATED, 0, "{}: the file ends at byte {}, before {}", path_, size_bytes(), offset + destination.size());
    }
    while (!destination.empty()) {
        const std::uint64_t left = CopiedFile::block_bytes - offset % CopiedFile::block_bytes;
        const std::size_t size = std::min<std::uint64_t>(destination.size(), left);
        if (auto done = read_block(offset, destination.first(size)); !done) {
            return done;
        }
        offset += size;
        destination = destination.subspan(size);
    }
    return {};
}

Result<void> CopiedMedium::read_block(std::uint64_t offset, std::span<std::byte> destination) const
{
    switch (copy_.origin_of(offset / CopiedFile::block_bytes)) {
    case CopiedFile::Origin::written: return copy_.read_back(offset, destination.data(), destination.size());
    case CopiedFile::Origin::base: return read_base(offset, destination);
    case CopiedFile::Origin::never_written: break;
    }
    std::memset(destination.data(), 0, destination.size());
    return {};
}

Result<void> CopiedMedium::read_base(std::uint64_t offset, std::span<std::byte> destination) const
{
    if (base_ < 0) {
        return fail(SP_E_IO, 0, "{}: byte {} has not changed, and its base is not here", path_, offset);
    }
    std::size_t got = 0;
    if (const int error = read_all(base_, destination.data(), destination.size(), offset, got); error != 0) {
        return fail(SP_E_IO, error, "cannot read the base of {} at byte {}: {}", path_, offset, describe_errno(error));
    }
    std::memset(destination.data() + got, 0, destination.size() - got);
    return {};
}

}  // namespace stillpoint
