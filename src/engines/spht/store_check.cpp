#include "engines/spht/store_check.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <dlfcn.h>
#include <fmt/core.h>
#include <link.h>
#include <string_view>

#include "engines/spht/own_transaction.hpp"
#include "engines/spht/transaction.hpp"
#include "os/log.hpp"
#include "runtime/code_callers.hpp"
#include "runtime/durable_place.hpp"
#include "runtime/fault_handler.hpp"
#include "runtime/kernel_writes.hpp"

namespace stillpoint::spht {

namespace {

/// The pages that the calling thread has opened. initial-exec: a handler must not allocate; so it is kept small.
struct OpenPages {
    std::uint32_t count = 0;
    std::array<std::uint32_t, 16> pages{};
};
constinit thread_local OpenPages opened [[gnu::tls_model("initial-exec")]] = {};

struct CodeRange {
    std::uintptr_t begin;
    std::uintptr_t end;
};

int find_own_code(dl_phdr_info* module, std::size_t /*size*/, void* context)
{
    const auto here = reinterpret_cast<std::uintptr_t>(&find_own_code);
    for (int i = 0; i < module->dlpi_phnum; ++i) {
        const ElfW(Phdr)& segment = module->dlpi_phdr[i];
        const std::uintptr_t begin = module->dlpi_addr + segment.p_vaddr;
        if (segment.p_type == PT_LOAD && here - begin < segment.p_memsz) {
            *static_cast<CodeRange*>(context) = {begin, begin + segment.p_memsz};
            return 1;
        }
    }
    return 0;
}

std::string_view module_of(const void* instruction) noexcept
{
    Dl_info found{};
    if (dladdr(instruction, &found) == 0 || found.dli_fname == nullptr) {
        return {};
    }
    std::string_view name = found.dli_fname;
    name.remove_prefix(name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/') + 1);
    return name;
}

/// The store is ours: by libc for this library or libstillpoint-itm, which stores in place in transactions that run alone.
bool is_for_library(const Callers& callers) noexcept
{
    for (const void* const instruction : callers) {
        const std::string_view module = instruction != nullptr ? module_of(instruction) : std::string_view{};
        if (module.starts_with("libstillpoint")) {
            return true;
        }
        if (!is_language_runtime(module)) {
            return false;
        }
    }
    return false;
}

[[noreturn, gnu::cold]] void refuse(const void* address, const Callers& callers) noexcept
{
    const os::CodeLocation blamed = blamed_code(callers);
    const CodeText who(os::locate_code(callers[0]), blamed);
    const DurablePlace place = find_durable_place(address);
    char where[200];
    const auto where_end = place.block_bytes == 0 ? fmt::format_to_n(where, sizeof where, "outside every block")
                           : place.handle[0] == '\0'
                               ? fmt::format_to_n(where, sizeof where, "byte {} of a block of {}", place.block_offset, place.block_bytes)
                               : fmt::format_to_n(where, sizeof where, "byte {} of \"{}\", a block of {}", place.block_offset, place.handle,
                                                  place.block_bytes);
    const Transaction* const own = own_transaction.transaction;
    const bool is_inside = own != nullptr && own->is_running();
    os::log(os::Severity::error,
            "verify_stores: {} stores to durable memory {} transaction: {}, {}. {}. The program ends here (the line: addr2line -Cfie {} "
            "{:#x})",
            who.view(), is_inside ? "past its" : "outside of a", address,
            std::string_view{where, static_cast<std::size_t>(where_end.out - where)},
            is_inside ? "It is neither durable nor rolled back: write it by the transaction (tx.write, sp_spht_write), or make the body "
                        "plain (sp_tm_run)"
                      : "It is not durable, and a transaction may overwrite it: write it in the body of a transaction",
            blamed.module_name, blamed.module_offset);
    std::abort();
}

}  // namespace

void StoreCheck::prepare() noexcept
{
    prepare_callers();
    CodeRange own{0, 0};
    dl_iterate_phdr(&find_own_code, &own);
    own_code_begin_ = own.begin;
    own_code_end_ = own.end;
    is_on_.store(true, std::memory_order_release);
}

Result<void> StoreCheck::begin(std::span<std::byte> image) { return is_on() ? pages_.add(image.data(), image.size()) : Result<void>{}; }

Result<void> StoreCheck::add(std::span<std::byte> bytes) { return pages_.count() != 0 ? begin(bytes) : Result<void>{}; }

void StoreCheck::end() noexcept
{
    if (is_on_.exchange(false)) {
        pages_.make_all_writable();
    }
}

/// Where the kernel has no mapping left for a page by itself, nothing is examined any more: the program must go on.
void StoreCheck::open(std::uint64_t first, std::uint64_t end) noexcept
{
    if (os::protect_own(reinterpret_cast<void*>(pages_.address_of(first)), (end - first) * page_bytes, PROT_READ | PROT_WRITE) != 0) {
        os::log(os::Severity::warning,
                "verify_stores: the kernel gives this process no more mappings: stores are not verified from here on");
        this->end();
    }
}

/// But for pages into which a system call may be storing: the kernel would answer EFAULT.
void StoreCheck::protect(std::uint64_t first, std::uint64_t end) noexcept
{
    const kernel_writes::Protecting protecting;
    const std::uintptr_t end_address = pages_.address_of(end);
    for (std::uintptr_t at = pages_.address_of(first); at < end_address;) {
        const auto busy = kernel_writes::first_in_flight(at, end_address);
        if (at != busy.begin && is_on() && !allows_all_.load(std::memory_order_acquire)) {
            os::protect_own(reinterpret_cast<void*>(at), busy.begin - at, PROT_READ);
        }
        if (busy.begin != busy.end) {
            has_open_runs_.store(true, std::memory_order_relaxed);
        }
        at = busy.end;
    }
}

void StoreCheck::open_for_library(std::uint64_t page) noexcept
{
    if (opened.count == opened.pages.size()) {
        close_pages();
    }
    opened.pages[opened.count++] = static_cast<std::uint32_t>(page);
    open(page, page + 1);
}

void StoreCheck::close_pages() noexcept
{
    const int saved_errno = errno;
    if (has_open_runs_.load(std::memory_order_relaxed) && has_open_runs_.exchange(false)) {
        protect(0, pages_.count());
    }
    for (std::uint32_t i = 0; i < opened.count; ++i) {
        protect(opened.pages[i], std::uint64_t{opened.pages[i]} + 1);
    }
    opened.count = 0;
    errno = saved_errno;
}

bool StoreCheck::handle_fault(void* address) noexcept
{
    const auto page = pages_.find(address);
    if (!page) {
        return false;
    }
    const void* const instruction = faulting_instruction();
    const auto code = reinterpret_cast<std::uintptr_t>(instruction);
    const bool is_own = code - own_code_begin_ < own_code_end_ - own_code_begin_;
    if (is_own || instruction == nullptr || allows_all_.load(std::memory_order_acquire) || !is_on()) {
        open_for_library(*page);
        return true;
    }
    const Callers callers = callers_from(instruction);
    if (!is_for_library(callers)) {
        refuse(address, callers);
    }
    open_for_library(*page);
    return true;
}

void StoreCheck::prepare_kernel_write(void* address, std::size_t size) noexcept
{
    if (!is_on()) {
        return;
    }
    const auto touched = pages_.touched(address, size);
    if (touched.first != touched.end) {
        has_open_runs_.store(true, std::memory_order_relaxed);
        open(touched.first, touched.end);
    }
}

void StoreCheck::allow() noexcept
{
    if (is_on()) {
        allows_all_.store(true, std::memory_order_release);
        pages_.make_all_writable();
    }
}

void StoreCheck::forbid() noexcept
{
    if (allows_all_.exchange(false)) {
        protect(0, pages_.count());
    }
}

}  // namespace stillpoint::spht
