// Whether faults can be used to find writes: a tracker's handler makes the page writable and returns, and the store
// runs again. That needs every register as it was. Binary translators keep some in their own code only: valgrind, by
// default, all but those that it unwinds the stack with, and its memset then continues at another address.

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <sys/mman.h>

#include "core/units.hpp"
#include "runtime/fault_handler.hpp"

namespace stillpoint {

namespace {

std::atomic<void*> checked_page{nullptr};

bool open_checked_page(void* address) noexcept
{
    return address == checked_page.load(std::memory_order_relaxed) && mprotect(address, page_bytes, PROT_READ | PROT_WRITE) == 0;
}

constexpr std::uint64_t expected = 0x57111b017;

/// Stores `expected` to a read-only page from a register that is loaded just before and overwritten just after: a
/// translator has no reason to keep its value except for a handler.
void store_through_fault(std::uint64_t* place) noexcept
{
    std::uint64_t value = 0;
#if defined(__x86_64__)
    asm volatile("movabs %[expected], %[value]\n\t"
                 "mov %[value], (%[place])\n\t"
                 "xor %k[value], %k[value]"
                 : [value] "+r"(value)
                 : [place] "r"(place), [expected] "i"(expected)
                 : "memory", "cc");
#elif defined(__aarch64__)
    asm volatile("mov %[value], %[expected]\n\t"
                 "str %[value], [%[place]]\n\t"
                 "mov %[value], #0"
                 : [value] "+r"(value)
                 : [place] "r"(place), [expected] "r"(expected)
                 : "memory");
#else
    *reinterpret_cast<volatile std::uint64_t*>(place) = expected + value;
#endif
}

}  // namespace

Result<void> check_faults_keep_registers()
{
    void* const page = mmap(nullptr, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return fail(SP_E_NO_MEMORY, errno, "no memory for a page to try a memory fault on: {}", std::strerror(errno));
    }
    checked_page.store(page, std::memory_order_relaxed);
    if (auto installed = fault_handler_install(SIGSEGV, &open_checked_page); !installed) {
        munmap(page, page_bytes);
        return installed;
    }
    store_through_fault(static_cast<std::uint64_t*>(page));
    const bool kept = *static_cast<const std::uint64_t*>(page) == expected;
    checked_page.store(nullptr, std::memory_order_relaxed);
    munmap(page, page_bytes);
    if (!kept) {
        return fail(SP_E_UNSUPPORTED, 0,
                    "a memory fault loses the program's registers here, as under valgrind by default, so writes cannot be "
                    "found by page faults. Start valgrind with --vex-iropt-register-updates=allregs-at-mem-access "
                    "(`stillpoint run -- valgrind PROGRAM` does so), or run without it");
    }
    return {};
}

}  // namespace stillpoint
