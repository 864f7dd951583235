#pragma once
// FaseThread: what a thread has stored and not handed over yet, and its log. The owner alone uses it, but for the log.

#include <array>
#include <atomic>
#include <cstdint>

#include "logs/commit_order.hpp"
#include "logs/record_builder.hpp"
#include "logs/redo_log.hpp"

namespace stillpoint::nvthreads {

/// Where the record has words that were stored to lately: a counter that a FASE stores to again and again is in its record once.
class NewestWords {
public:
    /// Nothing of the record is known any more.
    void forget() noexcept
    {
        if (++generation_ == 0) {
            places_ = {};
            generation_ = 1;
        }
    }
    /// The record gets the bytes [offset, + size) of the image by other ways.
    void forget(std::uint64_t offset, std::uint64_t size) noexcept
    {
        constexpr std::uint64_t words_max = 8;
        const std::uint64_t last = (offset + size - 1) / sizeof(std::uint64_t);
        std::uint64_t word = offset / sizeof(std::uint64_t);
        if (last - word >= words_max) {
            forget();
            return;
        }
        for (; word <= last; ++word) {
            places_[word % places_.size()].generation = 0;
        }
    }
    /// The word's index in the record, or no_index.
    [[nodiscard]] std::uint64_t find(std::uint64_t word) const noexcept
    {
        const Place& place = places_[word % places_.size()];
        return place.word == word && place.generation == generation_ ? place.index : no_index;
    }
    void note(std::uint64_t word, std::uint64_t index) noexcept
    {
        places_[word % places_.size()] = {word, static_cast<std::uint32_t>(index), generation_};
    }
    static constexpr std::uint64_t no_index = UINT64_MAX;

private:
    struct Place {
        std::uint64_t word;
        std::uint32_t index;
        std::uint32_t generation;
    };
    std::array<Place, 1024> places_{};
    std::uint32_t generation_ = 1;
};

struct FaseThread {
    logs::RecordBuilder record;  ///< the stores, with their values, in the order in which they came
    NewestWords newest_words;
    logs::RedoLog own_log;    ///< unless threads share logs
    logs::RedoLog* log;
    logs::RedoLog large_log;  ///< of large records, where FaseLogs has such logs
    logs::CommitOrder::Slot* slot;
    std::uint32_t number;  ///< of slot and own_log
    bool is_open;          ///< its FASE has handed a part over, and is not over
    bool is_part;          ///< what it hands over is a part of another process's FASE
    bool has_stored;       ///< since the thread's last FASE has ended
    logs::Timestamp newest;  ///< of its records
    std::atomic<std::uint64_t> fases;    ///< that stored something and have ended
    std::atomic<std::uint64_t> parts;    ///< handed over before the end of their FASE
};

}  // namespace stillpoint::nvthreads
