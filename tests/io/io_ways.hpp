#pragma once
// Ways in which a file's bytes get into a buffer: each by another path of the kernel.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace io_ways {

/// One way, for one thread. fill() returns when all bytes are in the buffer; false, having said why, where they are not.
class Way {
public:
    virtual ~Way() = default;
    [[nodiscard]] virtual bool fill(void* buffer, std::size_t size, std::uint64_t offset) = 0;
};

/// nullptr: unknown name, or not possible here; says which.
[[nodiscard]] std::unique_ptr<Way> make_way(std::string_view name, const char* file);

}  // namespace io_ways
