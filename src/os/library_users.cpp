#include "os/library_users.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <dlfcn.h>
#include <link.h>
#include <string_view>

namespace stillpoint::os {

namespace {

constexpr std::string_view offered_prefixes[] = {"sp_", "nv", "crashed"};

/// The entries of the dynamic section that concern symbols.
struct DynamicFacts {
    const char* names = nullptr;
    const ElfW(Sym) * symbols = nullptr;
    const ElfW(Rela) * tables[2] = {nullptr, nullptr};
    std::size_t table_bytes[2] = {0, 0};
};

const ElfW(Dyn) * dynamic_section(const dl_phdr_info& module) noexcept
{
    for (std::size_t i = 0; i < module.dlpi_phnum; ++i) {
        if (module.dlpi_phdr[i].p_type == PT_DYNAMIC) {
            return reinterpret_cast<const ElfW(Dyn)*>(module.dlpi_addr + module.dlpi_phdr[i].p_vaddr);
        }
    }
    return nullptr;
}

/// The loader has relocated these words in most modules, not in the kernel's own (vdso).
template <class T>
const T* relocated(const dl_phdr_info& module, ElfW(Addr) address) noexcept
{
    return reinterpret_cast<const T*>(address < module.dlpi_addr ? address + module.dlpi_addr : address);
}

DynamicFacts facts_of(const dl_phdr_info& module) noexcept
{
    DynamicFacts facts;
    for (const ElfW(Dyn)* entry = dynamic_section(module); entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
        switch (entry->d_tag) {
        case DT_STRTAB: facts.names = relocated<char>(module, entry->d_un.d_ptr); break;
        case DT_SYMTAB: facts.symbols = relocated<ElfW(Sym)>(module, entry->d_un.d_ptr); break;
        case DT_RELA: facts.tables[0] = relocated<ElfW(Rela)>(module, entry->d_un.d_ptr); break;
        case DT_RELASZ: facts.table_bytes[0] = entry->d_un.d_val; break;
        case DT_JMPREL: facts.tables[1] = relocated<ElfW(Rela)>(module, entry->d_un.d_ptr); break;
        case DT_PLTRELSZ: facts.table_bytes[1] = entry->d_un.d_val; break;
        default: break;
        }
    }
    return facts;
}

const void* base_of_this_library() noexcept
{
    Dl_info facts{};
    return dladdr(reinterpret_cast<const void*>(&loaded_modules_use_this_library), &facts) != 0 ? facts.dli_fbase : nullptr;
}

bool is_offered(const char* name, const void* own_base) noexcept
{
    const std::string_view text = name;
    if (std::ranges::none_of(offered_prefixes, [text](std::string_view prefix) { return text.starts_with(prefix); })) {
        return false;
    }
    Dl_info facts{};
    const void* const place = dlsym(RTLD_DEFAULT, name);
    return place != nullptr && dladdr(place, &facts) != 0 && facts.dli_fbase == own_base;
}

bool refers_to_this_library(const DynamicFacts& facts, const void* own_base) noexcept
{
    if (facts.names == nullptr || facts.symbols == nullptr) {
        return false;
    }
    for (std::size_t table = 0; table < 2; ++table) {
        const std::size_t count = facts.tables[table] != nullptr ? facts.table_bytes[table] / sizeof(ElfW(Rela)) : 0;
        for (std::size_t i = 0; i < count; ++i) {
            const auto number = ELF64_R_SYM(facts.tables[table][i].r_info);
            const ElfW(Sym)& symbol = facts.symbols[number];
            if (number != 0 && is_offered(facts.names + symbol.st_name, own_base)) {
                return true;
            }
        }
    }
    return false;
}

bool contains(const dl_phdr_info& module, const void* address) noexcept
{
    for (std::size_t i = 0; i < module.dlpi_phnum; ++i) {
        const auto& segment = module.dlpi_phdr[i];
        if (segment.p_type == PT_LOAD && reinterpret_cast<std::uintptr_t>(address) - module.dlpi_addr - segment.p_vaddr < segment.p_memsz) {
            return true;
        }
    }
    return false;
}

struct UserSearch {
    const void* own_base;
};

int visit_user(dl_phdr_info* module, std::size_t /*size*/, void* context) noexcept
{
    const auto& search = *static_cast<const UserSearch*>(context);
    if (contains(*module, reinterpret_cast<const void*>(&loaded_modules_use_this_library))) {
        return 0;
    }
    return refers_to_this_library(facts_of(*module), search.own_base) ? 1 : 0;
}

}  // namespace

bool loaded_modules_use_this_library() noexcept
{
    UserSearch search{base_of_this_library()};
    return dl_iterate_phdr(&visit_user, &search) != 0;
}

}  // namespace stillpoint::os
