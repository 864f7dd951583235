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

std::atomic<bool> mapped{false};

void* table() noexcept { return reinterpret_cast<void*>(store_marks::table_address); }

}  // namespace

Result<void> map_card_table()
{
    if (mapped.load(std::memory_order_acquire)) {
        return {};
    }
    void* const got = mmap(table(), store_marks::tables_bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == table()) {
        if (!claim_mapping(table(), store_marks::tables_bytes)) {
            munmap(table(), store_marks::tables_bytes);
            return fail(SP_E_NO_MEMORY, 0, "too many pools are open in this process: close one");
        }
        mapped.store(true, std::memory_order_release);
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

}  // namespace stillpoint::os
