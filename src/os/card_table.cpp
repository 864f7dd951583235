#include "os/card_table.hpp"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>

#include "core/store_marks.hpp"
#include "core/units.hpp"
#include "os/own_mappings.hpp"

namespace stillpoint::os {

namespace {

std::atomic<bool> reserved{false};

void* table() noexcept { return reinterpret_cast<void*>(store_marks::table_address); }

Result<void> reserve_tables()
{
    if (reserved.load(std::memory_order_acquire)) {
        return {};
    }
    void* const got = mmap(table(), store_marks::tables_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
                           -1, 0);
    if (got == table()) {
        if (!claim_mapping(table(), store_marks::tables_bytes)) {
            munmap(table(), store_marks::tables_bytes);
            return fail(SP_E_NO_MEMORY, 0, "too many pools are open in this process: close one");
        }
        reserved.store(true, std::memory_order_release);
        return {};
    }
    const int error = errno;
    if (got != MAP_FAILED) {
        munmap(got, store_marks::tables_bytes);  // A kernel before 4.17 takes the address as a hint.
    }
    if (got != MAP_FAILED || error == EEXIST) {
        return fail(SP_E_WINDOW_TAKEN, error,
                    "the addresses {:#x} to {:#x} of the card tables are in use in this process; instrumented code marks "
                    "there and nowhere else (/proc/self/maps shows what uses them)",
                    store_marks::table_address, store_marks::table_address + store_marks::tables_bytes);
    }
    return fail(SP_E_NO_MEMORY, error, "cannot reserve {} MiB of addresses at {:#x} for the card tables: {}",
                store_marks::tables_bytes / mib, store_marks::table_address, std::strerror(error));
}

/// The pages in which those cards lie whose address is that of the memory, shifted, plus `bias`.
bool make_accessible(std::uintptr_t address, std::size_t size_bytes, unsigned shift, std::uintptr_t bias) noexcept
{
    const std::uintptr_t begin = ((address >> shift) + bias) / page_bytes * page_bytes;
    const std::uintptr_t end = round_up(((address + size_bytes - 1) >> shift) + bias + 1, page_bytes);
    return protect_own(reinterpret_cast<void*>(begin), end - begin, PROT_READ | PROT_WRITE) == 0;
}

}  // namespace

Result<void> map_cards(const void* address, std::size_t size_bytes)
{
    if (auto done = reserve_tables(); !done || size_bytes == 0) {
        return done;
    }
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    if (!make_accessible(begin, size_bytes, NVHOOKS_CARD_SHIFT, store_marks::card_bias) ||
        !make_accessible(begin, size_bytes, NVHOOKS_COARSE_SHIFT, store_marks::page_card_bias)) {
        return fail(SP_E_NO_MEMORY, errno, "cannot make the cards of {} MiB of durable memory accessible: {}", size_bytes / mib,
                    std::strerror(errno));
    }
    if (begin < store_marks::cards_begin.load(std::memory_order_relaxed)) {
        store_marks::cards_begin.store(begin, std::memory_order_relaxed);
    }
    if (begin + size_bytes > store_marks::cards_end.load(std::memory_order_relaxed)) {
        store_marks::cards_end.store(begin + size_bytes, std::memory_order_relaxed);
    }
    return {};
}

}  // namespace stillpoint::os
