#include "engines/pronto/offline_objects.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <vector>

#include "core/pool_part.hpp"
#include "engines/pronto/entry_codec.hpp"
#include "engines/pronto/log_scan.hpp"
#include "engines/pronto/record_checks.hpp"
#include "heap/heap.hpp"
#include "heap/image_heap.hpp"
#include "pool/directory.hpp"
#include "pool/image.hpp"

namespace stillpoint::pronto {

namespace {

/// An image at another address than its own.
class MovedImage {
public:
    MovedImage(const PoolFacts& facts, const std::byte* base, std::uint64_t image_bytes) noexcept
        : base_(base), address_(facts.base_address),
          heap_(heap_options_of(const_cast<std::byte*>(base), facts, image_bytes, table_format_of(base)))
    {
    }
    /// The object that begins at that address of the image, if a live block of so many bytes does; else nullptr.
    [[nodiscard]] const std::byte* block(std::uintptr_t address, std::uint64_t bytes) const noexcept
    {
        const std::uint64_t offset = address - address_;
        return offset < heap_.image_bytes && bytes <= heap_.image_bytes - offset && Heap::is_live_block(heap_, offset, bytes)
                   ? base_ + offset
                   : nullptr;
    }

private:
    const std::byte* base_;
    std::uintptr_t address_;
    Heap::Options heap_;
};

/// nullptr: the handle names something else, or damage that was told.
const ObjectRecord* object_at(const MovedImage& image, const DirectoryEntry& entry, Findings& findings)
{
    const std::byte* const block = entry.size_bytes >= sizeof(ObjectRecord) ? image.block(entry.address, entry.size_bytes) : nullptr;
    const auto* const record = reinterpret_cast<const ObjectRecord*>(block);
    if (record == nullptr || record->magic != record_magic) {
        return nullptr;
    }
    const std::byte* const methods = image.block(record->methods_address, record->method_count * sizeof(MethodRecord));
    if (record->checksum != record_checksum(*record) || !agrees_with_itself(*record, entry.size_bytes) || methods == nullptr ||
        !are_sound({reinterpret_cast<const MethodRecord*>(methods), record->method_count}) ||
        (record->twin_address != 0 &&
         image.block(record->twin_address - sizeof(ObjectRecord), sizeof(ObjectRecord) + record->size_bytes) == nullptr)) {
        findings.damage(
            fail(SP_E_POOL_CORRUPT, 0, "the record of the durable object \"{}\" is damaged; restore the pool from a copy", entry.handle)
                .value());
        return nullptr;
    }
    return record;
}

void tell_damage(const MovedImage& image, const ObjectRecord& record, std::string_view name, const ScannedLog& log, Findings& findings)
{
    const auto method = log.damaged_method();
    const std::byte* const table = image.block(record.methods_address, record.method_count * sizeof(MethodRecord));
    char text[SP_PRONTO_NAME_BYTES_MAX + 1] = "method not known";
    if (method && *method < record.method_count) {
        std::memcpy(text, reinterpret_cast<const MethodRecord*>(table)[*method].name, sizeof text - 1);
    }
    findings.damage(fail(SP_E_POOL_CORRUPT, 0,
                         "the log of the durable object \"{}\": operation {} ({}) was acknowledged and cannot be read; the operations up "
                         "to {} are kept",
                         name, log.damaged_number(), text, log.damaged_number() - 1)
                        .value());
}

constexpr FactColumn columns[] = {{"name", "name", FactKind::text, 24},
                                  {"type", "type", FactKind::text, 24},
                                  {"address", "", FactKind::number, 0},
                                  {"size_bytes", "", FactKind::number, 0},
                                  {"snapshot_number", "", FactKind::number, 0},
                                  {"newest_number", "operations", FactKind::number, 12},
                                  {"logged_operations", "to replay", FactKind::number, 12},
                                  {"log_bytes", "log", FactKind::bytes, 10},
                                  {"replay_ns", "replay time", FactKind::nanoseconds, 12}};

Result<void> visit_objects(const Pool& pool, const std::byte* base, std::uint64_t image_bytes, Findings& findings,
                           void (*show)(void* context, std::span<const Fact> row), void* context)
{
    look_at(&findings, PoolPart::logs);
    auto chunks = scan_chunks(pool);
    if (!chunks) {
        return pass_on(chunks.error());
    }
    std::sort(chunks->begin(), chunks->end(),
              [](const ScannedChunk& a, const ScannedChunk& b) { return a.header.sequence < b.header.sequence; });
    const MovedImage image(pool.facts(), base, image_bytes);
    const Directory directory(const_cast<std::byte*>(base),
                              ImageGeometry::for_image(pool.facts().image_bytes_first_max, table_format_of(base)));
    Result<void> outcome;
    std::set<std::uint64_t> identities;
    directory.for_each([&](const DirectoryEntry& entry) {
        const ObjectRecord* const record = object_at(image, entry, findings);
        if (record == nullptr) {
            return true;
        }
        if (!identities.insert(record->identity).second) {
            findings.damage(fail(SP_E_POOL_CORRUPT, 0,
                                 "the durable object \"{}\" has the identity of another one; restore the pool from a copy", entry.handle)
                                .value());
            return true;
        }
        std::vector<ScannedChunk> own;
        std::copy_if(chunks->begin(), chunks->end(), std::back_inserter(own),
                     [&](const ScannedChunk& chunk) { return chunk.header.object == record->identity; });
        auto log = ScannedLog::read(pool, own, *record);
        if (!log) {
            outcome = log.error().code == SP_E_POOL_CORRUPT ? Result<void>{} : pass_on(log.error());
            findings.damage(log.error());
            return outcome.has_value();
        }
        if (log->damaged_number() != 0) {
            tell_damage(image, *record, entry.handle, *log, findings);
        }
        const std::uint64_t count = log->operations().size();
        const std::uint64_t newest = count == 0 ? record->committed : log->operations().back().number;
        const std::string_view time_text = count == 0 ? "none" : record->operation_ns == 0 ? "not known" : "";
        const std::array<Fact, std::size(columns)> row = {Fact{.text = entry.handle},
                                                          Fact{.text = record->type_name},
                                                          Fact{entry.address + record->object_offset},
                                                          Fact{record->size_bytes},
                                                          Fact{record->committed},
                                                          Fact{newest},
                                                          Fact{count},
                                                          Fact{log->bytes()},
                                                          Fact{count * record->operation_ns, time_text}};
        show(context, row);
        return true;
    });
    return outcome;
}

}  // namespace

const EngineFacts object_facts = {.name = "objects",
                                  .sentence = "Also list the objects of the engine pronto: operations, log, estimated time to replay it.",
                                  .columns = columns,
                                  .visit = &visit_objects};

}  // namespace stillpoint::pronto
