#pragma once
// RecordBuilder: what one transaction has written, as the words of its record. Neighbouring words share a run.

#include <cstddef>
#include <cstdint>

#include "core/result.hpp"
#include "logs/redo_layout.hpp"
#include "os/reserved_array.hpp"

namespace stillpoint::logs {

/// Threads: one.
class RecordBuilder {
public:
    /// Errors: no_memory.
    [[nodiscard]] Result<void> reserve(std::uint64_t words_max)
    {
        return words_.reserve(header_words + words_max, "a transaction's log record");
    }

    void clear() noexcept
    {
        count_ = 0;
        open_run_ = no_run;
        overflowed_ = false;
    }
    [[nodiscard]] bool empty() const noexcept { return count_ == 0 && !overflowed_; }
    /// More was added than there is room for, and is missing.
    [[nodiscard]] bool overflowed() const noexcept { return overflowed_; }
    [[nodiscard]] std::uint64_t words() const noexcept { return count_; }
    [[nodiscard]] std::uint64_t words_max() const noexcept { return words_.capacity() - header_words - cache_line_bytes / 8; }
    [[nodiscard]] const std::uint64_t* payload() const noexcept { return words_.data() + header_words; }
    /// The header's place, directly in front of the payload.
    [[nodiscard]] RecordHeader& header() noexcept { return *reinterpret_cast<RecordHeader*>(words_.data()); }

    /// The word of the image with that number becomes `value`.
    void add_word(std::uint64_t word, std::uint64_t value) noexcept
    {
        if (open_run_ != no_run && word == next_word_ && word % run_words_max != 0) {
            if (make_room(1)) {
                at(open_run_) += std::uint64_t{1} << run_count_shift;
                at(count_++) = value;
                ++next_word_;
            }
        } else if (make_room(2)) {
            open_run_ = count_;
            next_word_ = word + 1;
            at(count_++) = encode_run({RunKind::words, 1, word});
            at(count_++) = value;
        }
    }
    /// The index of the value that add_word() has added last, for change_word(): until clear().
    [[nodiscard]] std::uint64_t index_of_newest() const noexcept { return count_ - 1; }
    /// The word that was added there gets another value, as if it had then. Nothing that was added later may have touched it.
    void change_word(std::uint64_t index, std::uint64_t value) noexcept { at(index) = value; }
    /// The bytes of that word that `mask` has become those of `value`.
    void add_bytes(std::uint64_t word, std::uint8_t mask, std::uint64_t value) noexcept
    {
        if (mask == 0xff) {
            add_word(word, value);
        } else if (make_room(2)) {
            open_run_ = no_run;
            at(count_++) = encode_run({RunKind::bytes, mask, word});
            at(count_++) = value;
        }
    }
    /// The bytes [offset, + size) of the image as they are at `bytes`.
    void add_range(std::uint64_t offset, const void* bytes, std::uint64_t size) noexcept;

private:
    static constexpr std::uint64_t header_words = sizeof(RecordHeader) / 8;
    static constexpr std::uint64_t no_run = UINT64_MAX;

    [[nodiscard]] bool make_room(std::uint64_t words) noexcept
    {
        // Up to a line more is read when the record is appended.
        overflowed_ |= count_ + words + cache_line_bytes / 8 > words_.capacity() - header_words;
        return !overflowed_;
    }
    std::uint64_t& at(std::uint64_t index) noexcept { return words_[header_words + index]; }
    /// Words that become those at `bytes`: in runs of their own, but for zeroes that are worth another kind of run.
    void add_whole_words(std::uint64_t word, const std::byte* bytes, std::uint64_t count) noexcept;
    void add_words(std::uint64_t word, const std::byte* bytes, std::uint64_t count) noexcept;
    void add_zeroes(std::uint64_t word, std::uint64_t count) noexcept;

    os::ReservedArray<std::uint64_t> words_;
    std::uint64_t count_ = 0;
    std::uint64_t open_run_ = no_run;  ///< the index of its header
    std::uint64_t next_word_ = 0;
    bool overflowed_ = false;
};

}  // namespace stillpoint::logs
