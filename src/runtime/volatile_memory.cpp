#include "runtime/volatile_memory.hpp"

#include <cerrno>
#include <cstdlib>

#include "runtime/session_state.hpp"

namespace stillpoint {

bool is_alignment(std::size_t alignment_bytes) noexcept
{
    constexpr std::size_t alignment_bytes_max = 64 * 1024;
    if (alignment_bytes != 0 && (alignment_bytes & (alignment_bytes - 1)) == 0 && alignment_bytes <= alignment_bytes_max) {
        return true;
    }
    report_as_errno(
        fail(SP_E_INVALID_ARGUMENT, EINVAL, "an alignment of {} bytes is not a power of two up to {}", alignment_bytes, alignment_bytes_max)
            .value());
    return false;
}

void* no_volatile_memory(std::size_t size_bytes) noexcept
{
    report_as_errno(fail(SP_E_NO_MEMORY, ENOMEM, "no memory for {} bytes", size_bytes).value());
    return nullptr;
}

void* allocate_volatile(std::size_t alignment_bytes, std::size_t size_bytes) noexcept
{
    if (!is_alignment(alignment_bytes)) {
        return nullptr;
    }
    void* block = nullptr;
    const std::size_t alignment = alignment_bytes < sizeof(void*) ? sizeof(void*) : alignment_bytes;
    return posix_memalign(&block, alignment, size_bytes) == 0 ? block : no_volatile_memory(size_bytes);
}

}  // namespace stillpoint
