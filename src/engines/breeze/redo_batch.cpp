#include "engines/breeze/redo_batch.hpp"

#include "arch/checksum.hpp"
#include "core/canary.hpp"

namespace stillpoint::breeze {

namespace {

constexpr std::uint64_t redo_seed = 0x425245455245444f;

}  // namespace

Result<void> RedoBatch::prepare(PoolMemory& memory, const Geometry& geometry, std::uint64_t key)
{
    memory_ = &memory;
    record_ = &memory.at<RedoRecord>(geometry.redo_offset);
    capacity_ = (geometry.redo_bytes - sizeof(RedoRecord)) / sizeof(RedoWord);
    seed_ = key ^ redo_seed;
    set_limit(usual());
    return places_.reserve(std::bit_ceil(2 * capacity_), "the words of a redo record");
}

std::uint64_t RedoBatch::checksum(std::uint64_t count) const noexcept
{
    const std::uint64_t sum = checksum64(&record_->count, sizeof *record_ - sizeof record_->checksum + count * sizeof(RedoWord), seed_);
    return sum == 0 ? 1 : sum;
}

void RedoBatch::store_words(std::uint64_t count) const noexcept
{
    LinesToWriteBack lines(*memory_);
    for (std::uint64_t i = 0; i < count; ++i) {
        auto& word = memory_->at<std::uint64_t>(words()[i].offset);
        store_word(word, words()[i].value);
        lines.add(&word, sizeof word);
    }
    lines.flush();
    if (!is_removed(Canary::redo_batch_words)) {
        memory_->fence();
    }
    memory_->persist_word(record_->checksum, 0);
}

Result<void> RedoBatch::recover() noexcept
{
    if (record_->checksum == 0 || record_->count > capacity_ ||
        (checksum(record_->count) != record_->checksum && !is_removed(Canary::typed_redo_checksum)) ||
        is_removed(Canary::redo_batch_recovery)) {
        return {};  // None, or one that was being written: nothing of it has been stored.
    }
    for (std::uint64_t i = 0; i < record_->count; ++i) {
        const std::uint64_t offset = words()[i].offset;
        if (offset % sizeof(std::uint64_t) != 0 || offset >= memory_->bytes()) {
            return fail(SP_E_POOL_CORRUPT, 0, "{}: the redo record of the reference counts has a word at byte {}, outside of the image",
                        memory_->medium().path(), offset);
        }
    }
    // The process that wrote it may have died before it was durable.
    memory_->persist(record_, sizeof *record_ + record_->count * sizeof(RedoWord));
    store_words(record_->count);
    return {};
}

std::uint64_t RedoBatch::place_of(std::uint64_t offset) const noexcept
{
    std::uint64_t i = (offset * 0x9e3779b97f4a7c15) >> 20 & places_mask_;
    while (places_[i].number >> 32 == number_ && places_[i].offset != offset) {
        i = (i + 1) & places_mask_;
    }
    return i;
}

std::uint64_t RedoBatch::value_of(std::uint64_t offset) const noexcept
{
    const Place& place = places_[place_of(offset)];
    return place.number >> 32 == number_ ? words()[place.number & 0xffffffff].value : load_word(memory_->at<std::uint64_t>(offset));
}

void RedoBatch::set(std::uint64_t offset, std::uint64_t value) noexcept
{
    Place& place = places_[place_of(offset)];
    if (place.number >> 32 != number_) {
        place = {offset, number_ << 32 | count_};
        words()[count_++].offset = offset;
    }
    words()[place.number & 0xffffffff].value = value;
}

void RedoBatch::commit() noexcept
{
    if (count_ == 0) {
        return;
    }
    record_->count = count_;
    record_->checksum = checksum(count_);
    if (!is_removed(Canary::redo_batch_fence)) {
        memory_->persist(record_, sizeof *record_ + count_ * sizeof(RedoWord));
    }
    store_words(count_);
    count_ = 0;
    ++number_;
    set_limit(usual());
}

}  // namespace stillpoint::breeze
