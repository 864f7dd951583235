#include "media/medium.hpp"

namespace stillpoint {

Result<void> Medium::map_at(std::byte*, std::uint64_t, std::uint64_t)
{
    return fail(SP_E_UNSUPPORTED, 0, "{}: only media that are written by stores can be mapped as the program's memory", path());
}

Result<void> Medium::map_copy_at(std::byte* address, std::uint64_t offset, std::uint64_t size) noexcept
{
    return Medium::map_at(address, offset, size);
}

}  // namespace stillpoint
