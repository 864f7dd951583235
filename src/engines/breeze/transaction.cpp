#include "engines/breeze/transaction.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "core/canary.hpp"
#include "engines/breeze/messages.hpp"

namespace stillpoint::breeze {

namespace {

constexpr std::uint64_t sites_max = 64 * kib;
constexpr std::uint64_t objects_max = 4 * mib;  ///< that a transaction allocates, or frees
constexpr std::uint64_t versions_at_once = mib;

}  // namespace

Result<void> Transaction::prepare(PoolParts& pool, unsigned number)
{
    pool_ = &pool;
    number_ = number;
    const std::uint64_t blocks = std::min(pool.zones.count() * zone_granules, objects_max);
    const std::uint64_t bytes = UndoLog::space_bytes(pool.geometry) + 3 * ReservedList<std::uint64_t>::bytes_for(blocks) +
                                ReservedList<PointerChange>::bytes_for(blocks) + ReservedList<Difference>::bytes_for(2 * blocks) +
                                ReservedList<Site>::bytes_for(sites_max);
    if (auto reserved = space_.reserve(bytes, "the lists of a transaction"); !reserved) {
        return reserved;
    }
    log_.prepare(pool.memory, pool.geometry, pool.key, number, space_);
    for (ReservedList<std::uint64_t>* const list : {&allocated_, &freed_, &tagged_}) {
        list->borrow(space_, blocks);
    }
    changes_.borrow(space_, blocks);
    differences_.borrow(space_, 2 * blocks);
    sites_.borrow(space_, sites_max);
    return {};
}

void Transaction::begin() noexcept
{
    id_ = log_.next_transaction();
    owner_ = std::uint64_t{number_} << owner_log_shift | id_;
    log_.begin(id_);
}

void Transaction::end() noexcept
{
    allocated_.clear();
    freed_.clear();
    changes_.clear();
    sites_.clear();
    refused_ = false;
}

void Transaction::refuse(const Failure& failure) noexcept
{
    if (!refused_) {
        refused_ = true;
        refusal_ = failure;
    }
}

Result<void> Transaction::too_large()
{
    auto failure = fail(SP_E_TRANSACTION_TOO_LARGE, 0,
                        "{}: the transaction changes more than its log can hold ({} KiB): make smaller transactions, or a larger pool",
                        pool_->memory.medium().path(), pool_->geometry.log_bytes / kib);
    refuse(failure.value());
    return failure;
}

bool Transaction::is_freed(std::uint64_t block) const noexcept { return std::ranges::find(freed_, block) != freed_.end(); }

Result<void> Transaction::log_range(std::uint64_t offset, std::uint64_t size, CodePlace place, bool waits)
{
    const std::uint64_t block = pool_->zones.block_of(offset);
    Result<void> result;
    if (block == 0) {
        result = fail(SP_E_INVALID_ARGUMENT, 0, "{}: a store to the pool's own tables", describe(place).text);
    } else if (!pool_->allocated(block) || (!freed_.empty() && is_freed(block))) {
        const Type* const type = pool_->type_of(block);
        result = fail(SP_E_OBJECT_REFUSED, 0, "{}: a store to an object that was freed, at {:#x}: object {} of type {}",
                      describe(place).text, pool_->base() + offset, block, type != nullptr ? std::string_view(type->name) : "?");
    } else if (const std::uint64_t begin = block + object_header_bytes; offset < begin ||
                                                                        offset - begin > pool_->memory.object(block).size ||
                                                                        size > pool_->memory.object(block).size - (offset - begin)) {
        result = fail(SP_E_INVALID_ARGUMENT, 0, "{}: a store of {} bytes at {:#x}, beyond the object of {} bytes at {:#x}",
                      describe(place).text, size, pool_->base() + offset, pool_->memory.object(block).size, pool_->base() + begin);
    }
    if (!result) {
        refuse(result.error());
        return result;
    }
    sites_.push_back({offset, size, place});
    if (!owns(block) && !log_.log(offset, size)) {
        return too_large();
    }
    if (waits) {
        log_.wait();
    }
    return {};
}

std::uint64_t Transaction::next_version() noexcept
{
    const std::uint64_t version = pool_->next_version.fetch_add(1, std::memory_order_relaxed);
    if (version >= pool_->versions_end.load(std::memory_order_acquire)) {
        const std::lock_guard hold(pool_->versions_lock);
        if (version >= pool_->versions_end.load(std::memory_order_relaxed)) {
            if (!is_removed(Canary::reserved_versions)) {
                pool_->memory.persist_word(pool_->memory.header().versions_reserved, version + versions_at_once);
            }
            pool_->versions_end.store(version + versions_at_once, std::memory_order_release);
        }
    }
    return version;
}

Result<std::byte*> Transaction::allocate(std::uint32_t type, std::uint64_t size, CodePlace place)
{
    const auto known = pool_->types.find_or_add(type);
    if (!known) {
        return pass_on(known.error());
    }
    if (!(*known)->allows_size(size)) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "an object of type {} has {} bytes or a multiple of that, not {}", (*known)->name,
                    (*known)->size, size);
    }
    if (allocated_.size() == allocated_.capacity()) {
        return pass_on(too_large().error());
    }
    bool is_large = false;
    std::uint64_t block = pool_->zones.allocate(cache_, size, is_large);
    if (block == 0) {  // Objects that wait to be freed may be enough.
        pool_->counts.drain();
        block = pool_->zones.allocate(cache_, size, is_large);
    }
    if (block == 0) {
        return fail(SP_E_POOL_FULL, 0, "{}: no room for an object of {} bytes: make a larger pool", pool_->memory.medium().path(), size);
    }
    const std::uint64_t version = next_version();
    if (pool_->marks.is_active()) {  // Before a collection can take the block for an object that nothing leads to.
        pool_->marks.mark(block);
    }
    ObjectHeader& header = pool_->memory.object(block);
    std::byte* const object = pool_->bytes_of(block);
    // A collection may still look at the object that was here.
    store_word(header.owner, owner_);
    store_word(header.counts, std::uint64_t{type} << type_shift);
    store_word(header.version, version);
    store_word(header.size, size);
    store_word(header.generation, pool_->generation | header_check(pool_->key, block, header) << header_check_shift);
    const std::uint64_t granules = pool_->zones.bytes_of_block(block) / granule_bytes;
    if (is_large) {  // The object's bytes lie where other zones have their first header.
        store_word(header.head, head_of(pool_->key, block, {BlockState::allocated, granules}));
        if (!is_removed(Canary::large_object_header)) {
            pool_->memory.persist(&header, sizeof header);
        }
        std::memset(object, 0, size);
    } else {
        std::memset(object, 0, size);
        store_word(header.head, head_of(pool_->key, block, {BlockState::allocated, granules}));
    }
    allocated_.push_back(block);
    sites_.push_back({block + object_header_bytes, size, place});
    return object;
}

Result<void> Transaction::free_block(std::uint64_t block)
{
    if (!pool_->allocated(block) || is_freed(block)) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "{}: no object begins at {:#x}, or it is freed already", pool_->memory.medium().path(),
                    pool_->base() + block + object_header_bytes);
    }
    pool_->counts.drain();
    if (auto found = find_changes(Check::none); !found) {
        return found;
    }
    std::uint32_t references = references_in(load_word(pool_->memory.object(block).counts));
    for (const PointerChange& change : changes_) {
        references += change.new_offset == block ? 1u : 0u;
        references -= change.old_offset == block ? 1u : 0u;
    }
    if (references != 0) {
        return fail(SP_E_OBJECT_REFUSED, 0, "{}: the object at {:#x} is live: {} pointers lead to it", pool_->memory.medium().path(),
                    pool_->base() + block + object_header_bytes, references);
    }
    if ((!owns(block) && !log_.log(block, sizeof(std::uint64_t))) || !freed_.push_back(block)) {
        return too_large();
    }
    log_.wait();
    return {};
}

Result<void> Transaction::set_root(std::uint64_t block)
{
    if (block != 0 && (!pool_->allocated(block) || is_freed(block))) {
        return fail(SP_E_INVALID_ARGUMENT, 0, "{}: the root must be an object of the pool", pool_->memory.medium().path());
    }
    if (!log_.log(offsetof(PoolHeader, root), sizeof(std::uint64_t))) {
        return too_large();
    }
    log_.wait();
    store_word(pool_->memory.header().root, block);
    return {};
}

void Transaction::write_back_everything() noexcept
{
    const PoolMemory& memory = pool_->memory;
    LinesToWriteBack lines(memory);
    if (!is_removed(Canary::commit_stores)) {
        log_.visit([&](const LoggedRange& range) { lines.add(&memory.at<std::byte>(range.offset), range.size); });
    }
    if (is_removed(Canary::commit_objects)) {
        return;
    }
    for (const std::uint64_t block : allocated_) {
        lines.add(&memory.object(block), object_header_bytes + memory.object(block).size);
    }
}

bool Transaction::settle_changes() noexcept
{
    differences_.clear();
    for (const PointerChange& change : changes_) {
        if (change.new_offset != 0) {
            differences_.push_back({change.new_offset, 1});
        }
        if (change.old_offset != 0) {
            differences_.push_back({change.old_offset, -1});
        }
    }
    std::ranges::sort(differences_, {}, &Difference::block);
    Difference* end = differences_.begin();  // One for each block from here on.
    for (const Difference& difference : differences_) {
        if (end != differences_.begin() && end[-1].block == difference.block) {
            end[-1].references += difference.references;
        } else {
            *end++ = difference;
        }
    }
    const std::span<const Difference> of_blocks(differences_.begin(), end);
    for (const auto& [block, references] : of_blocks) {
        if (references > 0 && !is_object(block)) {
            return false;
        }
    }
    changes_.clear();
    for (const auto& [block, difference] : of_blocks) {
        std::int64_t references = difference;
        if (owns(block)) {  // Until the commit no other thread counts them.
            std::uint64_t& counts = pool_->memory.object(block).counts;
            if (!is_removed(Canary::new_references)) {
                store_word(counts, counts + static_cast<std::uint64_t>(references));
            }
            continue;
        }
        for (; references > 0; --references) {
            changes_.push_back({0, block});
        }
        for (; references < 0; ++references) {
            changes_.push_back({block, 0});
        }
    }
    return true;
}

Result<void> Transaction::find_and_settle_changes()
{
    const Check check = freed_.empty() ? Check::place : Check::object;
    auto result = find_changes(check);
    if (result && pool_->marks.is_active()) {
        if (check == Check::place) {  // A collection wants those that cancel out, too.
            result = find_changes(Check::object);
        }
        if (result) {
            reach_changed();
        }
    }
    if (result && !settle_changes()) {
        result = find_changes(Check::object);  // For the message.
        return result ? fail(SP_E_OBJECT_REFUSED, 0,
                             "{}: a pointer leads to an object that another thread is making; the transaction is "
                             "rolled back",
                             pool_->memory.medium().path())
                      : result;
    }
    return result;
}

Result<void> Transaction::commit(bool waits)
{
    Result<void> result;
    if (refused_) {
        result = pass_on(refusal_);
    } else if (log_.is_empty() && allocated_.empty()) {
        end();
        return {};
    } else {
        result = find_and_settle_changes();
        if (result && changes_.size() > pool_->activations[number_].changes_max()) {
            result = too_large();
        }
    }
    if (!result) {
        roll_back();
        return result;
    }
    ActivationLog& activation = pool_->activations[number_];
    while (!changes_.empty() && !activation.append(id_, changes_.view())) {
        pool_->counts.pass();
    }
    for (const std::uint64_t block : freed_) {
        const std::uint64_t granules = pool_->zones.bytes_of_block(block) / granule_bytes;
        store_word(pool_->memory.object(block).head, head_of(pool_->key, block, {BlockState::free, granules}));
    }
    write_back_everything();
    if (!is_removed(Canary::typed_commit_fence)) {
        pool_->memory.fence();
    }
    log_.finish(id_);
    add(figures_.committed, 1);
    add(figures_.objects_made, allocated_.size());
    if (!changes_.empty()) {
        activation.committed(id_);
        pool_->counts.note_record();
    }
    for (const std::uint64_t block : freed_) {
        pool_->counts.release_later(block);
    }
    end();
    return waits ? pool_->memory.wait_durable() : Result<void>{};
}

void Transaction::reach_changed() noexcept
{
    for (const PointerChange& change : changes_) {
        pool_->marks.reach(change.old_offset);
        pool_->marks.reach(change.new_offset);
    }
}

void Transaction::roll_back() noexcept
{
    if (log_.is_empty() && allocated_.empty()) {
        end();
        return;
    }
    static_cast<void>(find_changes(Check::none));
    for (const std::uint64_t block : allocated_) {
        if (is_removed(Canary::aborted_objects)) {
            break;
        }
        const std::uint64_t granules = pool_->zones.bytes_of_block(block) / granule_bytes;
        ObjectHeader& header = pool_->memory.object(block);
        store_word(header.head, head_of(pool_->key, block, {BlockState::free, granules}));
        pool_->memory.write_back(&header.head, sizeof header.head);
    }
    log_.roll_back();
    if (pool_->marks.is_active()) {  // After the old pointers are back: a collection that begins later finds them itself.
        reach_changed();
    }
    log_.finish(id_);
    add(figures_.rolled_back, 1);
    add(figures_.objects_made, allocated_.size());
    for (const std::uint64_t block : allocated_) {
        pool_->zones.release(block);
    }
    end();
}

}  // namespace stillpoint::breeze
