#include "instrumentation.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

#include "nvhooks/abi/nvhooks_abi.h"
#include "os/descriptor.hpp"

namespace stillpoint::tool {

namespace {

/// Reads whole objects at offsets; anything outside the file is not there.
class ElfFile {
public:
    explicit ElfFile(const std::string& path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC))
    {
        struct stat status{};
        if (file_.valid() && fstat(file_.get(), &status) == 0 && status.st_size > 0) {
            size_ = static_cast<std::uint64_t>(status.st_size);
        }
    }

    [[nodiscard]] bool read(std::uint64_t offset, void* to, std::uint64_t size) const
    {
        return offset <= size_ && size <= size_ - offset &&
               pread(file_.get(), to, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
    }
    [[nodiscard]] std::uint64_t size() const { return size_; }

private:
    os::Descriptor file_;
    std::uint64_t size_ = 0;
};

/// The section of that name, with a size of 0 where there is none.
Elf64_Shdr find_section(const ElfFile& file, std::string_view wanted)
{
    Elf64_Ehdr header{};
    if (!file.read(0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr)) {
        return {};
    }
    Elf64_Shdr names{};
    if (!file.read(header.e_shoff + std::uint64_t{header.e_shstrndx} * sizeof names, &names, sizeof names)) {
        return {};
    }
    for (std::uint64_t index = 0; index < header.e_shnum; ++index) {
        Elf64_Shdr section{};
        std::string name(wanted.size() + 1, '\0');
        if (file.read(header.e_shoff + index * sizeof section, &section, sizeof section) &&
            file.read(names.sh_offset + section.sh_name, name.data(), name.size()) && name.c_str() == wanted &&
            section.sh_size <= file.size()) {
            return section;
        }
    }
    return {};
}

}  // namespace

std::vector<std::string> layers_in(const std::string& path)
{
    const ElfFile file(path);
    const Elf64_Shdr section = find_section(file, NVHOOKS_MODULE_SECTION);
    std::vector<std::string> layers;
    for (std::uint64_t at = 0; at + sizeof(nvhooks_module) <= section.sh_size; at += sizeof(nvhooks_module)) {
        nvhooks_module record{};
        if (!file.read(section.sh_offset + at, &record, sizeof record) || record.magic != NVHOOKS_MODULE_MAGIC) {
            break;
        }
        const std::string layer(record.layer, strnlen(record.layer, sizeof record.layer));
        if (std::find(layers.begin(), layers.end(), layer) == layers.end()) {
            layers.push_back(layer);
        }
    }
    return layers;
}

}  // namespace stillpoint::tool
