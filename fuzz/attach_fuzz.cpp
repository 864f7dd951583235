// Fuzzer: any first pages of an image, as a start meets them: header with the table of durable globals, handle directory,
// table of synchronisation objects, and the heap's table of spans. The input changes an image that is sound: each four bytes say in
// which of them, at which place and by what. If the first byte is odd, the header's checksum is made to hold again.
//
// Demanded: an error with a text; or handles and globals that lie in the image, and a reset of synchronisation
// objects that changes no byte outside of them, and none of the heap's tables.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "arch/checksum.hpp"
#include "pool/directory.hpp"
#include "pool/image.hpp"
#include "heap/heap_layout.hpp"
#include "pool/image_layout.hpp"
#include "runtime/durable_globals_table.hpp"
#include "runtime/sync_object_reset.hpp"
#include "runtime/sync_objects.hpp"

namespace {

using namespace stillpoint;
using layout::ImageHeader;
using layout::SyncObjectRecord;

constexpr std::uint64_t image_bytes = 4 * mib;
const ImageGeometry geometry = ImageGeometry::for_image(image_bytes);
const heap::HeapLayout heap_layout = heap::HeapLayout::of(geometry.heap_offset, image_bytes, layout::TableFormat::plain);
/// The part after the tables: the objects of the sound image lie there, in two large blocks and one with small ones.
constexpr std::uint64_t heap_part = 4 * heap::span_bytes;

void demand(bool condition)
{
    if (!condition) {
        std::abort();
    }
}

Heap::Options heap_of(std::byte* base) { return {base, geometry.heap_offset, image_bytes, image_bytes, nullptr, nullptr}; }

void make_sound(std::byte* base)
{
    std::memset(base, 0, heap_layout.spans_offset + heap_part);
    auto* const spans = reinterpret_cast<heap::SpanEntry*>(base + heap_layout.span_table_offset);
    spans[0] = heap::SpanEntry::large(2);
    spans[2] = heap::SpanEntry::large(1);
    spans[3] = heap::SpanEntry::small(4);
    format_image(base, image_bytes);
    Directory directory(base, geometry);
    const auto heap = reinterpret_cast<std::uintptr_t>(base) + heap_layout.spans_offset;
    for (unsigned i = 0; i < 5; ++i) {
        demand(directory.insert("handle " + std::to_string(i), heap + i * 4096, 100).has_value());
    }
    auto* const objects = reinterpret_cast<SyncObjectRecord*>(base + geometry.sync_objects_offset);
    for (unsigned i = 0; i < 7; ++i) {
        // Some reach over the border of two spans.
        objects[i] = {heap + (i % 2 == 0 ? 256 * i : heap::span_bytes - 8 * i), 1 + i};
    }
    auto& globals = reinterpret_cast<ImageHeader*>(base)->durable_globals[0];
    std::strcpy(globals.name, "program");
    globals.image_offset = heap_layout.spans_offset + 2 * heap::span_bytes;
    globals.size = 4096;
}

void change(std::byte* base, const std::uint8_t* input)
{
    const std::uint64_t place = input[1] + std::uint64_t{input[2]} * 256;
    std::uint64_t offset = 0;
    switch (input[0] % 6) {
    case 0: offset = place % 128; break;
    case 1: offset = offsetof(ImageHeader, durable_globals) + place % (sizeof(ImageHeader) - offsetof(ImageHeader, durable_globals)); break;
    case 2: offset = geometry.directory_offset + place % (geometry.sync_objects_offset - geometry.directory_offset); break;
    case 3: offset = geometry.sync_objects_offset + place % 256; break;
    case 4: offset = heap_layout.span_table_offset + place % (4 * sizeof(heap::SpanEntry)); break;
    default: offset = heap_layout.spans_offset + place % heap_part;
    }
    base[offset] ^= std::byte{input[3]};
}

void seal(std::byte* base)
{
    constexpr std::size_t before = offsetof(ImageHeader, checksum);
    constexpr std::size_t after = before + sizeof(ImageHeader::checksum);
    const std::uint64_t sum = checksum64(base + after, offsetof(ImageHeader, reserved) - after,
                                         checksum64(base, before, layout::image_checksum_seed));
    std::memcpy(base + before, &sum, sizeof sum);
}

void demand_inside(const std::byte* base)
{
    const auto& header = *reinterpret_cast<const ImageHeader*>(base);
    for (const auto& globals : header.durable_globals) {
        demand(globals.name[0] == '\0' || (globals.image_offset >= geometry.heap_offset && globals.image_offset <= image_bytes &&
                                           globals.size <= image_bytes - globals.image_offset));
    }
}

void look_up_everything(std::byte* base)
{
    Directory directory(base, geometry);
    if (const auto sound = directory.check(image_bytes); !sound) {
        demand(!sound.error().text().empty());
        return;
    }
    const std::uint64_t home = reinterpret_cast<const ImageHeader*>(base)->base_address;
    directory.for_each([&](const DirectoryEntry& entry) {
        demand(entry.address >= home + geometry.heap_offset && entry.address + entry.size_bytes <= home + image_bytes);
        const auto found = directory.find(entry.handle);
        demand(found && found->address == entry.address);
    });
}

void reset_objects(std::byte* base)
{
    const auto address = reinterpret_cast<std::uintptr_t>(base);
    if (const auto sound = Heap::check(heap_of(base)); !sound) {
        demand(!sound.error().text().empty());
        return;
    }
    if (const auto sound = durable_globals::check_blocks(heap_of(base), nullptr); !sound) {
        demand(!sound.error().text().empty());
        return;
    }
    if (const auto sound = sync_objects_check(heap_of(base), address, geometry); !sound) {
        demand(!sound.error().text().empty());
        return;
    }
    const auto* const objects = reinterpret_cast<const SyncObjectRecord*>(base + geometry.sync_objects_offset);
    for (std::uint64_t i = 0; i < geometry.sync_objects_capacity; ++i) {
        if (objects[i].address == 0) {
            continue;
        }
        const auto kind = static_cast<SyncObjectKind>(objects[i].kind);
        auto* const object = reinterpret_cast<std::byte*>(objects[i].address);
        const std::size_t around = 64;
        const std::size_t size = sync_object_bytes(kind);
        const auto* const end = base + image_bytes;
        const std::byte* const from = object - around;
        const std::byte* const to = object + size + around <= end ? object + size + around : end;
        const std::vector<std::byte> old(from, to);
        const bool reset = reset_sync_object(object, kind);
        demand(std::memcmp(old.data(), from, around) == 0);
        demand(std::memcmp(old.data() + around + size, object + size, static_cast<std::size_t>(to - object) - size) == 0);
        demand(reset || std::memcmp(old.data() + around, object, size) == 0);
    }
    demand(Heap::check(heap_of(base)).has_value());  // No reset was one of the heap's own tables.
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    alignas(page_bytes) static std::byte image[image_bytes];
    make_sound(image);
    for (std::size_t at = 1; at + 4 <= size && at < 400; at += 4) {
        change(image, data + at);
    }
    if (size > 0 && data[0] % 2 != 0) {
        seal(image);
    }
    if (const auto checked = check_image(image, layout::TableFormat::plain, {image_bytes, image_bytes}); !checked) {
        demand(!checked.error().text().empty());
        return 0;
    }
    demand_inside(image);
    look_up_everything(image);
    reset_objects(image);
    return 0;
}
