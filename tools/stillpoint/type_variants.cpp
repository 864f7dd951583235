// Which variant an object has: enums of Rust.

#include <cstring>

#include "program_types.hpp"

namespace stillpoint::tool {

const TypeVariant* ProgramType::variant_in(std::span<const std::byte> record) const noexcept
{
    if (discriminant_offset > record.size() || discriminant_bytes > record.size() - discriminant_offset) {
        return nullptr;
    }
    std::uint64_t number = 0;
    std::memcpy(&number, record.data() + discriminant_offset, discriminant_bytes);
    const std::uint64_t mask = discriminant_bytes < sizeof number ? (std::uint64_t{1} << (8 * discriminant_bytes)) - 1 : UINT64_MAX;
    const TypeVariant* rest = nullptr;
    for (const TypeVariant& variant : variants) {
        if (variant.value && (*variant.value & mask) == number && discriminant_bytes != 0) {
            return &variant;
        }
        rest = variant.value ? rest : &variant;
    }
    return rest;
}

}  // namespace stillpoint::tool
