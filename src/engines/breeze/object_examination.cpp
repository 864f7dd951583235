// `stillpoint check` on objects: headers, pointers, and reference counts against a count from scratch.

#include <cstring>
#include <string_view>
#include <utility>

#include "engines/breeze/object_headers.hpp"
#include "engines/breeze/offline.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::breeze {

namespace {

class Examination {
public:
    Examination(BreezePool& pool, Findings& findings) noexcept : pool_(pool.parts()), findings_(findings) {}
    [[nodiscard]] Result<void> run();

private:
    /// Calls visit(block, type) for each object whose header is sound.
    template <class Visit>
    void visit_objects(Visit&& visit);
    void count_pointers(std::uint64_t block, const Type& type);
    void check_object(std::uint64_t block, const Type& type);
    void check_count(std::uint64_t block, const Type& type);
    void mark_reachable();
    void check_root();
    template <class... Args>
    void damage(std::uint64_t block, std::string_view type, fmt::format_string<Args...> text, Args&&... args)
    {
        const Failure what = fail(SP_E_POOL_CORRUPT, 0, text, std::forward<Args>(args)...).value();
        findings_.damage(fail(SP_E_POOL_CORRUPT, 0, "{}: the object at byte {} of the image, of type {}, {}", pool_.memory.medium().path(),
                              block, type, what.text())
                             .value());
    }
    [[nodiscard]] std::uint64_t& count_of(std::uint64_t block) noexcept { return references_[block / granule_bytes]; }
    PoolParts& pool_;
    Findings& findings_;
    os::ReservedArray<std::uint64_t> references_;  ///< counted from scratch, by granule of the object's header
};

template <class Visit>
void Examination::visit_objects(Visit&& visit)
{
    for (std::uint64_t number = 0; number < pool_.zones.count(); ++number) {
        pool_.zones.visit_blocks(number, [&](std::uint64_t block) {
            if (const Type* const type = pool_.allocated(block) ? pool_.type_of(block) : nullptr; type != nullptr) {
                visit(block, *type);
            }
        });
    }
}

void Examination::check_object(std::uint64_t block, const Type& type)
{
    const ObjectHeader& header = pool_.memory.object(block);
    if (!type.allows_size(header.size)) {
        damage(block, type.name, "has {} bytes, which an object of that type never has", header.size);
    }
    if (generation_in(header.generation) != pool_.generation) {
        damage(block, type.name, "has the generation {}, and the pool {}: its pointers may be those of another address",
               generation_in(header.generation), pool_.generation);
    }
    if (header.version == 0 || header.version >= pool_.versions_end) {
        damage(block, type.name, "has the version {}, which no object has", header.version);
    }
}

void Examination::count_pointers(std::uint64_t block, const Type& type)
{
    const std::byte* const object = pool_.bytes_of(block);
    type.visit_pointers(object, pool_.memory.object(block).size, [&](std::uint64_t place, const PointerRun& run) {
        const std::uint64_t pointer = word_at(object + place);
        if (pointer == 0 || run.kind == PointerKind::weak) {
            return;
        }
        const std::uint64_t target = pool_.target_of(pointer);
        const bool leads_to_object = target != 0 && pool_.allocated(target) && pointer - pool_.base() >= target + object_header_bytes;
        if (!leads_to_object) {
            damage(block, type.name, "has the pointer {} at its byte {}, which leads to no object: {:#x}", run.name, place, pointer);
            return;
        }
        ++count_of(target);
    });
}

void Examination::check_count(std::uint64_t block, const Type& type)
{
    const std::uint64_t counted = references_in(load_word(pool_.memory.object(block).counts));
    const std::uint64_t pointers = count_of(block);
    // Pointers of damaged objects are not known, so there a count may be too large.
    if (pool_.damaged_objects == 0 ? counted != pointers : counted < pointers) {
        damage(block, type.name, "has the reference count {}, and {} pointers lead to it", counted, pointers);
    }
    if (counted == 0 && pointers == 0 && !type.is_pinned && pool_.damaged_objects == 0) {
        damage(block, type.name, "was kept, and nothing leads to it");
    }
}

void Examination::check_root()
{
    const std::uint64_t root = load_word(pool_.memory.header().root);
    if (root == 0) {
        return;
    }
    if (root >= pool_.memory.bytes() || pool_.zones.block_of(root) != root || !pool_.allocated(root)) {
        findings_.damage(fail(SP_E_POOL_CORRUPT, 0, "{}: the root leads to byte {} of the image, where no object begins",
                              pool_.memory.medium().path(), root)
                             .value());
        return;
    }
    ++count_of(root);
    pool_.marks.reach(root);
}

void Examination::mark_reachable()
{
    for (std::uint64_t block = pool_.marks.take(); block != 0; block = pool_.marks.take()) {
        const Type* const type = pool_.allocated(block) ? pool_.type_of(block) : nullptr;
        if (type == nullptr) {
            continue;
        }
        const std::byte* const object = pool_.bytes_of(block);
        type->visit_pointers(object, pool_.memory.object(block).size, [&](std::uint64_t place, const PointerRun& run) {
            if (run.kind == PointerKind::strong) {
                pool_.marks.reach(pool_.target_of(word_at(object + place)));
            }
        });
    }
}

Result<void> Examination::run()
{
    if (auto reserved = references_.reserve(pool_.memory.bytes() / granule_bytes, "references counted from scratch"); !reserved) {
        return reserved;
    }
    if (auto begun = pool_.marks.begin(pool_.memory.bytes()); !begun) {
        return begun;
    }
    pool_.counts.drain();
    check_root();
    visit_objects([&](std::uint64_t block, const Type& type) {
        check_object(block, type);
        count_pointers(block, type);
        if (type.is_pinned) {
            pool_.marks.reach(block);
        }
    });
    mark_reachable();
    std::uint64_t unreachable = 0;
    std::uint64_t unreachable_bytes = 0;
    visit_objects([&](std::uint64_t block, const Type& type) {
        check_count(block, type);
        if (!pool_.marks.is_marked(block)) {
            ++unreachable;
            unreachable_bytes += pool_.zones.bytes_of_block(block);
        }
    });
    pool_.marks.end();
    if (unreachable != 0 && pool_.damaged_objects == 0) {
        findings_.remark(fail(SP_E_POOL_CORRUPT, 0,
                              "{}: {} objects ({} KiB) cannot be reached from the root, and point at each other: nvm_collect frees them",
                              pool_.memory.medium().path(), unreachable, unreachable_bytes / kib)
                             .value());
    }
    return {};
}

}  // namespace

Result<void> examine_objects(BreezePool& pool, Findings& findings) { return Examination(pool, findings).run(); }

}  // namespace stillpoint::breeze
