// The program's volatile memory as shared memory: variables, the first thread's stack, the stacks of the others. (The heap is
// src/shared_heap.) It is not isolated: threads see each other's volatile stores at once, as threads do, so that atomics and flags work.
// It has nothing to lose in a crash.

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <elf.h>
#include <link.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

#include "core/units.hpp"
#include "engines/nvthreads/processes/thread_stacks.hpp"
#include "os/own_mappings.hpp"

namespace stillpoint::nvthreads::processes {

namespace {

std::byte* pointer(std::uintptr_t address) noexcept { return reinterpret_cast<std::byte*>(address); }

/// [begin, end) of private memory becomes shared, with its content. False: no memory.
bool share(std::uintptr_t begin, std::uintptr_t end) noexcept
{
    void* const copy = mmap(nullptr, end - begin, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) {
        return false;
    }
    std::memcpy(copy, pointer(begin), end - begin);
    return mremap(copy, end - begin, end - begin, MREMAP_MAYMOVE | MREMAP_FIXED, pointer(begin)) != MAP_FAILED;
}

// ---- Variables ------------------------------------------------------------------------------------

/// Libraries whose state belongs to the process: libc has its streams, this library its session.
bool belongs_to_process(std::string_view path) noexcept
{
    constexpr std::array<std::string_view, 15> names{"libc.so",       "ld-linux",  "libpthread", "libdl.so", "libm.so",
                                                     "librt.so",      "libresolv", "libstdc++",  "libc++",   "libgcc_s",
                                                     "libstillpoint", "liburing",  "linux-vdso", "libasan",  "libtsan"};
    const std::string_view file = path.substr(path.rfind('/') + 1);
    return std::ranges::any_of(names, [&](std::string_view name) { return file.starts_with(name); });
}

struct Range {
    std::uintptr_t begin;
    std::uintptr_t end;
};

/// The writable part of a segment: without what the loader has made read-only after relocation.
Range variables_of(const dl_phdr_info& module, const ElfW(Phdr) & segment) noexcept
{
    Range range{module.dlpi_addr + segment.p_vaddr, module.dlpi_addr + segment.p_vaddr + segment.p_memsz};
    for (unsigned i = 0; i < module.dlpi_phnum; ++i) {
        const ElfW(Phdr)& other = module.dlpi_phdr[i];
        const std::uintptr_t relro_end = (module.dlpi_addr + other.p_vaddr + other.p_memsz) / page_bytes * page_bytes;
        if (other.p_type == PT_GNU_RELRO && module.dlpi_addr + other.p_vaddr < range.end && relro_end > range.begin) {
            range.begin = relro_end;
        }
    }
    range.begin = range.begin / page_bytes * page_bytes;
    range.end = round_up(range.end, page_bytes);
    return range;
}

int share_module(dl_phdr_info* module, std::size_t /*size*/, void* /*context*/)
{
    if (belongs_to_process(module->dlpi_name)) {
        return 0;
    }
    for (unsigned i = 0; i < module->dlpi_phnum; ++i) {
        const ElfW(Phdr)& segment = module->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) == 0) {
            continue;
        }
        const Range range = variables_of(*module, segment);
        if (range.begin < range.end && !share(range.begin, range.end)) {
            return 1;
        }
    }
    return 0;
}

// ---- The first stack ------------------------------------------------------------------------------

/// The mapping that `address` lies in, and the end of the one below it.
bool find_mapping(std::uintptr_t address, Range& found, std::uintptr_t& below_end) noexcept
{
    std::FILE* const maps = std::fopen("/proc/self/maps", "re");
    if (maps == nullptr) {
        return false;
    }
    char line[512];
    bool is_found = false;
    below_end = 0;
    while (!is_found && std::fgets(line, sizeof line, maps) != nullptr) {
        Range range{};
        if (std::sscanf(line, "%lx-%lx", &range.begin, &range.end) != 2) {
            continue;
        }
        is_found = address >= range.begin && address < range.end;
        found = range;
        below_end = is_found ? below_end : range.end;
    }
    std::fclose(maps);
    return is_found;
}

struct StackMove {
    Range stack;
    std::uintptr_t new_begin;
    bool is_done;
    ucontext_t back;
    ucontext_t there;
};
constinit StackMove* under_way = nullptr;

/// On another stack: the calling one may be replaced.
void move_stack()
{
    StackMove& move = *under_way;
    const std::size_t size = move.stack.end - move.new_begin;
    void* const copy = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (copy == MAP_FAILED) {
        return;
    }
    const std::size_t used = move.stack.end - move.stack.begin;
    std::memcpy(static_cast<std::byte*>(copy) + (size - used), pointer(move.stack.begin), used);
    move.is_done = mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, pointer(move.new_begin)) != MAP_FAILED;
}

}  // namespace

Result<void> share_variables()
{
    if (dl_iterate_phdr(&share_module, nullptr) != 0) {
        return fail(SP_E_NO_MEMORY, errno, "no shared memory for the program's variables: {}", std::strerror(errno));
    }
    return {};
}

Result<void> ThreadStacks::share_first_stack()
{
    Range stack{};
    std::uintptr_t below_end = 0;
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    if (!find_mapping(here, stack, below_end)) {
        return fail(SP_E_UNSUPPORTED, errno, "threads=processes needs /proc, to find the stack of the program's first thread");
    }
    rlimit limit{};
    getrlimit(RLIMIT_STACK, &limit);
    constexpr std::uint64_t largest = std::uint64_t{64} * mib;
    constexpr std::uint64_t gap = std::uint64_t{1} * mib;  // The kernel keeps as much free below a stack.
    const std::uint64_t wanted = std::clamp<std::uint64_t>(limit.rlim_cur, stack.end - stack.begin, largest) / page_bytes * page_bytes;
    static StackMove move;
    move.stack = stack;
    move.new_begin = std::min(stack.begin, std::max(stack.end - wanted, below_end + gap));
    move.is_done = false;
    under_way = &move;
    static std::array<std::byte, 64 * kib> other_stack;
    getcontext(&move.there);
    move.there.uc_stack.ss_sp = other_stack.data();
    move.there.uc_stack.ss_size = other_stack.size();
    move.there.uc_link = &move.back;
    makecontext(&move.there, &move_stack, 0);
    swapcontext(&move.back, &move.there);
    if (!move.is_done) {
        return fail(SP_E_NO_MEMORY, errno, "no shared memory for the stack of the program's first thread: {}", std::strerror(errno));
    }
    return {};
}

// ---- The other stacks -----------------------------------------------------------------------------

namespace {

/// The bytes that libc puts on top of a thread's stack: the thread-local variables of all modules, and its control block.
std::uint64_t top_bytes() noexcept
{
    std::uint64_t bytes = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* module, std::size_t, void* sum) {
            for (unsigned i = 0; i < module->dlpi_phnum; ++i) {
                if (module->dlpi_phdr[i].p_type == PT_TLS) {
                    *static_cast<std::uint64_t*>(sum) += module->dlpi_phdr[i].p_memsz + module->dlpi_phdr[i].p_align;
                }
            }
            return 0;
        },
        &bytes);
    constexpr std::uint64_t control_block_and_first_frames = std::uint64_t{16} * kib;
    return round_up(bytes + control_block_and_first_frames, page_bytes);
}

}  // namespace

Result<std::uintptr_t> ThreadStacks::reserve()
{
    constexpr std::uint64_t places = 512;
    void* const memory = mmap(nullptr, places * place_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return fail(SP_E_NO_MEMORY, errno, "no addresses for the stacks of threads: {}", std::strerror(errno));
    }
    return reinterpret_cast<std::uintptr_t>(memory);
}

std::uint64_t ThreadStacks::begin_place(std::uintptr_t stacks, std::uint32_t index) noexcept
{
    const std::uint64_t bytes = top_bytes();
    std::byte* const end = place(stacks, index) + place_bytes;
    constexpr int own = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    const bool is_made = bytes < place_bytes / 2 && os::map_own(end - bytes, bytes, PROT_READ | PROT_WRITE, own, -1, 0) != MAP_FAILED;
    // The lowest page is a guard.
    return is_made && mprotect(place(stacks, index), page_bytes, PROT_NONE) == 0 ? bytes : 0;
}

void ThreadStacks::clear_place(std::uintptr_t stacks, std::uint32_t index) noexcept
{
    madvise(place(stacks, index), place_bytes, MADV_REMOVE);
}

}  // namespace stillpoint::nvthreads::processes
