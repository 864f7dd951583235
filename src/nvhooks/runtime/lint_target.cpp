#include "lint_target.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <link.h>
#include <string_view>
#include <unistd.h>
#include <unwind.h>

#include "os/descriptor.hpp"
#include "os/futex.hpp"

namespace stillpoint::lint {

namespace {

/// Not on the stack: threads of the program may have little of it.
constinit os::FutexLock lock;
char buffer[16384];  ///< guarded by `lock`

/// The number of the module in the report's table; it is entered where it is new.
std::uint16_t module_number(const char* name, Report& report)
{
    lock.lock();
    if (name == nullptr || *name == '\0') {
        const ssize_t length = readlink("/proc/self/exe", buffer, sizeof buffer - 1);
        buffer[length < 0 ? 0 : length] = '\0';
        name = buffer;
    }
    const std::string_view wanted = std::string_view(name).substr(0, sizeof(Module::path) - 1);
    const std::uint32_t count = report.module_count.load(std::memory_order_relaxed);
    std::uint32_t number = 0;
    while (number < count && report.modules[number].path != wanted) {
        ++number;
    }
    if (number == count && count < modules_max) {
        std::copy(wanted.begin(), wanted.end(), report.modules[number].path);
        report.module_count.store(count + 1, std::memory_order_release);
    }
    lock.unlock();
    return number < modules_max ? static_cast<std::uint16_t>(number) : no_module;
}

struct Search {
    std::uint64_t address;
    Report* report;
    TargetFacts facts;
};

int look_into_module(dl_phdr_info* module, std::size_t /*size*/, void* context)
{
    auto& search = *static_cast<Search*>(context);
    for (int index = 0; index < module->dlpi_phnum; ++index) {
        const ElfW(Phdr)& segment = module->dlpi_phdr[index];
        const std::uint64_t begin = module->dlpi_addr + segment.p_vaddr;
        if (segment.p_type != PT_LOAD || search.address < begin || search.address - begin >= segment.p_memsz) {
            continue;
        }
        search.facts.target = (segment.p_flags & PF_X) != 0   ? Target::code
                              : (segment.p_flags & PF_W) != 0 ? Target::data
                                                              : Target::constant;
        search.facts.spot = {search.address - module->dlpi_addr, module_number(module->dlpi_name, *search.report)};
        return 1;
    }
    return 0;
}

/// The kind of memory at `address` by a line of /proc/self/maps; none: the line is about other addresses.
Target target_in_line(const char* line, std::uint64_t address, std::uint64_t own_frame)
{
    char* end = nullptr;
    const std::uint64_t begin = std::strtoull(line, &end, 16);
    const std::uint64_t last = *end == '-' ? std::strtoull(end + 1, &end, 16) : begin;
    if (address < begin || address >= last) {
        return Target::none;
    }
    const char* const name = std::strpbrk(end, "/[");
    if (name != nullptr && *name == '/') {
        return Target::file;
    }
    if ((own_frame >= begin && own_frame < last) || (name != nullptr && std::strncmp(name, "[stack", 6) == 0)) {
        return Target::own_stack;
    }
    return name != nullptr && std::strncmp(name, "[heap", 5) == 0 ? Target::heap : Target::anonymous;
}

/// Under `lock`.
Target target_in_maps(std::uint64_t address, std::uint64_t own_frame)
{
    const os::Descriptor maps(open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
    std::size_t filled = 0;
    while (true) {
        const ssize_t got = read(maps.get(), buffer + filled, sizeof buffer - 1 - filled);
        if (got <= 0) {
            return Target::unmapped;
        }
        filled += static_cast<std::size_t>(got);
        buffer[filled] = '\0';
        char* line = buffer;
        for (char* newline = std::strchr(line, '\n'); newline != nullptr; newline = std::strchr(line, '\n')) {
            *newline = '\0';
            if (const Target target = target_in_line(line, address, own_frame); target != Target::none) {
                return target;
            }
            line = newline + 1;
        }
        filled = line == buffer ? 0 : static_cast<std::size_t>(buffer + filled - line);  // A line is never as long.
        std::memmove(buffer, line, filled);
    }
}

struct Walk {
    std::uint64_t caller;
    ModuleAddress* frames;
    std::uint32_t capacity;
    std::uint32_t count;
    Report* report;
};

struct Range {
    std::uint64_t begin;
    std::uint64_t end;
};

int find_own_module(dl_phdr_info* module, std::size_t /*size*/, void* context)
{
    auto& own = *static_cast<Range*>(context);
    const auto here = reinterpret_cast<std::uint64_t>(&find_own_module);
    for (int index = 0; index < module->dlpi_phnum; ++index) {
        const ElfW(Phdr)& segment = module->dlpi_phdr[index];
        const std::uint64_t begin = module->dlpi_addr + segment.p_vaddr;
        if (segment.p_type == PT_LOAD && here >= begin && here - begin < segment.p_memsz) {
            own = {begin, begin + segment.p_memsz};
            return 1;
        }
    }
    return 0;
}

struct CallerSearch {
    Range own;
    std::uint64_t caller;
    unsigned outwards;
};

_Unwind_Reason_Code look_for_program(_Unwind_Context* context, void* argument)
{
    auto& way = *static_cast<CallerSearch*>(argument);
    way.caller = _Unwind_GetIP(context);
    if (way.caller - way.own.begin < way.own.end - way.own.begin) {
        return _URC_NO_REASON;
    }
    return way.outwards-- > 0 ? _URC_NO_REASON : _URC_END_OF_STACK;
}

_Unwind_Reason_Code take_frame(_Unwind_Context* context, void* argument)
{
    auto& walk = *static_cast<Walk*>(argument);
    const std::uint64_t address = _Unwind_GetIP(context);
    if (address == 0 || walk.count == walk.capacity) {
        return _URC_END_OF_STACK;
    }
    if (walk.count > 0 || address == walk.caller) {  // Before it come this library's own.
        walk.frames[walk.count++] = spot_of(address, *walk.report);
    }
    return _URC_NO_REASON;
}

}  // namespace

Place* place_of(Report& report, std::uint64_t key, bool& is_new) noexcept
{
    constexpr std::size_t probes_max = 64;
    const std::size_t first = static_cast<std::size_t>((key * 0x9e3779b97f4a7c15ULL) >> 32);
    for (std::size_t probe = 0; probe < probes_max; ++probe) {
        Place& place = report.places[(first + probe) % places_max];
        std::uint64_t present = place.key.load(std::memory_order_relaxed);
        is_new = present == 0 && place.key.compare_exchange_strong(present, key, std::memory_order_relaxed);
        if (is_new || present == key) {
            place.count.fetch_add(1, std::memory_order_relaxed);
            return &place;
        }
    }
    report.lost.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
}

ModuleAddress spot_of(std::uint64_t address, Report& report) noexcept
{
    Search search{address, &report, {}};
    dl_iterate_phdr(&look_into_module, &search);
    return search.facts.target == Target::none ? ModuleAddress{address, no_module} : search.facts.spot;
}

TargetFacts facts_of_target(std::uint64_t address, const void* frame, Report& report) noexcept
{
    Search search{address, &report, {}};
    dl_iterate_phdr(&look_into_module, &search);
    if (search.facts.target == Target::none) {
        lock.lock();
        search.facts.target = target_in_maps(address, reinterpret_cast<std::uint64_t>(frame));
        lock.unlock();
    }
    return search.facts;
}

const void* program_caller(unsigned outwards) noexcept
{
    CallerSearch way{{}, 0, outwards};
    dl_iterate_phdr(&find_own_module, &way.own);
    _Unwind_Backtrace(&look_for_program, &way);
    return reinterpret_cast<const void*>(way.caller);
}

std::uint32_t call_stack(const void* caller, ModuleAddress* frames, std::uint32_t frames_size, Report& report) noexcept
{
    Walk walk{reinterpret_cast<std::uint64_t>(caller), frames, frames_size, 0, &report};
    _Unwind_Backtrace(&take_frame, &walk);
    if (walk.count == 0) {  // The unwinder found no way out: at least the place itself.
        frames[walk.count++] = spot_of(walk.caller, report);
    }
    return walk.count;
}

}  // namespace stillpoint::lint
