#include "runtime/mapping_calls.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "os/direct_call.hpp"
#include "os/log.hpp"
#include "os/own_mappings.hpp"

namespace stillpoint {

namespace {

struct Words {
    const char* call;
    const char* harm;
    const char* advice;
};

[[nodiscard]] Words words_of(MappingCall call) noexcept
{
    constexpr const char* give_back = "Give blocks back with sp_free, and unmap the pool with sp_close";
    constexpr const char* elsewhere = "Let the kernel choose the address (no MAP_FIXED), or name another one";
    switch (call) {
    case MappingCall::map: return {"mmap with MAP_FIXED", "what it holds would be lost", elsewhere};
    case MappingCall::unmap: return {"munmap", "what it holds would be lost", give_back};
    case MappingCall::remap: return {"mremap or remap_file_pages", "what it holds would be lost or moved away", give_back};
    case MappingCall::protect:
        return {"mprotect", "stores there would not be seen or would fail", "Leave it readable and writable, as it always is"};
    case MappingCall::advise:
        return {"madvise", "what it holds would be lost", "Clear it with memset inside a FASE, or give blocks back with sp_free"};
    case MappingCall::attach_shared: return {"shmat with SHM_REMAP", "what it holds would be lost", "Let the kernel choose the address"};
    case MappingCall::seal: return {"mseal", "stores there could not be followed any more", "Leave it unsealed"};
    }
    return {"", "", ""};
}

void tell(MappingCall call, std::uintptr_t begin, std::uintptr_t end, os::AddressRange durable) noexcept
{
    static constinit std::atomic<unsigned> told{0};
    const unsigned bit = 1U << static_cast<unsigned>(call);
    if ((told.fetch_or(bit, std::memory_order_relaxed) & bit) != 0) {
        return;
    }
    const Words words = words_of(call);
    os::log(os::Severity::error,
            "{} of {:#x} to {:#x} is refused (EPERM): durable memory of an open pool is at {:#x} to {:#x}, and {}. {}. Later calls of this "
            "kind are refused without a message (docs/guide/guarantees.md)",
            words.call, begin, end, durable.begin, durable.end, words.harm, words.advice);
}

[[nodiscard]] bool is_harmless(int advice) noexcept
{
    // Headers of Debian 12 lack the last one: it takes away guards only, which cannot have been made.
    constexpr int guard_remove = 103;
    switch (advice) {
    case MADV_NORMAL:
    case MADV_RANDOM:
    case MADV_SEQUENTIAL:
    case MADV_WILLNEED:
    case MADV_DONTFORK:
    case MADV_DOFORK:
    case MADV_KEEPONFORK:
    case MADV_MERGEABLE:
    case MADV_UNMERGEABLE:
    case MADV_HUGEPAGE:
    case MADV_NOHUGEPAGE:
    case MADV_DONTDUMP:
    case MADV_DODUMP:
    case MADV_COLD:
    case MADV_PAGEOUT:
    case MADV_POPULATE_READ:
    case MADV_POPULATE_WRITE:
    case guard_remove: return true;
    default: return advice == 25;  // MADV_COLLAPSE, which headers before Linux 6.1 lack.
    }
}

}  // namespace

bool mapping_calls::refuses(MappingCall call, const void* address, std::size_t size) noexcept
{
    if (size == 0) {
        return false;
    }
    constexpr std::size_t largest = std::size_t{1} << 62;  // More is an error, which the kernel reports where no durable memory is met.
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t end = round_up(begin + std::min(size, largest), page_bytes);
    const os::AddressRange durable = os::claimed_mapping(begin, end);
    if (durable.begin == durable.end || os::OwnMappingCall::is_under_way()) {
        return false;
    }
    tell(call, begin, end, durable);
    errno = EPERM;
    return true;
}

bool mapping_calls::refuses_fixed(const void* address, std::size_t size, int flags) noexcept
{
    return (flags & MAP_FIXED) != 0 && (flags & MAP_FIXED_NOREPLACE) != MAP_FIXED_NOREPLACE && refuses(MappingCall::map, address, size);
}

bool mapping_calls::refuses_advice(const void* address, std::size_t size, int advice) noexcept
{
    return !is_harmless(advice) && refuses(MappingCall::advise, address, size);
}

bool refuses_remapping(const void* from, std::size_t from_size, std::size_t to_size, int flags, const void* to) noexcept
{
    return mapping_calls::refuses(MappingCall::remap, from, std::max<std::size_t>(from_size, 1)) ||
           ((flags & MREMAP_FIXED) != 0 && mapping_calls::refuses(MappingCall::remap, to, to_size));
}

bool refuses_remapping_of_file_pages(const void* address, std::size_t size) noexcept
{
    return mapping_calls::refuses(MappingCall::remap, address, size);
}

bool refuses_advice(const iovec* parts, std::size_t count, int advice) noexcept
{
    if (parts == nullptr || count > 1024 || is_harmless(advice)) {  // IOV_MAX. Otherwise the system call will say so.
        return false;
    }
    return std::any_of(parts, parts + count,
                       [](const iovec& part) { return mapping_calls::refuses(MappingCall::advise, part.iov_base, part.iov_len); });
}

bool refuses_attaching(int segment, const void* address, int flags) noexcept
{
    if (address == nullptr || (flags & SHM_REMAP) == 0) {
        return false;
    }
    shmid_ds facts{};
    return os::direct_call(SYS_shmctl, segment, IPC_STAT, &facts) == 0 &&
           mapping_calls::refuses(MappingCall::attach_shared, address, facts.shm_segsz);
}

bool refuses_system_call(long number, const long (&arguments)[6]) noexcept
{
    constexpr long call_mseal = 462;  // Headers before Linux 6.10 lack it. One number on all architectures.
    const auto* const address = reinterpret_cast<const void*>(arguments[0]);
    const auto size = static_cast<std::size_t>(arguments[1]);
    switch (number) {
    case SYS_mmap: return refuses_mapping(address, size, static_cast<int>(arguments[3]));
    case SYS_munmap: return refuses_unmapping(address, size);
    case SYS_mremap:
        return refuses_remapping(address, size, static_cast<std::size_t>(arguments[2]), static_cast<int>(arguments[3]),
                                 reinterpret_cast<const void*>(arguments[4]));
    case SYS_remap_file_pages: return refuses_remapping_of_file_pages(address, size);
    case SYS_mprotect:
    case SYS_pkey_mprotect: return refuses_protection(address, size);
    case SYS_madvise: return refuses_advice(address, size, static_cast<int>(arguments[2]));
    case SYS_process_madvise:
        return refuses_advice(reinterpret_cast<const iovec*>(arguments[1]), static_cast<std::size_t>(arguments[2]),
                              static_cast<int>(arguments[3]));
    case SYS_shmat:
        return refuses_attaching(static_cast<int>(arguments[0]), reinterpret_cast<const void*>(arguments[1]),
                                 static_cast<int>(arguments[2]));
    case call_mseal: return mapping_calls::refuses(MappingCall::seal, address, size);
    default: return false;
    }
}

}  // namespace stillpoint
