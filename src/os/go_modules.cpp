#include "os/go_modules.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <link.h>
#include <string_view>

namespace stillpoint::os {

namespace {

constexpr std::string_view owner{"Go\0\0", 4};
constexpr std::uint32_t build_id = 4;

[[nodiscard]] constexpr std::size_t padded(std::size_t bytes) noexcept { return (bytes + 3) & ~std::size_t{3}; }

/// [notes, + size): each a header, the name of its definer, and its content.
[[nodiscard]] bool has_note_of_go(const char* notes, std::size_t size) noexcept
{
    ElfW(Nhdr) header{};
    while (size >= sizeof header) {
        std::memcpy(&header, notes, sizeof header);
        const std::size_t bytes = sizeof header + padded(header.n_namesz) + padded(header.n_descsz);
        if (bytes > size) {
            return false;
        }
        if (header.n_type == build_id && header.n_namesz == owner.size() &&
            std::string_view(notes + sizeof header, owner.size()) == owner) {
            return true;
        }
        notes += bytes;
        size -= bytes;
    }
    return false;
}

int visit_module(dl_phdr_info* module, std::size_t /*size*/, void* context) noexcept
{
    auto& found = *static_cast<GoModules*>(context);
    for (std::size_t i = 0; i < module->dlpi_phnum; ++i) {
        const auto& part = module->dlpi_phdr[i];
        if (part.p_type == PT_NOTE && has_note_of_go(reinterpret_cast<const char*>(module->dlpi_addr + part.p_vaddr), part.p_memsz)) {
            const std::string_view name = module->dlpi_name[0] != '\0' ? module->dlpi_name : "this program";
            if (found.count++ == 0) {
                *std::copy_n(name.begin(), std::min(name.size(), sizeof found.first - 1), found.first) = '\0';
            }
            break;
        }
    }
    return 0;
}

}  // namespace

GoModules loaded_go_modules() noexcept
{
    GoModules found{};
    dl_iterate_phdr(&visit_module, &found);
    return found;
}

}  // namespace stillpoint::os
