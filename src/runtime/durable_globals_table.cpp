#include "runtime/durable_globals_table.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "arch/checksum.hpp"
#include "core/store_marks.hpp"
#include "core/units.hpp"
#include "heap/heap.hpp"

namespace stillpoint::durable_globals {

namespace {

std::uint64_t checksum_of(const std::byte* block, const layout::GlobalsTrailer& trailer, std::uint64_t table_end)
{
    return checksum64(&trailer, offsetof(layout::GlobalsTrailer, checksum),
                      checksum64(block + trailer.table_offset, table_end - trailer.table_offset, layout::globals_checksum_seed));
}

tl::unexpected<Failure> damaged(const layout::DurableGlobals& entry, std::string_view what)
{
    return fail(SP_E_POOL_CORRUPT, 0,
                "the pool's copy of the SP_PERSISTENT variables of {} ({} bytes at offset {}): {}; restore the pool from a copy",
                std::string_view(entry.name, strnlen(entry.name, sizeof entry.name)), entry.size, entry.image_offset, what);
}

/// A text of the table, or nullopt where it does not end inside.
bool take_text(const std::byte* table, std::uint64_t table_bytes, std::uint32_t offset, std::string& to)
{
    if (offset >= table_bytes) {
        return false;
    }
    const char* const text = reinterpret_cast<const char*>(table) + offset;
    const std::size_t length = strnlen(text, table_bytes - offset);
    to.assign(text, length);
    return length < table_bytes - offset;
}

/// The table's bytes as they are written.
class TableBytes {
public:
    explicit TableBytes(std::size_t records) : bytes_(records * sizeof(layout::GlobalsRecord)) { add_text(""); }

    std::uint32_t add_text(std::string_view text)
    {
        const std::size_t at = bytes_.size();
        bytes_.resize(at + text.size() + 1);
        std::memcpy(bytes_.data() + at, text.data(), text.size());
        return static_cast<std::uint32_t>(at);
    }
    void set_record(std::size_t index, const layout::GlobalsRecord& record)
    {
        std::memcpy(bytes_.data() + index * sizeof record, &record, sizeof record);
    }
    [[nodiscard]] const std::vector<std::byte>& bytes() const noexcept { return bytes_; }

private:
    std::vector<std::byte> bytes_;
};

}  // namespace

Result<Block> read_block(const Heap::Options& heap, layout::DurableGlobals& entry)
{
    // The header's own check knows only the largest size that the image may have. A start copies into the block.
    if (!Heap::is_live_block(heap, entry.image_offset, entry.size)) {
        return damaged(entry, "no live block of that size begins there");
    }
    Block block;
    block.entry = &entry;
    block.memory = heap.image_base + entry.image_offset;
    block.section_bytes = entry.size;
    layout::GlobalsTrailer trailer{};
    if (entry.size < sizeof trailer) {
        return block;
    }
    const std::uint64_t table_end = entry.size - sizeof trailer;
    std::memcpy(&trailer, block.memory + table_end, sizeof trailer);
    if (std::memcmp(trailer.magic, layout::globals_magic, sizeof trailer.magic) != 0) {
        return block;
    }
    const std::uint64_t table_bytes = trailer.table_offset <= table_end ? table_end - trailer.table_offset : 0;
    if (trailer.section_bytes > trailer.table_offset || table_bytes == 0 ||
        trailer.record_count > table_bytes / sizeof(layout::GlobalsRecord) ||
        trailer.checksum != checksum_of(block.memory, trailer, table_end)) {
        return damaged(entry, "the checksum of their table does not hold");
    }
    block.has_table = true;
    block.identity = trailer.identity;
    block.section_bytes = trailer.section_bytes;
    const std::byte* const table = block.memory + trailer.table_offset;
    for (std::uint64_t i = 0; i < trailer.record_count; ++i) {
        layout::GlobalsRecord record{};
        std::memcpy(&record, table + i * sizeof record, sizeof record);
        KeptVariable kept;
        kept.offset = record.offset;
        kept.retired = record.retired != 0;
        kept.variable.size = record.size;
        kept.variable.module = entry.name;
        if (record.offset > trailer.table_offset || record.size > trailer.table_offset - record.offset ||
            !take_text(table, table_bytes, record.name, kept.variable.name) ||
            !take_text(table, table_bytes, record.scope, kept.variable.scope) ||
            !take_text(table, table_bytes, record.type, kept.variable.type)) {
            return damaged(entry, "a record of their table lies outside");
        }
        block.variables.push_back(std::move(kept));
    }
    return block;
}

Result<void> check_blocks(const Heap::Options& heap, Findings* findings)
{
    for (layout::DurableGlobals& entry : reinterpret_cast<layout::ImageHeader*>(heap.image_base)->durable_globals) {
        if (entry.name[0] == '\0') {
            continue;
        }
        if (const auto block = read_block(heap, entry); !block) {
            if (auto told = found(findings, pass_on(block.error())); !told) {
                return told;
            }
        }
    }
    return {};
}

Result<std::byte*> write_block(std::byte* image_base, Heap& heap, const Plan& plan, layout::DurableGlobals& entry)
{
    TableBytes table(plan.values.size());
    std::uint64_t values_end = plan.section_bytes;
    std::vector<std::uint64_t> offsets;
    for (std::size_t i = 0; i < plan.values.size(); ++i) {
        const Value& value = plan.values[i];
        offsets.push_back(value.retired ? values_end : value.offset);
        if (__builtin_add_overflow(values_end, value.retired ? value.variable.size : 0, &values_end) || values_end > window_bytes) {
            return damaged(entry, "variables that the program no longer has take more memory than there is");
        }
        table.set_record(i, {offsets.back(), value.variable.size, table.add_text(value.variable.name), table.add_text(value.variable.scope),
                             table.add_text(value.variable.type), value.retired ? 1u : 0u});
    }
    layout::GlobalsTrailer trailer{{}, plan.identity, plan.section_bytes, values_end, plan.values.size(), 0};
    std::memcpy(trailer.magic, layout::globals_magic, sizeof trailer.magic);
    const std::uint64_t table_end = values_end + table.bytes().size();
    const std::uint64_t size = table_end + sizeof trailer;
    auto* const block = static_cast<std::byte*>(heap.allocate(size));
    if (block == nullptr) {
        return pass_on(Heap::last_failure());
    }
    announce_store(block, size);
    announce_store(&entry, sizeof entry);
    if (plan.section_bytes != 0) {
        std::memcpy(block, plan.section, plan.section_bytes);
    }
    for (std::size_t i = 0; i < plan.values.size(); ++i) {
        if (plan.values[i].bytes != nullptr) {
            std::memcpy(block + offsets[i], plan.values[i].bytes, plan.values[i].variable.size);
        }
    }
    std::memcpy(block + values_end, table.bytes().data(), table.bytes().size());
    trailer.checksum = checksum_of(block, trailer, table_end);
    std::memcpy(block + table_end, &trailer, sizeof trailer);
    note_store(block, size);
    std::memset(entry.name, 0, sizeof entry.name);
    plan.module.copy(entry.name, sizeof entry.name - 1);
    entry.layout_hash = plan.identity;
    entry.image_offset = static_cast<std::uint64_t>(block - image_base);
    entry.size = size;
    note_store(&entry, sizeof entry);
    return block;
}

}  // namespace stillpoint::durable_globals
