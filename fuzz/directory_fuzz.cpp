// Fuzzer: operations on a handle directory, compared with a map; and, if the first byte is odd, any
// bytes as a directory, where only undefined behaviour and endless probes count.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "pool/directory.hpp"

namespace {

using namespace stillpoint;

constexpr std::uint64_t image_size = 4 * mib;

void demand(bool condition)
{
    if (!condition) {
        std::abort();
    }
}

void run_on_garbage(std::byte* base, const std::uint8_t* data, std::size_t size)
{
    const ImageGeometry geometry = ImageGeometry::for_image(image_size);
    const std::size_t table = geometry.sync_objects_offset - geometry.directory_offset;
    for (std::size_t at = 0; size > 0 && at < table; at += size) {
        std::memcpy(base + geometry.directory_offset + at, data, std::min(size, table - at));
    }
    Directory directory(base, geometry);
    const std::string_view name(reinterpret_cast<const char*>(data), std::min<std::size_t>(size, 9));
    (void)directory.check(image_size);
    (void)directory.find(name);
    (void)directory.find_by_address(1);
    (void)directory.insert(name, 1, 1);
    (void)directory.replace(name, 2, 2);
    (void)directory.erase(name);
    directory.for_each([](const DirectoryEntry& entry) { demand(entry.handle.size() <= 79); });
}

void run_against_map(std::byte* base, const std::uint8_t* data, std::size_t size)
{
    const ImageGeometry geometry = ImageGeometry::for_image(image_size);
    format_image(base, image_size);
    Directory directory(base, geometry);
    const std::uintptr_t heap = reinterpret_cast<std::uintptr_t>(base) + geometry.heap_offset;
    std::map<std::string, std::uintptr_t> model;
    for (std::size_t i = 0; i + 1 < size; i += 2) {
        const std::string name = "h" + std::to_string(data[i + 1]);
        const std::uintptr_t address = heap + i;
        const bool known = model.contains(name);
        switch (data[i] % 3) {
        case 0: {
            const bool room = model.size() < geometry.directory_capacity;
            demand(directory.insert(name, address, 1).has_value() == (!known && room));
            if (!known && room) {
                model[name] = address;
            }
            break;
        }
        case 1:
            demand(directory.replace(name, address, 1).has_value() == known);
            if (known) {
                model[name] = address;
            }
            break;
        default: demand(directory.erase(name).has_value() == known); model.erase(name);
        }
        demand(directory.check(image_size).has_value());
    }
    for (const auto& [name, address] : model) {
        const auto found = directory.find(name);
        demand(found && found->address == address);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    if (size == 0) {
        return 0;
    }
    static std::vector<std::uint64_t> memory(image_size / 8);
    auto* const base = reinterpret_cast<std::byte*>(memory.data());
    std::memset(base, 0, ImageGeometry::for_image(image_size).heap_offset);
    if (data[0] % 2 != 0) {
        run_on_garbage(base, data + 1, size - 1);
    } else {
        run_against_map(base, data + 1, size - 1);
    }
    return 0;
}
