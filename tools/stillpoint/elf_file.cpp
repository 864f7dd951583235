#include "elf_file.hpp"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace stillpoint::tool {

namespace {

/// The string that begins at `offset` of a string table.
std::string string_at(const std::string& table, std::uint64_t offset)
{
    return offset < table.size() ? std::string(table.c_str() + offset) : std::string();
}

/// A table of structures: a section's bytes, without a part of one at the end.
template <class Entry>
std::vector<Entry> entries_of(const std::string& bytes)
{
    std::vector<Entry> entries(bytes.size() / sizeof(Entry));
    std::memcpy(entries.data(), bytes.data(), entries.size() * sizeof(Entry));
    return entries;
}

}  // namespace

ElfFile::ElfFile(const std::string& path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC))
{
    struct stat status{};
    if (file_.valid() && fstat(file_.get(), &status) == 0 && status.st_size > 0) {
        size_ = static_cast<std::uint64_t>(status.st_size);
    }
}

bool ElfFile::read(std::uint64_t offset, void* to, std::uint64_t size) const
{
    return offset <= size_ && size <= size_ - offset &&
           pread(file_.get(), to, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

Elf64_Shdr ElfFile::section(std::string_view wanted) const
{
    Elf64_Ehdr header{};
    if (!read(0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_shentsize != sizeof(Elf64_Shdr)) {
        return {};
    }
    Elf64_Shdr names{};
    if (!read(header.e_shoff + std::uint64_t{header.e_shstrndx} * sizeof names, &names, sizeof names)) {
        return {};
    }
    for (std::uint64_t index = 0; index < header.e_shnum; ++index) {
        Elf64_Shdr section{};
        std::string name(wanted.size() + 1, '\0');
        if (read(header.e_shoff + index * sizeof section, &section, sizeof section) &&
            read(names.sh_offset + section.sh_name, name.data(), name.size()) && name.c_str() == wanted && section.sh_size <= size_) {
            return section;
        }
    }
    return {};
}

std::string ElfFile::contents(std::string_view section_name) const
{
    const Elf64_Shdr header = section(section_name);
    std::string bytes(header.sh_type == SHT_NOBITS ? 0 : header.sh_size, '\0');
    return read(header.sh_offset, bytes.data(), bytes.size()) ? bytes : std::string();
}

std::vector<std::string> ElfFile::symbols(std::string_view table, bool are_defined) const
{
    const std::string strings = contents(table == ".symtab" ? ".strtab" : ".dynstr");
    std::vector<std::string> names;
    for (const auto& symbol : entries_of<Elf64_Sym>(contents(table))) {
        if ((symbol.st_shndx != SHN_UNDEF) == are_defined && symbol.st_name != 0) {
            names.push_back(string_at(strings, symbol.st_name));
        }
    }
    return names;
}

std::vector<std::string> ElfFile::dynamic_strings(Elf64_Sxword tag) const
{
    const std::string strings = contents(".dynstr");
    std::vector<std::string> found;
    for (const auto& entry : entries_of<Elf64_Dyn>(contents(".dynamic"))) {
        if (entry.d_tag == tag) {
            found.push_back(string_at(strings, entry.d_un.d_val));
        }
    }
    return found;
}

}  // namespace stillpoint::tool
