#include "engines/breeze/sound_objects.hpp"

#include <algorithm>

#include "core/formatted.hpp"
#include "engines/breeze/object_view.hpp"

namespace stillpoint::breeze {

namespace {

constexpr std::uint64_t id_mask = (std::uint64_t{1} << owner_log_shift) - 1;
constexpr const char* is_free = "";

/// The header is that of an allocated object, whatever its transaction.
bool has_sound_header(const PoolParts& pool, std::uint64_t block) noexcept
{
    return pool.allocated(block) && pool.type_of(block) != nullptr;
}

}  // namespace

std::uint64_t SoundObjects::target_of(std::uint64_t pointer) const noexcept
{
    const std::uint64_t target = pool_.target_of(pointer);
    const bool leads_into_it = target != 0 && has(target) && pointer - pool_.base() >= target + object_header_bytes;
    return leads_into_it ? target : 0;
}

std::uint64_t SoundObjects::next_version() const noexcept
{
    constexpr std::uint64_t plausible = std::uint64_t{1} << 62;  // The word that says it has no checksum.
    const std::uint64_t said = pool_.memory.header().versions_reserved;
    return said < plausible ? std::max(said, newest_version_ + 1) : newest_version_ + 1;
}

void SoundObjects::find_newest_transactions()
{
    for (std::uint64_t number = 0; number < pool_.zones.count(); ++number) {
        pool_.zones.visit_blocks(number, [&](std::uint64_t block) {
            const std::uint64_t owner = pool_.memory.object(block).owner;
            if (const std::uint64_t log = owner >> owner_log_shift; has_sound_header(pool_, block) && log < logs_max) {
                newest_[log] = std::max(newest_[log], owner & id_mask);
            }
        });
    }
}

SoundObjects::Outcome SoundObjects::outcome_of(const ObjectHeader& header) const noexcept
{
    const std::uint64_t log = header.owner >> owner_log_shift;
    const std::uint64_t id = header.owner & id_mask;
    if (pool_.was_closed) {
        return Outcome::ended;
    }
    if (log >= logs_max) {
        return Outcome::unknown;
    }
    const std::uint64_t finished = pool_.activations[log].header().finished - 1;  // The opening has raised it.
    if (id <= finished) {
        return Outcome::ended;
    }
    // A log has one unfinished transaction at a time. Later ones contradict its header, or that of the object.
    if (id == finished + 1) {
        // References are counted when a transaction has ended: a count contradicts it, too.
        return newest_[log] == id && references_in(header.counts) == 0 ? Outcome::unfinished : Outcome::unknown;
    }
    return id < newest_[log] ? Outcome::ended : Outcome::unknown;
}

const char* SoundObjects::verdict(std::uint64_t block) const noexcept
{
    const ObjectHeader& header = pool_.memory.object(block);
    BlockHead head{};
    if (header.head == 0) {
        return is_free;
    }
    const std::uint64_t granules = pool_.zones.bytes_of_block(block) / granule_bytes;
    if (!read_head(pool_.key, block, header.head, head) || (head.state == BlockState::allocated && head.granules != granules)) {
        return "its header is damaged";
    }
    if (head.state == BlockState::free) {
        return is_free;
    }
    if (!is_sound(pool_.key, block, granules, header)) {
        return "its header is damaged";
    }
    const Type* const type = pool_.types.find(type_in(header.counts));
    if (type == nullptr) {
        return "the description of its type is lost";
    }
    if (!type->allows_size(header.size) || header.version == 0) {
        return "its header is one that no object of its type has";
    }
    if (generation_in(header.generation) != pool_.generation) {
        return "which addresses its pointers have is lost";
    }
    switch (outcome_of(header)) {
    case Outcome::unfinished: return is_free;
    case Outcome::unknown: return "whether its transaction had ended is lost";
    case Outcome::ended: break;
    }
    return nullptr;
}

void SoundObjects::count_pointers(std::uint64_t block)
{
    const Type& type = *pool_.type_of(block);
    const std::byte* const object = pool_.bytes_of(block);
    const std::uint64_t size = pool_.memory.object(block).size;
    type.visit_pointers(object, size, [&](std::uint64_t place, const PointerRun& run) {
        const std::uint64_t pointer = word_at(object + place);
        if (pointer == 0 || run.kind == PointerKind::weak) {
            return;
        }
        if (const std::uint64_t target = target_of(pointer); target != 0) {
            ++references_[target / granule_bytes];
            return;
        }
        if (const std::uint64_t lost = pool_.target_of(pointer); lost != 0) {
            ++references_[lost / granule_bytes];
        }
        report_.cleared.push_back({block, 0, type.name, name_of_pointer(type, size, place, run), place});
    });
}

void SoundObjects::find_root()
{
    const std::uint64_t root = load_word(pool_.memory.header().root);
    report_.root_before = root;
    if (root == 0 || root >= pool_.memory.bytes() || pool_.zones.block_of(root) != root || !has(root)) {
        report_.root_is_lost = root != 0;
        return;
    }
    // The root counts as a reference to its object. If that object has none left for it, and another one has, or one that is lost may have
    // had, the word was changed.
    bool leads_elsewhere = false;
    if (counted(root) <= references(root)) {
        leads_elsewhere = !report_.lost.empty();
        visit([&](std::uint64_t block) { leads_elsewhere = leads_elsewhere || counted(block) > references(block); });
    }
    report_.root_is_lost = leads_elsewhere;
    if (!leads_elsewhere) {
        root_ = root;
        root_is_counted_ = counted(root) > references(root);
        ++references_[root / granule_bytes];
    }
}

/// An opening after a crash would free them: objects that nothing leads to any more, and what only they lead to. The counts have no
/// checksum: where the root's word is not confirmed by its object's count, or an object or a pointer is lost, one that is in use may look
/// dead, and all are kept.
void SoundObjects::leave_out_dead()
{
    if (pool_.was_closed || !root_is_counted_ || !report_.lost.empty() || !report_.cleared.empty()) {
        return;
    }
    std::vector<std::uint64_t> dead;
    const auto is_dead = [&](std::uint64_t block) {
        return counted(block) == 0 && references(block) == 0 && block != report_.root_before && !pool_.type_of(block)->is_pinned;
    };
    visit([&](std::uint64_t block) {
        if (is_dead(block)) {
            dead.push_back(block);
        }
    });
    while (!dead.empty()) {
        const std::uint64_t block = dead.back();
        dead.pop_back();
        kept_[block / granule_bytes] = 0;
        std::erase_if(report_.cleared, [block](const auto& reference) { return reference.object_before == block; });
        const std::byte* const object = pool_.bytes_of(block);
        pool_.type_of(block)->visit_pointers(object, pool_.memory.object(block).size, [&](std::uint64_t place, const PointerRun& run) {
            const std::uint64_t target = run.kind == PointerKind::strong ? target_of(word_at(object + place)) : 0;
            if (target == 0 || target == block) {
                return;
            }
            --references_[target / granule_bytes];
            std::uint64_t& counts = pool_.memory.object(target).counts;
            counts -= references_in(counts) != 0 ? 1U : 0U;
            if (is_dead(target)) {
                dead.push_back(target);
            }
        });
    }
}

void SoundObjects::check_count(std::uint64_t block)
{
    const bool some_are_gone = !report_.lost.empty() || !report_.cleared.empty() || report_.root_is_lost;
    const std::uint64_t said = counted(block);
    const std::uint64_t found = references(block);
    if (some_are_gone ? found > said : found != said) {
        report_.doubtful.push_back({block, 0, pool_.type_of(block)->name, said, found});
    }
}

Result<void> SoundObjects::find()
{
    const std::uint64_t granules = pool_.memory.bytes() / granule_bytes;
    if (auto reserved = kept_.reserve(granules, "the sound objects of a pool"); !reserved) {
        return reserved;
    }
    if (auto reserved = references_.reserve(granules, "references counted from scratch"); !reserved) {
        return reserved;
    }
    report_.was_closed = pool_.was_closed;
    find_newest_transactions();
    for (std::uint64_t number = 0; number < pool_.zones.count(); ++number) {
        pool_.zones.visit_blocks(number, [&](std::uint64_t block) {
            const char* const why = verdict(block);
            if (why != nullptr && *why != '\0') {
                report_.lost.push_back({block, 0, why});
            }
            if (why == nullptr) {
                kept_[block / granule_bytes] = 1;
                newest_version_ = std::max(newest_version_, pool_.memory.object(block).version);
            }
        });
    }
    visit([&](std::uint64_t block) { count_pointers(block); });
    find_root();
    leave_out_dead();
    visit([&](std::uint64_t block) { check_count(block); });
    for (auto& lost : report_.lost) {
        lost.references = references(lost.place_before);
    }
    return {};
}

}  // namespace stillpoint::breeze
