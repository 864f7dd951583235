#include "engines/breeze/collection.hpp"

#include <mutex>

#include "core/canary.hpp"
#include "os/clock.hpp"
#include "os/thread_calls.hpp"

namespace stillpoint::breeze {

namespace {

constexpr std::uint64_t stop_attempt_ns = 20'000'000;
constexpr std::uint64_t pause_ns = 20'000'000;  ///< between attempts
constexpr std::uint64_t stop_deadline_ns = 10'000'000'000;
constexpr std::uint64_t objects_of_slice = 256;

class Collection {
public:
    explicit Collection(PoolParts& pool) noexcept : pool_(pool) {}

    [[nodiscard]] Result<CollectionFigures> run(TransactionGate& gate);

private:
    /// Follows the pointers of marked objects; false: there are none left.
    [[nodiscard]] bool mark_some();
    /// Pinned objects are roots.
    void reach_pinned();
    [[nodiscard]] Result<void> stop_and_mark_rest(TransactionGate& gate);
    [[nodiscard]] Result<void> sweep();
    void sweep_zone(std::uint64_t number);

    PoolParts& pool_;
    CollectionFigures figures_;
    ReservedList<std::uint64_t> held_;  ///< freed blocks
};

bool Collection::mark_some()
{
    // No object is freed by its count meanwhile.
    const std::lock_guard hold(pool_.counts.lock());
    for (std::uint64_t i = 0; i < objects_of_slice; ++i) {
        const std::uint64_t block = pool_.marks.take();
        if (block == 0) {
            return false;
        }
        const Type* const type = pool_.allocated(block) ? pool_.type_of(block) : nullptr;
        if (type == nullptr) {
            continue;
        }
        const std::byte* const object = pool_.bytes_of(block);
        type->visit_pointers(object, load_word(pool_.memory.object(block).size), [&](std::uint64_t place, const PointerRun& run) {
            if (run.kind == PointerKind::strong) {
                pool_.marks.reach(pool_.target_of(load_word_of_program(object + place)));
            }
        });
    }
    return true;
}

void Collection::reach_pinned()
{
    for (std::uint64_t number = 0; pool_.types.has_pinned() && number < pool_.zones.count(); ++number) {
        const std::lock_guard hold(pool_.counts.lock());
        pool_.zones.visit_blocks(number, [&](std::uint64_t block) {
            const Type* const type = pool_.allocated(block) ? pool_.type_of(block) : nullptr;
            if (type != nullptr && type->is_pinned) {
                pool_.marks.reach(block);
            }
        });
    }
}

Result<void> Collection::stop_and_mark_rest(TransactionGate& gate)
{
    const std::uint64_t give_up_ns = os::monotonic_ns() + stop_deadline_ns;
    const sync::Atomic<std::uint32_t> nobody_wakes{0};
    while (!gate.shut(stop_attempt_ns)) {
        if (os::monotonic_ns() >= give_up_ns) {
            return fail(SP_E_TIMED_OUT, 0, "{}: no collection: a transaction does not end", pool_.memory.medium().path());
        }
        os::futex_wait(nobody_wakes, 0, os::monotonic_ns() + pause_ns);
    }
    const std::uint64_t begin_ns = os::monotonic_ns();
    pool_.marks.reach(load_word(pool_.memory.header().root));
    while (mark_some()) {
    }
    figures_.stop_ns = os::monotonic_ns() - begin_ns;
    gate.open();
    return {};
}

void Collection::sweep_zone(std::uint64_t number)
{
    const std::lock_guard hold(pool_.counts.lock());
    pool_.zones.visit_blocks(number, [&](std::uint64_t block) {
        if (!pool_.allocated(block)) {
            return;
        }
        if (pool_.marks.is_marked(block)) {
            ++figures_.kept;
        } else if (pool_.counts.free_object(block, &held_)) {
            ++figures_.freed;
            figures_.bytes_freed += pool_.memory.object(block).size;
        }
    });
    pool_.counts.finish_frees();
}

Result<void> Collection::sweep()
{
    PoolHeader& header = pool_.memory.header();
    if (!is_removed(Canary::collection_mark)) {
        pool_.memory.persist_word(header.collecting, 1);
    }
    for (std::uint64_t number = 0; number < pool_.zones.count(); ++number) {
        sweep_zone(number);
    }
    pool_.counts.drain();  // Objects that lost their last references to freed ones.
    pool_.memory.persist_word(header.collecting, 0);
    for (const std::uint64_t block : held_) {
        pool_.zones.release(block);
    }
    return {};
}

Result<CollectionFigures> Collection::run(TransactionGate& gate)
{
    if (pool_.damaged_objects != 0) {
        return fail(SP_E_POOL_CORRUPT, 0, "{}: no collection: {} objects are damaged, and what they point to is not known",
                    pool_.memory.medium().path(), pool_.damaged_objects);
    }
    if (auto reserved = held_.reserve(pool_.zones.count() * zone_granules, "blocks that a collection frees"); !reserved) {
        return pass_on(reserved.error());
    }
    pool_.counts.drain();
    if (auto begun = pool_.marks.begin(pool_.memory.bytes()); !begun) {
        return pass_on(begun.error());
    }
    // A transaction that has not seen the mark of a collection has made its stores: from here on they are seen.
    static const bool has_membarrier = os::register_for_membarrier();
    if (has_membarrier) {
        os::membarrier();
    }
    pool_.marks.reach(load_word(pool_.memory.header().root));
    reach_pinned();
    while (mark_some()) {
    }
    if (auto stopped = stop_and_mark_rest(gate); !stopped) {
        pool_.marks.end();
        return pass_on(stopped.error());
    }
    // New objects are marked until the sweep has ended.
    auto swept = sweep();
    pool_.marks.end();
    if (!swept) {
        return pass_on(swept.error());
    }
    return figures_;
}

}  // namespace

Result<CollectionFigures> collect(PoolParts& pool, TransactionGate& gate) { return Collection(pool).run(gate); }

}  // namespace stillpoint::breeze
