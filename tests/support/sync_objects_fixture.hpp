#pragma once
// For the tests of synchronisation objects: an image without a pool, and stops without a checkpoint.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "core/sanitizers.hpp"
#include "core/units.hpp"
#include "heap/heap_layout.hpp"
#include "pool/image_layout.hpp"
#include "runtime/fase.hpp"
#include "runtime/sync_objects.hpp"

namespace stillpoint::test {

inline constexpr std::uint64_t image_bytes = 8 * mib;

/// An image at its durable address, without a pool; all of its heap is one block.
class ImageOfObjects : public testing::Test {
protected:
    void SetUp() override
    {
        if (thread_sanitizer) {
            GTEST_SKIP() << "the thread sanitizer keeps its own state of each lock";
        }
        void* mapped = mmap(reinterpret_cast<void*>(window_base), image_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        ASSERT_NE(mapped, MAP_FAILED);
        base = static_cast<std::byte*>(mapped);
        geometry = ImageGeometry::for_image(image_bytes);
        format_image(base, image_bytes, layout::TableFormat::plain);
        ASSERT_TRUE(fase_activate());
        const auto layout = heap::HeapLayout::of(geometry.heap_offset, image_bytes, layout::TableFormat::plain);
        heap = base + layout.spans_offset;
        reinterpret_cast<heap::SpanEntry*>(base + layout.span_table_offset)[0] =
            heap::SpanEntry::large(static_cast<std::uint32_t>(layout.spans_max));
        ASSERT_TRUE(attach());
    }
    void TearDown() override
    {
        sync_objects_detach_all();
        if (base != nullptr) {
            fase_deactivate();
            munmap(base, image_bytes);
        }
    }
    [[nodiscard]] Heap::Options heap_options() const
    {
        return {base, geometry.heap_offset, image_bytes, image_bytes, nullptr, nullptr, table_format_of(base)};
    }
    [[nodiscard]] Result<void> attach() const { return sync_objects_attach(heap_options(), geometry); }
    void capture() const
    {
        const SyncObjectsCapture stop(base, [](void*, std::byte*, std::size_t) {}, nullptr);
    }
    /// Whether recovery finds a record of it.
    [[nodiscard]] bool is_recorded(const void* object) const
    {
        return std::any_of(table(), table() + geometry.sync_objects_capacity,
                           [=](const auto& record) { return record.address == reinterpret_cast<std::uintptr_t>(object); });
    }
    [[nodiscard]] layout::SyncObjectRecord* table() const
    {
        return reinterpret_cast<layout::SyncObjectRecord*>(base + geometry.sync_objects_offset);
    }
    [[nodiscard]] std::size_t entries() const
    {
        std::size_t count = 0;
        for (std::uint64_t i = 0; i < geometry.sync_objects_capacity; ++i) {
            count += table()[i].address != 0 ? 1u : 0u;
        }
        return count;
    }
    template <class Object>
    Object& at(std::size_t offset) const
    {
        return *reinterpret_cast<Object*>(heap + offset);
    }

    std::byte* base = nullptr;
    std::byte* heap = nullptr;
    ImageGeometry geometry{};
};

}  // namespace stillpoint::test
