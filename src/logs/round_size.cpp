#include "logs/round_size.hpp"

#include "arch/prefetch.hpp"

namespace stillpoint::logs {

Result<void> RoundSize::reserve(std::uint64_t image_pages_max)
{
    if (auto done = is_counted_.reserve(image_pages_max, "the pages of a round"); !done) {
        return done;
    }
    return pages_.reserve(image_pages_max, "the list of a round's pages");
}

RoundSize::Counted RoundSize::count(const LogBytes& bytes, std::span<const RecordRef> oldest_first, std::uint64_t pages_max) noexcept
{
    constexpr std::uint64_t records_ahead = 16;
    page_count_ = 0;
    Counted whole{0, 0};
    for (std::uint64_t i = 0; i < oldest_first.size() && page_count_ <= pages_max; ++i) {
        if (i + records_ahead < oldest_first.size()) {
            arch::prefetch(reinterpret_cast<const std::byte*>(bytes.record_at(oldest_first[i + records_ahead].position)),
                           2 * cache_line_bytes);
        }
        const RecordHeader* const record = bytes.record_at(oldest_first[i].position);
        add_pages(record);
        if (page_count_ <= pages_max && (record->part & more_parts) == 0) {
            whole = {i + 1, page_count_};
        }
    }
    for (std::uint64_t i = 0; i < page_count_; ++i) {
        is_counted_.clear(pages_[i]);
    }
    return whole;
}

void RoundSize::add_pages(const RecordHeader* record) noexcept
{
    constexpr std::uint64_t page_words = page_bytes / 8;
    const std::uint64_t* const payload = payload_of(record);
    for (std::uint64_t at = 0; at < record->words;) {
        const Run run = decode_run(payload[at]);
        const std::uint64_t page = run.word / page_words;
        if (page < is_counted_.bits() && !is_counted_.test(page)) {
            is_counted_.set(page);
            pages_[page_count_++] = static_cast<std::uint32_t>(page);
        }
        at += 1 + run_data_words(run);
    }
}

}  // namespace stillpoint::logs
