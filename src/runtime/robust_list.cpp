// The calling thread's list of held robust mutexes, which glibc keeps for the kernel
// (linux/futex.h, struct robust_list_head).

#include <cstddef>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/thread_registry.hpp"

namespace stillpoint {

std::uint32_t count_robust_locks_held(void (*visit)(void* mutex) noexcept) noexcept
{
    robust_list_head* head = nullptr;
    std::size_t head_bytes = 0;
    if (syscall(SYS_get_robust_list, 0, &head, &head_bytes) != 0 || head == nullptr) {
        return 0;
    }
    constexpr std::uint32_t entries_max = 2048;  // ROBUST_LIST_LIMIT: where the kernel gives up too.
    std::uint32_t held = 0;
    std::uint32_t entries = 0;
    const auto end = reinterpret_cast<std::uintptr_t>(&head->list);
    for (auto link = reinterpret_cast<std::uintptr_t>(head->list.next) & ~std::uintptr_t{1};
         link != end && link != 0 && entries < entries_max; ++entries) {
        // Bit 0 marks priority inheritance. The futex word is the mutex's first member.
        auto* mutex = reinterpret_cast<pthread_mutex_t*>(link + static_cast<std::uintptr_t>(head->futex_offset));
        constexpr int type_bits = 3;
        const bool recursive = (mutex->__data.__kind & type_bits) == PTHREAD_MUTEX_RECURSIVE;
        held += recursive ? mutex->__data.__count : 1;
        if (visit != nullptr) {
            visit(mutex);
        }
        link = reinterpret_cast<std::uintptr_t>(reinterpret_cast<robust_list*>(link)->next) & ~std::uintptr_t{1};
    }
    return held;
}

}  // namespace stillpoint
