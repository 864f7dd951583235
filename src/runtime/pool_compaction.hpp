#pragma once
// Copying the objects of a closed pool into a new, smaller one, for `stillpoint compact`, where an engine knows the program's types.

#include <cstdint>
#include <string>

namespace stillpoint {

struct CompactionRequest {
    std::string path;              ///< of the new pool
    std::uint64_t size_bytes = 0;  ///< of its durable memory; 0: what the objects need, and some room
};

struct CompactionFigures {
    std::uint64_t objects_before = 0;
    std::uint64_t objects_after = 0;  ///< the others cannot be reached
    std::uint64_t object_bytes_before = 0;
    std::uint64_t object_bytes_after = 0;
    std::uint64_t image_bytes_before = 0;
    std::uint64_t image_bytes_after = 0;
    std::uint64_t file_bytes_before = 0;
    std::uint64_t file_bytes_after = 0;
};

}  // namespace stillpoint
