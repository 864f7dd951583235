#include "runtime/durable_globals.hpp"

#include <array>
#include <cstring>
#include <string_view>

#include "core/store_marks.hpp"
#include "heap/heap.hpp"
#include "os/elf_section.hpp"
#include "pool/image_layout.hpp"
#include "runtime/sync_objects.hpp"

namespace stillpoint {

namespace {

layout::DurableGlobals* find_or_claim(layout::ImageHeader& header, const os::LoadedSection& section)
{
    for (auto& entry : header.durable_globals) {
        if (entry.name[0] == '\0' || std::string_view(entry.name) == section.module_name) {
            return &entry;
        }
    }
    return nullptr;
}

Result<void> restore(Engine& engine, Heap& heap, const os::LoadedSection& section)
{
    auto& header = *reinterpret_cast<layout::ImageHeader*>(engine.image_base());
    layout::DurableGlobals* const entry = find_or_claim(header, section);
    if (entry == nullptr) {
        return fail(SP_E_INVALID_ARGUMENT, 0,
                    "the pool keeps the SP_PERSISTENT variables of {} modules already; {} is one too many",
                    layout::durable_globals_max, section.module_name);
    }
    if (entry->name[0] == '\0') {
        auto* const copy = static_cast<std::byte*>(heap.allocate(section.size));
        if (copy == nullptr) {
            return pass_on(Heap::last_failure());
        }
        std::memcpy(copy, section.memory, section.size);
        note_store(copy, section.size);
        std::memcpy(entry->name, section.module_name, sizeof entry->name);
        entry->layout_hash = section.layout_hash;
        entry->image_offset = static_cast<std::uint64_t>(copy - engine.image_base());
        entry->size = section.size;
        note_store(entry, sizeof *entry);
    } else if (entry->image_offset > engine.image_bytes() || entry->size > engine.image_bytes() - entry->image_offset) {
        // The header's own check knows only the largest size that the image may have.
        return fail(SP_E_POOL_CORRUPT, 0,
                    "the pool's copy of the SP_PERSISTENT variables of {} ({} bytes at offset {}) lies outside its "
                    "memory: restore the pool from a copy",
                    section.module_name, entry->size, entry->image_offset);
    } else if (entry->size != section.size || entry->layout_hash != section.layout_hash) {
        return fail(SP_E_GLOBALS_CHANGED, 0,
                    "the SP_PERSISTENT variables of {} have changed since the pool was written ({} bytes "
                    "then, {} now): run the program that wrote it, or start with a new pool",
                    section.module_name, entry->size, section.size);
    } else {
        std::memcpy(section.memory, engine.image_base() + entry->image_offset, section.size);
    }
    sync_objects_add_mirror(section.memory, engine.image_base() + entry->image_offset, section.size);
    return engine.mirror({section.memory, engine.image_base() + entry->image_offset, section.size});
}

}  // namespace

Result<void> restore_durable_globals(Engine& engine, Heap& heap)
{
    std::array<os::LoadedSection, layout::durable_globals_max> sections{};
    const std::size_t count = os::find_sections("sp_persistent", sections.data(), sections.size());
    for (std::size_t i = 0; i < count; ++i) {
        if (auto done = restore(engine, heap, sections[i]); !done) {
            return done;
        }
    }
    return {};
}

bool has_durable_globals()
{
    std::array<os::LoadedSection, 1> section{};
    return os::find_sections("sp_persistent", section.data(), section.size()) != 0;
}

}  // namespace stillpoint
