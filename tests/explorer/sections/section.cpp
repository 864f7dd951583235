#include "sections/section.hpp"

#include <new>
#include <unistd.h>

#include "stillpoint/nvhooks.h"
#include "stillpoint/stillpoint.h"

namespace stillpoint::explorer {

namespace {

template <class T>
void store(T& place, const T& value)
{
    place = value;
    sp_mark_written(&place, sizeof place);
}

void add_block(TransactionPart& part, std::uint64_t serial, std::size_t words)
{
    auto* const block = static_cast<PartBlock*>(sp_malloc(offsetof(PartBlock, words) + words * sizeof(std::uint64_t)));
    if (block == nullptr) {
        throw std::bad_alloc();
    }
    store(block->next, part.first);
    store(block->serial, serial);
    store(block->word_count, std::uint64_t{words});
    for (std::size_t i = 0; i < words; ++i) {
        store(block->words[i], part_word(serial, i));
    }
    store(part.first, block);
    store(part.length, part.length + 1);
    store(part.list_sum, part.list_sum + block_sum(serial));
}

void remove_block(TransactionPart& part)
{
    PartBlock* const gone = part.first;
    if (gone != nullptr) {
        store(part.first, gone->next);
        store(part.length, part.length - 1);
        store(part.list_sum, part.list_sum - block_sum(gone->serial));
        sp_free(gone);
    }
}

}  // namespace

void PartsSeen::see(std::size_t number)
{
    const TransactionPart& part = parts_.parts[number];
    for (std::size_t i = 0; i < transaction_parts; ++i) {
        seen_[i] = std::max(seen_[i], part.seen[i]);
    }
    expect(number, 0);
}

void PartsSeen::pause_sometimes()
{
    if (random_() % 3 == 0) {
        usleep(static_cast<useconds_t>(random_() % 400));
    }
}

void PartsSeen::change(std::size_t number, const ListSteps& steps)
{
    TransactionPart& part = parts_.parts[number];
    store(part.stamp, stamp_);
    for (std::size_t i = 0; i < TransactionPart::word_count; ++i) {
        store(part.words[i], part_word(stamp_, i));
    }
    store(part.seen, seen_);
    if (steps.block_words != 0) {
        bool removes = random_() % 2 == 0;
        for (std::uint64_t left = random_() % (steps.steps_max + 1); left != 0; --left) {
            removes ? remove_block(part) : add_block(part, random_(), steps.block_words);
            removes = steps.are_one_way ? removes : random_() % 2 == 0;
        }
    }
    store(part.operations, part.operations + 1);
    const std::uint64_t digest = digest_of_part(part);
    ObjectNotes::state(part_name(number), digest);
    states_.emplace_back(number, digest);
}

void PartsSeen::note_read(std::size_t number)
{
    const TransactionPart& part = parts_.parts[number];
    if (part.operations != 0) {
        states_.emplace_back(number, digest_of_part(part));
    }
}

void PartsSeen::tell_acknowledged() const
{
    for (const auto& [part, digest] : states_) {
        ObjectNotes::acknowledged(part_name(part), digest);
    }
}

void PartsSeen::acknowledge_unlocked() const
{
    if (!unlocks_wait) {
        acknowledge_after_wait();
        return;
    }
    const int outcome = sp_wait_durable(sp_epoch(), 0);
    if (outcome == SP_OK || outcome == SP_E_TIMED_OUT) {  // With another outcome the pool has failed, which an unlock cannot say.
        tell_acknowledged();
    }
}

void PartsSeen::acknowledge_after_wait() const
{
    constexpr std::int64_t forever = -1;
    if (sp_wait_durable(sp_epoch(), forever) == SP_OK) {
        tell_acknowledged();
    }
}

std::vector<std::size_t> some_parts(Random& random, std::size_t most)
{
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < transaction_parts; ++i) {
        if (numbers.size() < most && random() % 2 == 0) {
            numbers.push_back(i);
        }
    }
    if (numbers.empty()) {
        numbers.push_back(random() % transaction_parts);
    }
    return numbers;
}

}  // namespace stillpoint::explorer
