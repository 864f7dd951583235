#pragma once
// Sections and symbols of a program or shared library.

#include <cstdint>
#include <elf.h>
#include <string>
#include <string_view>
#include <vector>

#include "os/descriptor.hpp"

namespace stillpoint::tool {

/// An ELF file; empty where the file is no 64-bit ELF file, or damaged.
class ElfFile {
public:
    explicit ElfFile(const std::string& path);

    /// Whole objects at offsets; false for what lies outside of the file.
    [[nodiscard]] bool read(std::uint64_t offset, void* to, std::uint64_t size) const;
    /// With a size of 0 where there is none of that name.
    [[nodiscard]] Elf64_Shdr section(std::string_view name) const;
    /// A section's bytes; empty where it has none in the file.
    [[nodiscard]] std::string contents(std::string_view section_name) const;
    /// The names of the functions and objects that the table (".symtab", ".dynsym") defines.
    [[nodiscard]] std::vector<std::string> defined_symbols(std::string_view table) const { return symbols(table, true); }
    /// The names of the functions and objects that it takes from libraries.
    [[nodiscard]] std::vector<std::string> needed_symbols() const { return symbols(".dynsym", false); }
    /// The dynamic section's strings of that tag: DT_NEEDED, DT_RUNPATH, DT_RPATH, DT_SONAME.
    [[nodiscard]] std::vector<std::string> dynamic_strings(Elf64_Sxword tag) const;

private:
    [[nodiscard]] std::vector<std::string> symbols(std::string_view table, bool are_defined) const;

    os::Descriptor file_;
    std::uint64_t size_ = 0;
};

}  // namespace stillpoint::tool
