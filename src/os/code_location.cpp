#include "os/code_location.hpp"

#include <algorithm>

#include "os/elf_file.hpp"

namespace stillpoint::os {

namespace {

struct InstructionSearch {
    std::uintptr_t instruction;
    CodeLocation found;
};

template <std::size_t size>
void copy_text(char (&field)[size], std::string_view text) noexcept
{
    const std::size_t length = std::min(text.size(), size - 1);
    text.copy(field, length);
    field[length] = '\0';
}

void find_function(const FileView& file, const ElfW(Shdr) & table, std::uint64_t names_offset, CodeLocation& found) noexcept
{
    const std::uint64_t count = table.sh_size / sizeof(ElfW(Sym));
    const auto* const entries = file.at<ElfW(Sym)>(table.sh_offset, count);
    for (std::uint64_t i = 0; entries != nullptr && i < count; ++i) {
        const std::uint64_t inside = found.module_offset - entries[i].st_value;
        if ((entries[i].st_info & 0xf) == STT_FUNC && entries[i].st_value != 0 && inside < entries[i].st_size) {
            copy_text(found.function, file.text(names_offset + entries[i].st_name));
            found.function_begin = entries[i].st_value;
            return;
        }
    }
}

bool holds(const dl_phdr_info& module, std::uintptr_t address) noexcept
{
    for (std::size_t i = 0; i < module.dlpi_phnum; ++i) {
        const auto& segment = module.dlpi_phdr[i];
        if (segment.p_type == PT_LOAD && address - (module.dlpi_addr + segment.p_vaddr) < segment.p_memsz) {
            return true;
        }
    }
    return false;
}

int look_into(dl_phdr_info* module, std::size_t /*size*/, void* context)
{
    InstructionSearch& search = *static_cast<InstructionSearch*>(context);
    if (!holds(*module, search.instruction)) {
        return 0;
    }
    CodeLocation& found = search.found;
    found.module_offset = search.instruction - module->dlpi_addr;
    const bool is_program = module->dlpi_name == nullptr || module->dlpi_name[0] == '\0';
    char target[4096] = {};
    std::string_view name = is_program ? std::string_view{} : module->dlpi_name;
    if (is_program) {
        const ssize_t length = readlink("/proc/self/exe", target, sizeof target - 1);
        name = {target, length > 0 ? static_cast<std::size_t>(length) : 0};
    }
    name.remove_prefix(name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/') + 1);
    copy_text(found.module_name, name);
    const FileView file(is_program ? "/proc/self/exe" : module->dlpi_name);
    const Sections sections = sections_of(file);
    for (const ElfW(Word) kind : {ElfW(Word){SHT_SYMTAB}, ElfW(Word){SHT_DYNSYM}}) {
        for (std::size_t i = 0; i < sections.count && found.function_begin == 0; ++i) {
            const auto& table = sections.headers[i];
            if (table.sh_type == kind && table.sh_link < sections.count) {
                find_function(file, table, sections.headers[table.sh_link].sh_offset, found);
            }
        }
    }
    if (found.function_begin != 0) {
        found.function_begin += module->dlpi_addr;
    }
    return 1;
}

}  // namespace

CodeLocation locate_code(const void* instruction) noexcept
{
    InstructionSearch search{reinterpret_cast<std::uintptr_t>(instruction), {}};
    dl_iterate_phdr(&look_into, &search);
    return search.found;
}

}  // namespace stillpoint::os
