#include "media/block_medium.hpp"

#include <cstdlib>
#include <string_view>

#include "os/log.hpp"

namespace stillpoint {

namespace {

[[noreturn]] void refuse_bytes(std::string_view path) noexcept
{
    os::log(os::Severity::error, "internal error: {}, which is written by blocks, was used as byte-addressable memory", path);
    std::abort();
}

}  // namespace

void BlockMedium::store(std::uint64_t, const void*, std::size_t) noexcept { refuse_bytes(path()); }
void BlockMedium::store_nontemporal(std::uint64_t, const void*, std::size_t) noexcept { refuse_bytes(path()); }
void BlockMedium::write_back(std::uint64_t, std::size_t) noexcept { refuse_bytes(path()); }
void BlockMedium::fence() noexcept { refuse_bytes(path()); }

}  // namespace stillpoint
