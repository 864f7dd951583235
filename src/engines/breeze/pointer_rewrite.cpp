#include "engines/breeze/pointer_rewrite.hpp"

#include <array>
#include <atomic>
#include <cstring>

#include "arch/checksum.hpp"
#include "core/canary.hpp"
#include "engines/breeze/zone_team.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::breeze {

namespace {

constexpr std::uint64_t rewrite_seed = 0x4252454552575254;

/// Rewrites objects, with one rewrite record of the pool: words of several objects are made durable together.
class Rewriter {
public:
    [[nodiscard]] Result<void> prepare(PoolParts& pool, unsigned number)
    {
        pool_ = &pool;
        for (std::size_t i = 0; i < records_.size(); ++i) {
            records_[i] = &pool.memory.at<RewriteRecord>(pool.geometry.rewrites_offset + number * rewrite_bytes + i * rewrite_record_bytes);
        }
        seed_ = mix64(pool.key ^ rewrite_seed, number);
        record_ = records_[0];
        for (RewriteRecord* const record : records_) {
            if (is_valid(*record) && record->number >= number_) {
                newest_ = record;
                number_ = record->number;
                record_ = record == records_[0] ? records_[1] : records_[0];
            }
        }
        return new_values_.reserve(rewrite_words_max, "rewritten pointers");
    }
    /// Undoes words that were logged and perhaps changed. Errors: pool_corrupt.
    [[nodiscard]] Result<void> recover();
    /// The pointers of an object get the base of that generation.
    void rewrite(std::uint64_t block, std::uint64_t generation);
    /// Makes durable what was rewritten.
    void flush() noexcept;
    [[nodiscard]] std::uint64_t changed() const noexcept { return changed_; }

private:
    [[nodiscard]] static RedoWord* words_of(RewriteRecord& record) noexcept { return reinterpret_cast<RedoWord*>(&record + 1); }
    [[nodiscard]] std::uint64_t checksum_of(RewriteRecord& record) const noexcept
    {
        const std::uint64_t head = checksum64(&record.count, offsetof(RewriteRecord, applied) - offsetof(RewriteRecord, count), seed_);
        const std::uint64_t sum = checksum64(words_of(record), record.count * sizeof(RedoWord), head);
        return sum == 0 ? 1 : sum;
    }
    [[nodiscard]] bool is_valid(RewriteRecord& record) const noexcept
    {
        return record.checksum != 0 && record.count <= rewrite_words_max && checksum_of(record) == record.checksum;
    }
    [[nodiscard]] std::uint64_t base_of(std::uint64_t generation) const noexcept
    {
        return pool_->memory.header().bases[generation % bases_max];
    }
    void add(std::uint64_t& word, std::uint64_t value) noexcept;
    void rewrite_in_parts(std::uint64_t block, std::uint64_t generation, std::uint64_t done);

    PoolParts* pool_ = nullptr;
    std::array<RewriteRecord*, 2> records_{};
    RewriteRecord* record_ = nullptr;  ///< the next one; the other is valid until this one is
    RewriteRecord* newest_ = nullptr;  ///< that is there at opening
    std::uint64_t number_ = 0;
    std::uint64_t seed_ = 0;
    std::uint64_t count_ = 0;
    os::ReservedArray<std::uint64_t> new_values_;
    std::uint64_t object_ = 0;  ///< of which the words are a part
    std::uint64_t generation_ = 0;
    std::uint64_t done_before_ = 0;
    std::uint64_t done_after_ = 0;
    std::uint64_t changed_ = 0;
};

void Rewriter::add(std::uint64_t& word, std::uint64_t value) noexcept
{
    words_of(*record_)[count_] = {pool_->memory.offset_of(&word), word};
    new_values_[count_++] = value;
}

void Rewriter::flush() noexcept
{
    if (count_ == 0) {
        return;
    }
    const PoolMemory& memory = pool_->memory;
    record_->count = count_;
    record_->generation = generation_;
    record_->object = object_;
    record_->done_before = done_before_;
    record_->done_after = done_after_;
    record_->number = ++number_;
    record_->checksum = checksum_of(*record_);
    if (!is_removed(Canary::rewrite_fence)) {
        memory.persist(record_, sizeof *record_ + count_ * sizeof(RedoWord));
    }
    LinesToWriteBack lines(memory);
    for (std::uint64_t i = 0; i < count_; ++i) {
        auto& word = memory.at<std::uint64_t>(words_of(*record_)[i].offset);
        store_word(word, new_values_[i]);
        lines.add(&word, sizeof word);
    }
    lines.flush();
    if (!is_removed(Canary::rewrite_words)) {
        memory.fence();
    }
    memory.persist_word(record_->applied, record_->checksum);
    record_ = record_ == records_[0] ? records_[1] : records_[0];
    count_ = 0;
}

void Rewriter::rewrite(std::uint64_t block, std::uint64_t generation)
{
    ObjectHeader& header = pool_->memory.object(block);
    const Type* const type = pool_->type_of(block);
    const std::uint64_t before = generation_in(header.generation);
    std::byte* const object = pool_->bytes_of(block);
    const std::uint64_t old_base = base_of(before);
    const std::uint64_t difference = base_of(generation) - old_base;
    std::uint64_t pointers = 0;
    type->visit_pointers(object, header.size, [&](std::uint64_t, const PointerRun&) { ++pointers; });
    if (pointers + 1 > rewrite_words_max) {
        flush();
        rewrite_in_parts(block, generation, 0);
        return;
    }
    if (pointers + 1 > rewrite_words_max - count_) {
        flush();
    }
    generation_ = generation;
    type->visit_pointers(object, header.size, [&](std::uint64_t place, const PointerRun&) {
        auto& word = *reinterpret_cast<std::uint64_t*>(object + place);
        if (word - old_base < pool_->memory.bytes() && difference != 0) {
            add(word, word + difference);
            ++changed_;
        }
    });
    if (!is_removed(Canary::rewrite_generation)) {
        add(header.generation, (header.generation & ~std::uint64_t{0xffffffff}) | generation);
    }
}

void Rewriter::rewrite_in_parts(std::uint64_t block, std::uint64_t generation, std::uint64_t done)
{
    ObjectHeader& header = pool_->memory.object(block);
    std::byte* const object = pool_->bytes_of(block);
    const std::uint64_t old_base = base_of(generation_in(header.generation));
    const std::uint64_t difference = base_of(generation) - old_base;
    generation_ = generation;
    object_ = block;
    done_before_ = done;
    std::uint64_t index = 0;
    pool_->type_of(block)->visit_pointers(object, header.size, [&](std::uint64_t place, const PointerRun&) {
        if (index++ < done) {
            return;
        }
        auto& word = *reinterpret_cast<std::uint64_t*>(object + place);
        if (word - old_base < pool_->memory.bytes()) {
            add(word, word + difference);
            ++changed_;
        }
        done_after_ = index;
        if (count_ == rewrite_words_max - 1) {
            flush();
            done_before_ = index;
        }
    });
    add(header.generation, (header.generation & ~std::uint64_t{0xffffffff}) | generation);
    flush();
    object_ = 0;
    done_before_ = 0;
    done_after_ = 0;
}

Result<void> Rewriter::recover()
{
    const PoolMemory& memory = pool_->memory;
    if (newest_ == nullptr) {
        return {};
    }
    RewriteRecord& record = *newest_;
    const auto damaged = [&] {
        return fail(SP_E_POOL_CORRUPT, 0, "{}: a rewrite record names bytes outside of the pool's objects", memory.medium().path());
    };
    if (record.applied != record.checksum && !is_removed(Canary::rewrite_undo)) {
        for (std::uint64_t i = 0; i < record.count; ++i) {
            const RedoWord& word = words_of(record)[i];
            if (word.offset % sizeof(std::uint64_t) != 0 || word.offset >= memory.bytes() || word.offset < pool_->geometry.zones_offset) {
                return damaged();
            }
        }
        for (std::uint64_t i = 0; i < record.count; ++i) {
            auto& word = memory.at<std::uint64_t>(words_of(record)[i].offset);
            store_word(word, words_of(record)[i].value);
            memory.write_back(&word, sizeof word);
        }
        memory.fence();
    }
    const PoolHeader& header = memory.header();
    const bool is_part = record.object != 0 && record.generation > header.oldest_generation && record.generation <= header.generation;
    if (is_part) {
        if (record.object % granule_bytes != 0 || record.object < pool_->geometry.zones_offset || record.object >= memory.bytes() ||
            pool_->zones.block_of(record.object) != record.object || !pool_->allocated(record.object) ||
            pool_->type_of(record.object) == nullptr) {
            return damaged();
        }
        if (generation_in(memory.object(record.object).generation) < record.generation) {
            // This record is the newest one until the first one of the rest is durable: it may be undone once more.
            rewrite_in_parts(record.object, record.generation, record.applied == record.checksum ? record.done_after : record.done_before);
            return {};
        }
    }
    if (record.applied != record.checksum) {
        memory.persist_word(record.applied, record.checksum);
    }
    return {};
}

/// All objects get that generation. Errors: no_memory, pool_corrupt.
Result<std::uint64_t> rewrite_all(PoolParts& pool, std::uint64_t generation, unsigned threads)
{
    std::array<Rewriter, rewriters_max> rewriters;
    for (unsigned number = 0; number < threads; ++number) {
        if (auto prepared = rewriters[number].prepare(pool, number); !prepared) {
            return pass_on(prepared.error());
        }
    }
    const std::uint64_t oldest = pool.memory.header().oldest_generation;
    std::atomic<std::uint64_t> damaged{0};
    for_each_zone(pool.zones.count(), threads, [&](unsigned worker, std::uint64_t number) {
        pool.zones.visit_blocks(number, [&](std::uint64_t block) {
            if (!pool.allocated(block) || pool.type_of(block) == nullptr) {
                return;
            }
            const std::uint64_t before = generation_in(pool.memory.object(block).generation);
            if (before < oldest || before > generation) {
                if (pool.is_salvaged) {
                    return;  // SoundObjects tells of it.
                }
                damaged.store(block, std::memory_order_relaxed);
            } else if (before != generation) {
                rewriters[worker].rewrite(block, generation);
            }
        });
    });
    if (damaged.load() != 0) {
        return fail(SP_E_POOL_CORRUPT, 0, "{}: the object at byte {} of the image has a generation that the pool does not know",
                    pool.memory.medium().path(), damaged.load());
    }
    std::uint64_t changed = 0;
    for (unsigned number = 0; number < threads; ++number) {
        rewriters[number].flush();
        changed += rewriters[number].changed();
    }
    pool.memory.persist_word(pool.memory.header().oldest_generation, generation);
    return changed;
}

}  // namespace

Result<void> recover_rewriting(PoolParts& pool)
{
    for (unsigned number = 0; number < rewriters_max; ++number) {
        Rewriter rewriter;
        if (auto prepared = rewriter.prepare(pool, number); !prepared) {
            return prepared;
        }
        if (auto recovered = rewriter.recover(); !recovered) {
            return recovered;
        }
    }
    return {};
}

Result<std::uint64_t> rewrite_pointers(PoolParts& pool, unsigned threads)
{
    PoolHeader& header = pool.memory.header();
    std::uint64_t changed = 0;
    if (header.bases[header.generation % bases_max] != pool.base()) {
        if (header.generation - header.oldest_generation == bases_max - 1) {  // The history is full: make room.
            const auto rewritten = rewrite_all(pool, header.generation, threads);
            if (!rewritten) {
                return rewritten;
            }
            changed += *rewritten;
        }
        if (is_removed(Canary::base_before_generation)) {
            store_word(header.bases[(header.generation + 1) % bases_max], pool.base());
        } else {
            pool.memory.persist_word(header.bases[(header.generation + 1) % bases_max], pool.base());
        }
        pool.memory.persist_word(header.generation, header.generation + 1);
    }
    pool.generation = header.generation;
    if (header.oldest_generation != header.generation && !is_removed(Canary::oldest_generation)) {
        const auto rewritten = rewrite_all(pool, header.generation, threads);
        if (!rewritten) {
            return rewritten;
        }
        changed += *rewritten;
    }
    return changed;
}

}  // namespace stillpoint::breeze
