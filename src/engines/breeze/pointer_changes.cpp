// Algorithm 2 [Breeze, thesis §3.2.7]: the pointers that a transaction has changed, found by comparing what it has logged with what is
// there now; and what new pointers may lead to [§3.2.6].

#include <algorithm>
#include <cstring>

#include "engines/breeze/messages.hpp"
#include "engines/breeze/object_headers.hpp"
#include "engines/breeze/transaction.hpp"

namespace stillpoint::breeze {

namespace {

constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);

bool has_tags(const Type& type) noexcept
{
    for (const PointerRun& run : type.runs) {
        if (run.tag_bytes != 0) {
            return true;
        }
    }
    return false;
}

}  // namespace

bool Transaction::owner_has_finished(std::uint64_t block) const noexcept
{
    const std::uint64_t owner = load_word(pool_->memory.object(block).owner);
    const std::uint64_t number = owner >> owner_log_shift;
    if (owner == owner_ || number >= logs_max) {
        return owner == owner_;
    }
    const std::uint64_t id = owner & ((std::uint64_t{1} << owner_log_shift) - 1);
    return id <= load_word(pool_->activations[number].header().finished);
}

Result<void> Transaction::check_target(std::uint64_t block, std::uint64_t place, const PointerRun& run, std::uint64_t pointer)
{
    const std::uint64_t target = pool_->target_of(pointer);
    if (leads_into(pointer, target) && is_object(target) && !is_freed(target)) {
        return {};
    }
    CodePlace where;
    const std::uint64_t offset = block + object_header_bytes + place;
    for (const Site& site : sites_) {  // The last one that has the pointer.
        if (site.offset <= offset && offset < site.offset + site.size) {
            where = site.place;
        }
    }
    const Type* const type = pool_->types.find(type_in(load_word(pool_->memory.object(block).counts)));
    const std::string_view structure = type != nullptr ? std::string_view(type->name) : "?";
    if (target == 0) {
        const bool is_durable = stillpoint_is_persistent(reinterpret_cast<const void*>(pointer));
        return fail(SP_E_NOT_DURABLE_ADDRESS, 0,
                    "{}.{} gets the pointer {:#x}, which leads {}; stored at {}; the transaction is rolled back", structure, run.name,
                    pointer, is_durable ? "into another pool, or to no object" : "to memory that is not durable", describe(where).text);
    }
    return fail(SP_E_OBJECT_REFUSED, 0,
                "{}.{} gets the pointer {:#x}, where no object is: it was freed, or the transaction that allocates it has not committed; "
                "stored at {}; the transaction is rolled back",
                structure, run.name, pointer, describe(where).text);
}

Result<void> Transaction::add_change(std::uint64_t block, std::uint64_t place, const PointerRun& run, std::uint64_t before,
                                     std::uint64_t after, Check check)
{
    if (before == after) {
        return {};
    }
    const bool is_strong = run.kind == PointerKind::strong;
    const std::uint64_t target = pool_->target_of(after);
    const bool is_placed = after == 0 || leads_into(after, target);
    if (check == Check::place && is_strong && is_placed && last_.goes_on) {
        // Elements that were moved: each place gets what its neighbour had, and the two changes are one.
        if (after == last_.before) {
            changes_.back().old_offset = pool_->target_of(before);
            last_.before = before;
            return {};
        }
        if (before == last_.after) {
            changes_.back().new_offset = target;
            last_.after = after;
            return {};
        }
    }
    if (after != 0 && (check == Check::object || (check == Check::place && !(is_strong && is_placed)))) {
        if (auto fits = check_target(block, place, run, after); !fits) {
            return fits;
        }
    }
    const PointerChange change{pool_->target_of(before), target};
    if (is_strong && change.old_offset != change.new_offset) {
        if (!changes_.push_back(change)) {
            return too_large();
        }
        last_ = {true, before, after};
    }
    return {};
}

Result<void> Transaction::find_changes_in(const LoggedRange& range, Check check)
{
    if (range.offset == offsetof(PoolHeader, root)) {
        const PointerChange change{word_at(range.old_bytes), load_word(pool_->memory.header().root)};
        if (change.old_offset != change.new_offset && !changes_.push_back(change)) {
            return too_large();
        }
        last_.goes_on = false;
        return {};
    }
    const std::uint64_t block = pool_->zones.block_of(range.offset);
    const Type* const type = pool_->type_of(block);
    if (type == nullptr || range.offset < block + object_header_bytes) {
        return {};  // A freed block's head.
    }
    if (has_tags(*type) && std::find(tagged_.begin(), tagged_.end(), block) == tagged_.end()) {
        tagged_.push_back(block);
    }
    const std::byte* const object = pool_->bytes_of(block);
    const std::uint64_t begin = range.offset - block - object_header_bytes;
    Result<void> result;
    type->visit_pointers(
        object, pool_->memory.object(block).size, begin, begin + range.size, [&](std::uint64_t place, const PointerRun& run) {
            if (result && run.tag_bytes == 0) {
                result = add_change(block, place, run, word_at(range.old_bytes + (place - begin)), word_at(object + place), check);
            }
        });
    return result;
}

Result<void> Transaction::find_changes_of_tagged(std::uint64_t block, Check check)
{
    const Type* const type = pool_->type_of(block);
    const std::uint64_t size = pool_->memory.object(block).size;
    os::ReservedArray<std::byte> copies;
    if (auto reserved = copies.reserve(3 * size, "an object as it was and is"); !reserved) {
        return reserved;
    }
    std::byte* const now = copies.data();
    std::byte* const before = now + size;
    std::byte* const logged = before + size;
    const std::byte* const object = pool_->bytes_of(block);
    const std::uint64_t begin = block + object_header_bytes;
    const auto visit_logged = [&](auto&& visit) {
        log_.visit([&](const LoggedRange& range) {
            if (range.offset >= begin && range.offset < begin + size) {
                visit(range.offset - begin, range.old_bytes, std::min(range.size, begin + size - range.offset));
            }
        });
    };
    visit_logged([&](std::uint64_t place, const std::byte*, std::uint64_t bytes) { std::memset(logged + place, 1, bytes); });
    // Pointers of which this transaction has logged the word, or the tag's, and their tags. Other words are other threads', which may be
    // storing there: they stay zero in both copies.
    const auto copy_words = [&](std::uint64_t place, std::uint64_t bytes) {
        const std::uint64_t first = place / word_bytes * word_bytes;
        const std::uint64_t end = std::min(round_up(place + bytes, word_bytes), size);
        std::memcpy(now + first, object + first, end - first);
        std::memcpy(before + first, now + first, end - first);
    };
    type->visit_tagged(size, [&](std::uint64_t place, std::uint64_t tag_place, const PointerRun& run) {
        const auto is_logged = [&](std::uint64_t offset) { return logged[offset] != std::byte{0}; };
        if (is_logged(place) || is_logged(place + word_bytes - 1) || is_logged(tag_place)) {
            copy_words(place, word_bytes);
            copy_words(tag_place, run.tag_bytes);
        }
    });
    visit_logged(
        [&](std::uint64_t place, const std::byte* old_bytes, std::uint64_t bytes) { std::memcpy(before + place, old_bytes, bytes); });
    Result<void> result;
    type->visit_pointers(before, size, [&](std::uint64_t place, const PointerRun& run) {
        if (result && run.tag_bytes != 0) {
            const std::uint64_t after = type->has(now, place, run) ? word_at(now + place) : 0;
            result = add_change(block, place, run, word_at(before + place), after, check);
        }
    });
    type->visit_pointers(now, size, [&](std::uint64_t place, const PointerRun& run) {
        if (result && run.tag_bytes != 0 && !type->has(before, place, run)) {
            result = add_change(block, place, run, 0, word_at(now + place), check);
        }
    });
    return result;
}

Result<void> Transaction::add_all_pointers(std::uint64_t block, Check check)
{
    const Type* const type = pool_->type_of(block);
    const std::byte* const object = pool_->bytes_of(block);
    Result<void> result;
    if (type != nullptr) {
        const bool is_new = owns(block);
        type->visit_pointers(object, pool_->memory.object(block).size, [&](std::uint64_t place, const PointerRun& run) {
            const std::uint64_t pointer = word_at(object + place);
            if (result && pointer != 0) {
                result = is_new ? add_change(block, place, run, 0, pointer, check) : add_change(block, place, run, pointer, 0, Check::none);
            }
        });
    }
    return result;
}

Result<void> Transaction::find_changes(Check check)
{
    Result<void> result;
    changes_.clear();
    last_.goes_on = false;
    tagged_.clear();
    log_.visit([&](const LoggedRange& range) {
        if (result) {
            result = find_changes_in(range, check);
        }
    });
    for (const std::uint64_t block : tagged_) {
        result = result ? find_changes_of_tagged(block, check) : result;
    }
    for (const std::uint64_t block : allocated_) {
        if (result && (freed_.empty() || !is_freed(block))) {
            result = add_all_pointers(block, check);
        }
    }
    for (const std::uint64_t block : freed_) {
        if (result && !owns(block)) {
            result = add_all_pointers(block, Check::none);
        }
    }
    return result;
}

}  // namespace stillpoint::breeze
