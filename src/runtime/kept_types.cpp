#include "runtime/kept_types.hpp"

#include <cstring>

#include "arch/checksum.hpp"
#include "core/store_marks.hpp"
#include "os/environment.hpp"
#include "os/log.hpp"
#include "pool/image_layout.hpp"
#include "runtime/dying_memory.hpp"
#include "runtime/type_text.hpp"

namespace stillpoint {

namespace {

layout::DataLayout& data_layout_of(const Heap::Options& heap)
{
    return reinterpret_cast<layout::ImageHeader*>(heap.image_base)->data_layout;
}

tl::unexpected<Failure> damaged(std::string_view why)
{
    return fail(SP_E_POOL_CORRUPT, 0, "the pool's descriptions of types: {}; restore the pool from a copy", why);
}

std::uint64_t checksum_of(const layout::TypesBlock& block, const std::byte* text)
{
    return checksum64(&block, offsetof(layout::TypesBlock, checksum), checksum64(text, block.text_bytes, layout::types_checksum_seed));
}

/// The block that the image has; all zero: none. Errors: pool_corrupt.
Result<layout::TypesBlock> kept_block(const Heap::Options& heap)
{
    const std::uint64_t offset = data_layout_of(heap).types_offset;
    layout::TypesBlock block{};
    if (offset == 0) {
        return block;
    }
    if (!Heap::is_live_block(heap, offset, sizeof block)) {
        return damaged("no live block begins where the image header says");
    }
    std::memcpy(&block, heap.image_base + offset, sizeof block);
    if (block.text_bytes > heap.image_bytes || !Heap::is_live_block(heap, offset, sizeof block + block.text_bytes) ||
        block.checksum != checksum_of(block, heap.image_base + offset + sizeof block)) {
        return damaged("their checksum does not hold");
    }
    return block;
}

std::string_view text_in(const Heap::Options& heap, const layout::TypesBlock& block)
{
    return {reinterpret_cast<const char*>(heap.image_base) + data_layout_of(heap).types_offset + sizeof block, block.text_bytes};
}

Result<void> keep(Heap& heap, const Heap::Options& options, std::string_view text)
{
    layout::DataLayout& header = data_layout_of(options);
    layout::TypesBlock block{text.size(), header.number, 0};
    block.checksum = checksum_of(block, reinterpret_cast<const std::byte*>(text.data()));
    auto* const memory = static_cast<std::byte*>(heap.allocate(sizeof block + text.size()));
    if (memory == nullptr) {
        return pass_on(Heap::last_failure());
    }
    announce_store(memory, sizeof block + text.size());
    std::memcpy(memory, &block, sizeof block);
    std::memcpy(memory + sizeof block, text.data(), text.size());
    note_store(memory, sizeof block + text.size());
    const std::uint64_t old = header.types_offset;
    announce_store(&header, sizeof header);
    header.types_offset = static_cast<std::uint64_t>(memory - options.image_base);
    note_store(&header, sizeof header);
    if (old != 0) {
        release_block(heap, options.image_base + old);
    }
    return {};
}

}  // namespace

Result<std::string> kept_type_text(const Heap::Options& heap)
{
    const auto block = kept_block(heap);
    if (!block) {
        return pass_on(block.error());
    }
    std::string text(block->text_bytes == 0 ? std::string_view() : text_in(heap, *block));
    if (auto parsed = type_text::parse(text); !parsed) {
        return pass_on(parsed.error());
    }
    return text;
}

Result<void> settle_types(Heap& heap, const Heap::Options& sound, bool has_steps, bool accept)
{
    const auto block = kept_block(sound);
    if (!block) {
        return pass_on(block.error());
    }
    const char* const said = os::environment_variable(types_variable);
    if (said == nullptr || *said == '\0' || has_steps) {
        return {};
    }
    auto present = type_text::parse(said);
    if (!present) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "environment variable {}: {}", types_variable, present.error().text());
    }
    type_text::Types kept;
    // After a step the descriptions are those of the older data.
    const bool is_comparable = block->text_bytes != 0 && block->layout_number == data_layout_of(sound).number;
    if (is_comparable) {
        auto parsed = type_text::parse(text_in(sound, *block));
        if (!parsed) {
            return pass_on(parsed.error());
        }
        kept = std::move(*parsed);
    }
    if (const auto differs = type_text::first_difference(kept, *present)) {
        if (!accept) {
            return fail(
                SP_E_LAYOUT, 0,
                "the types of the program are not those of the pool's data. {}. Start the program that wrote the pool; or give the data "
                "another number, with a step (SP_LAYOUT, SP_LAYOUT_STEP); or, where old data mean the same, say --changed-types accept "
                "once (option changed_types=accept)",
                *differs);
        }
        os::log(os::Severity::warning, "the types of the program are not those of the pool's data, which is accepted. {}", *differs);
    }
    const std::string all = type_text::text_of(type_text::merged(kept, *present));
    if (is_comparable && all == text_in(sound, *block)) {
        return {};
    }
    return keep(heap, sound, all);
}

}  // namespace stillpoint
