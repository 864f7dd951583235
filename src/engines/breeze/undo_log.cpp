#include "engines/breeze/undo_log.hpp"

#include <bit>
#include <cstring>

#include "arch/checksum.hpp"
#include "core/canary.hpp"

namespace stillpoint::breeze {

namespace {

constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);
constexpr std::uint64_t words_of_line = cache_line_bytes / word_bytes;
constexpr std::uint64_t log_seed = 0x42524545554e444f;

}  // namespace

std::uint64_t LoggedWords::places_for(std::uint64_t log_bytes) noexcept
{
    // Every line takes at least an entry with one word; a table half full stays fast.
    return std::bit_ceil(2 * log_bytes / (sizeof(UndoEntry) + word_bytes) + words_of_line);
}

void LoggedWords::prepare(std::uint64_t log_bytes, os::ReservedSpace& space) noexcept
{
    const std::uint64_t places = places_for(log_bytes);
    places_mask_ = places - 1;
    places_.borrow(space, places);
}

std::uint8_t LoggedWords::add(std::uint64_t line, std::uint8_t mask) noexcept
{
    const std::uint64_t stamp = stamp_ << 8;
    for (std::uint64_t i = line & places_mask_;; i = (i + 1) & places_mask_) {  // Neighbours lie together.
        Place& place = places_[i];
        if (place.stamp_and_mask >> 8 != stamp_) {
            place = {line, stamp | mask};
            return mask;
        }
        if (place.line == line) {
            const auto fresh = static_cast<std::uint8_t>(mask & ~place.stamp_and_mask);
            place.stamp_and_mask |= mask;
            return fresh;
        }
    }
}

std::uint64_t UndoLog::space_bytes(const Geometry& geometry) noexcept
{
    return os::ReservedArray<std::byte>::bytes_for(geometry.log_bytes) + LoggedWords::space_bytes(geometry.log_bytes);
}

void UndoLog::prepare(PoolMemory& memory, const Geometry& geometry, std::uint64_t key, unsigned number, os::ReservedSpace& space) noexcept
{
    memory_ = &memory;
    header_ = &memory.at<LogHeader>(geometry.log_headers_offset + number * sizeof(LogHeader));
    offset_ = geometry.logs_offset + number * geometry.log_bytes;
    capacity_ = geometry.log_bytes;
    copy_.borrow(space, capacity_);
    seed_ = mix64(key ^ log_seed, number);
    zones_offset_ = geometry.zones_offset;
    logged_.prepare(capacity_, space);
}

void UndoLog::finish(std::uint64_t transaction) noexcept
{
    alignas(cache_line_bytes) const std::uint64_t line[cache_line_bytes / word_bytes] = {transaction};
    finished_ = transaction;
    memory_->store_lines(memory_->offset_of(header_), line, sizeof line);
    if (!is_removed(Canary::finish_fence)) {
        memory_->fence();
    }
}

void UndoLog::begin(std::uint64_t transaction) noexcept
{
    transaction_ = transaction;
    used_ = 0;
    is_full_ = false;
    waits_ = false;
    logged_.begin(transaction);
}

std::uint64_t UndoLog::checksum_of(const UndoEntry& entry) const noexcept
{
    return checksum64(&entry.transaction, sizeof entry - sizeof entry.checksum + entry.size, seed_);
}

bool UndoLog::append(std::uint64_t offset, std::uint64_t size) noexcept
{
    const std::uint64_t bytes = bytes_of_entry(size);
    if (bytes > capacity_ - used_) {
        return false;
    }
    auto& entry = *reinterpret_cast<UndoEntry*>(copy_.data() + used_);
    entry.transaction = transaction_;
    entry.offset = offset;
    entry.size = size;
    std::memcpy(&entry + 1, &memory_->at<std::byte>(offset), size);
    entry.checksum = checksum_of(entry);
    memory_->store_lines(offset_ + used_, &entry, bytes);
    used_ += bytes;
    waits_ = true;
    return true;
}

bool UndoLog::log(std::uint64_t offset, std::uint64_t size) noexcept
{
    if (is_full_ || size > capacity_) {  // The table of lines has room for what the log can hold, twice.
        is_full_ = true;
        return false;
    }
    const std::uint64_t first = offset / word_bytes;
    const std::uint64_t end = (offset + size + word_bytes - 1) / word_bytes;
    std::uint64_t run_begin = first;  // Words in front of `word` that are to be logged.
    bool fits = true;
    for (std::uint64_t word = first; word < end && fits;) {
        const std::uint64_t in_line = word % words_of_line;
        const std::uint64_t count = std::min(words_of_line - in_line, end - word);
        const auto mask = static_cast<std::uint8_t>(((1u << count) - 1) << in_line);
        const std::uint8_t added_words = logged_.add(word / words_of_line, mask);
        const std::uint8_t fresh = is_removed(Canary::undo_words) ? mask : added_words;
        if (fresh == mask) {
            word += count;
            continue;
        }
        for (std::uint64_t end_of_line = word + count; word < end_of_line; ++word) {
            if ((fresh >> word % words_of_line & 1) == 0) {
                if (run_begin != word) {
                    fits = fits && append(run_begin * word_bytes, (word - run_begin) * word_bytes);
                }
                run_begin = word + 1;
            }
        }
    }
    if (fits && run_begin < end) {
        fits = append(run_begin * word_bytes, (end - run_begin) * word_bytes);
    }
    is_full_ = !fits;
    return fits;
}

void UndoLog::wait() noexcept
{
    if (waits_) {
        waits_ = false;
        if (!is_removed(Canary::undo_log_fence)) {
            memory_->fence();
        }
    }
}

void UndoLog::roll_back() noexcept
{
    LinesToWriteBack lines(*memory_);
    // No word is logged twice, so the order of the entries does not matter.
    visit([&](const LoggedRange& range) {
        auto* const words = &memory_->at<std::uint64_t>(range.offset);  // Which a collection may read meanwhile.
        for (std::uint64_t i = 0; i < range.size / word_bytes; ++i) {
            std::uint64_t old_word = 0;
            std::memcpy(&old_word, range.old_bytes + i * word_bytes, word_bytes);
            store_word(words[i], old_word);
        }
        lines.add(words, range.size);
    });
    lines.flush();
    if (!is_removed(Canary::typed_undo_fence)) {
        memory_->fence();
    }
}

Result<bool> UndoLog::find_unfinished() noexcept
{
    transaction_ = header_->finished + 1;
    used_ = 0;
    if (memory_->at<UndoEntry>(offset_).transaction != transaction_) {
        return false;  // The usual case, which reads no more.
    }
    std::memcpy(copy_.data(), &memory_->at<std::byte>(offset_), capacity_);
    while (capacity_ - used_ >= sizeof(UndoEntry)) {
        const UndoEntry& entry = entry_at(used_);
        const std::uint64_t room = capacity_ - used_ - sizeof(UndoEntry);
        if (entry.transaction != transaction_ || entry.size == 0 || entry.size > room || entry.size % word_bytes != 0 ||
            entry.offset % word_bytes != 0 || (checksum_of(entry) != entry.checksum && !is_removed(Canary::undo_log_checksum))) {
            break;
        }
        const bool is_root = entry.offset == offsetof(PoolHeader, root) && entry.size == word_bytes;
        const bool is_of_object = entry.offset >= zones_offset_ && entry.offset < memory_->bytes() &&
                                  entry.size <= memory_->bytes() - entry.offset;
        if (!is_root && !is_of_object) {
            return fail(SP_E_POOL_CORRUPT, 0, "{}: a log has old bytes of byte {} of the image, which no transaction changes",
                        memory_->medium().path(), entry.offset);
        }
        used_ += bytes_of_entry(entry.size);
    }
    return used_ != 0;
}

}  // namespace stillpoint::breeze
