#include "os/elf_section.hpp"

#include <algorithm>
#include <cstring>
#include <link.h>
#include <string_view>
#include <unistd.h>
#include <vector>

#include "arch/checksum.hpp"
#include "os/elf_file.hpp"

namespace stillpoint::os {

namespace {

struct Symbol {
    std::uint64_t offset;
    std::uint64_t size;
    std::string_view name;
};

std::uint64_t hash_of_symbols(const FileView& file, const Sections& sections, const ElfW(Shdr) & target)
{
    std::vector<Symbol> symbols;
    for (std::size_t i = 0; i < sections.count; ++i) {
        const auto& table = sections.headers[i];
        if (table.sh_type != SHT_SYMTAB || table.sh_link >= sections.count) {
            continue;
        }
        const std::uint64_t count = table.sh_size / sizeof(ElfW(Sym));
        const auto* entries = file.at<ElfW(Sym)>(table.sh_offset, count);
        for (std::uint64_t s = 0; entries != nullptr && s < count; ++s) {
            if ((entries[s].st_info & 0xf) == STT_OBJECT && entries[s].st_value >= target.sh_addr &&
                entries[s].st_value - target.sh_addr < target.sh_size) {
                symbols.push_back({entries[s].st_value - target.sh_addr, entries[s].st_size,
                                   file.text(sections.headers[table.sh_link].sh_offset + entries[s].st_name)});
            }
        }
    }
    std::sort(symbols.begin(), symbols.end(),
              [](const Symbol& a, const Symbol& b) { return a.offset != b.offset ? a.offset < b.offset : a.name < b.name; });
    std::uint64_t hash = 0;
    for (const Symbol& symbol : symbols) {
        hash = mix64(mix64(hash, symbol.offset), mix64(symbol.size, checksum64(symbol.name.data(), symbol.name.size(), 0)));
    }
    return hash;
}

std::uint64_t hash_of_build_id(const FileView& file, const Sections& sections)
{
    for (std::size_t i = 0; i < sections.count; ++i) {
        const auto& section = sections.headers[i];
        if (file.text(sections.names_offset + section.sh_name) == ".note.gnu.build-id") {
            const auto* bytes = file.at<std::byte>(section.sh_offset, section.sh_size);
            return bytes != nullptr ? checksum64(bytes, section.sh_size, 0) : 0;
        }
    }
    return 0;
}

struct SectionSearch {
    std::string_view name;
    ElfW(Xword) wanted_flags;
    bool (*visit)(void* context, const LoadedSection& section);
    void* context;
};

/// A section header is believed only as far as the loader has mapped what it names.
bool is_mapped(const dl_phdr_info& module, const ElfW(Shdr) & section)
{
    for (std::size_t i = 0; i < module.dlpi_phnum; ++i) {
        const auto& segment = module.dlpi_phdr[i];
        const std::uint64_t inside = section.sh_addr - segment.p_vaddr;
        if (segment.p_type == PT_LOAD && inside <= segment.p_memsz && section.sh_size <= segment.p_memsz - inside) {
            return true;
        }
    }
    return false;
}

int search_module(dl_phdr_info* module, std::size_t /*size*/, void* context)
{
    auto& search = *static_cast<SectionSearch*>(context);
    const bool is_program = module->dlpi_name == nullptr || module->dlpi_name[0] == '\0';
    const char* path = is_program ? "/proc/self/exe" : module->dlpi_name;
    const FileView file(path);
    const Sections sections = sections_of(file);
    for (std::size_t i = 0; i < sections.count; ++i) {
        const auto& section = sections.headers[i];
        if ((section.sh_flags & search.wanted_flags) != search.wanted_flags || section.sh_size == 0 ||
            file.text(sections.names_offset + section.sh_name) != search.name || !is_mapped(*module, section)) {
            continue;
        }
        LoadedSection entry{};
        char target[4096] = {};
        std::string_view full = path;
        if (is_program) {
            const ssize_t length = readlink(path, target, sizeof target - 1);
            full = {target, length > 0 ? static_cast<std::size_t>(length) : 0};
        }
        full.remove_prefix(full.rfind('/') == std::string_view::npos ? 0 : full.rfind('/') + 1);
        full.copy(entry.module_name, sizeof entry.module_name - 1);
        entry.memory = reinterpret_cast<std::byte*>(module->dlpi_addr + section.sh_addr);
        entry.size = section.sh_size;
        entry.path = path;
        entry.load_offset = module->dlpi_addr;
        if ((section.sh_flags & SHF_WRITE) != 0) {
            entry.layout_hash = hash_of_symbols(file, sections, section);
            if (entry.layout_hash == 0) {
                entry.layout_hash = hash_of_build_id(file, sections);
            }
        }
        if (!search.visit(search.context, entry)) {
            return 1;
        }
    }
    return 0;
}

struct Collected {
    LoadedSection* found;
    std::size_t capacity;
    std::size_t count;
};

bool add_to_collected(void* context, const LoadedSection& section)
{
    auto& collected = *static_cast<Collected*>(context);
    collected.found[collected.count] = section;
    collected.found[collected.count++].path = nullptr;
    return collected.count < collected.capacity;
}

}  // namespace

std::size_t find_sections(const char* name, LoadedSection* found, std::size_t capacity)
{
    Collected collected{found, capacity, 0};
    SectionSearch search{name, static_cast<ElfW(Xword)>(SHF_ALLOC | SHF_WRITE), &add_to_collected, &collected};
    dl_iterate_phdr(&search_module, &search);
    return collected.count;
}

void visit_sections(const char* name, bool (*visit)(void* context, const LoadedSection& section), void* context)
{
    SectionSearch search{name, static_cast<ElfW(Xword)>(SHF_ALLOC), visit, context};
    dl_iterate_phdr(&search_module, &search);
}

}  // namespace stillpoint::os
