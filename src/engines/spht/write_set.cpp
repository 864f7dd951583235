#include "engines/spht/write_set.hpp"

#include <algorithm>

namespace stillpoint::spht {

Result<void> WriteSet::reserve()
{
    if (auto done = entries_.reserve(entries_max, "what a transaction writes"); !done) {
        return done;
    }
    return places_.reserve(2 * entries_max, "what a transaction writes");
}

void WriteSet::forget_places() noexcept
{
    std::fill_n(places_.data(), std::uint64_t{1} << (64 - place_shift_), Place{0, 0});
    round_ = 1;
}

const WriteSet::Entry* WriteSet::find(const std::uint64_t* word) const noexcept
{
    const std::uint64_t last = (std::uint64_t{1} << (64 - place_shift_)) - 1;
    for (std::uint64_t at = first_place(word);; at = (at + 1) & last) {
        const Place& place = places_[at];
        if (place.round != round_) {
            return nullptr;
        }
        if (entries_[place.entry].word == word) {
            return &entries_[place.entry];
        }
    }
}

void WriteSet::insert_place(std::uint32_t entry) noexcept
{
    const std::uint64_t last = (std::uint64_t{1} << (64 - place_shift_)) - 1;
    std::uint64_t at = first_place(entries_[entry].word);
    while (places_[at].round == round_) {
        at = (at + 1) & last;
    }
    places_[at] = {round_, entry};
}

/// Twice as many places; those in use are found again.
void WriteSet::grow() noexcept
{
    --place_shift_;
    forget_places();
    for (std::uint32_t entry = 0; entry < count_; ++entry) {
        insert_place(entry);
    }
}

bool WriteSet::put(std::uint64_t* word, std::uint64_t value, std::uint64_t mask, bool may_be_there) noexcept
{
    if (const Entry* const found = may_be_there ? find(word) : nullptr; found != nullptr) {
        Entry& entry = entries_[static_cast<std::uint64_t>(found - entries_.data())];
        entry.value = (entry.value & ~mask) | (value & mask);
        entry.mask |= mask;
        return true;
    }
    if (count_ == entries_max) {
        return false;
    }
    entries_[count_] = {word, value & mask, mask};
    insert_place(static_cast<std::uint32_t>(count_));
    ++count_;
    if (count_ * 2 > std::uint64_t{1} << (64 - place_shift_)) {
        grow();
    }
    return true;
}

}  // namespace stillpoint::spht
