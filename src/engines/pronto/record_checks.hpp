#pragma once
// The rules that an object's record must satisfy before anything of it is used: the same for a start and for a check.

#include <algorithm>
#include <cstring>
#include <span>

#include "engines/pronto/entry_codec.hpp"

namespace stillpoint::pronto {

/// Not empty, and terminated.
inline bool is_text(const char* text, std::size_t size) noexcept { return text[0] != '\0' && std::memchr(text, '\0', size) != nullptr; }

/// Where the methods are, and whether they are a heap block, the caller knows.
inline bool agrees_with_itself(const ObjectRecord& record, std::uint64_t block_bytes) noexcept
{
    return record.object_offset == sizeof(ObjectRecord) && record.size_bytes == block_bytes - sizeof(ObjectRecord) &&
           record.method_count <= SP_PRONTO_METHODS_MAX && record.identity != 0 && is_text(record.type_name, sizeof record.type_name);
}

inline bool are_sound(std::span<const MethodRecord> methods) noexcept
{
    return std::all_of(methods.begin(), methods.end(), [](const MethodRecord& method) {
        return is_text(method.name, sizeof method.name) && std::memchr(method.signature, '\0', sizeof method.signature) != nullptr;
    });
}

}  // namespace stillpoint::pronto
