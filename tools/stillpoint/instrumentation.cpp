#include "instrumentation.hpp"

#include <algorithm>
#include <cstring>

#include "elf_file.hpp"
#include "nvhooks/abi/nvhooks_abi.h"

namespace stillpoint::tool {

std::vector<std::string> layers_in(const std::string& path)
{
    const ElfFile file(path);
    const Elf64_Shdr section = file.section(NVHOOKS_MODULE_SECTION);
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
