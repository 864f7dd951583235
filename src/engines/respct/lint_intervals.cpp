#include "engines/respct/lint_intervals.hpp"

#include <algorithm>
#include <atomic>
#include <sys/mman.h>

#include "core/units.hpp"

namespace stillpoint::respct::lint_notes {

namespace {

constexpr std::uint64_t scatter = 0x9e3779b97f4a7c15ULL;

// One for each page, and for those that share its place: a block there was freed, or given out. What is forgotten too early is a mistake
// that is not seen.
constexpr std::size_t pages_max = 1 << 18;
std::atomic<std::uint32_t> last_reuse[pages_max];
std::atomic<std::uint32_t> reuse_count;

bool lies_in(const Block* blocks, std::uint32_t count, std::uintptr_t address) noexcept
{
    return std::any_of(blocks, blocks + count, [address](const Block& block) { return address >= block.begin && address < block.end; });
}

}  // namespace

Interval* Interval::make() noexcept
{
    void* const memory = mmap(nullptr, sizeof(Interval), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return nullptr;
    }
    auto* const made = static_cast<Interval*>(memory);  // All zeroes are one without anything.
    made->number_ = 1;
    made->epoch_ = 1;
    return made;
}

void Interval::unmake() noexcept { munmap(this, sizeof(Interval)); }

std::uint32_t Interval::now() noexcept { return reuse_count.load(std::memory_order_relaxed); }

void Interval::reused(const void* block, std::size_t size_bytes) noexcept
{
    const std::uint32_t time = reuse_count.fetch_add(1, std::memory_order_relaxed) + 1;
    const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(block) / page_bytes;
    const std::uintptr_t last = (reinterpret_cast<std::uintptr_t>(block) + size_bytes) / page_bytes;
    for (std::uintptr_t page = first; page <= last && page - first < pages_max; ++page) {
        last_reuse[page % pages_max].store(time, std::memory_order_relaxed);
    }
}

Word* Interval::word(std::uintptr_t address) noexcept
{
    // Neighbours lie together, since programs read them together.
    constexpr std::uintptr_t run_words = 64;
    const std::uintptr_t number = address / word_bytes;
    const std::size_t first = (((number / run_words) * scatter) >> 32) * run_words + number % run_words;
    Word* free = nullptr;
    for (std::size_t probe = 0; probe < probes_max; ++probe) {
        Word& one = words_[(first + probe * run_words) % words_max];
        if (one.address == address) {
            if (one.exposed_at < last_reuse[address / page_bytes % pages_max].load(std::memory_order_relaxed)) {
                one.exposed = 0;
            }
            if (one.interval != number_) {
                one.interval = number_;
                one.written_first = 0;
            }
            return &one;
        }
        const bool is_needed = one.interval == number_ || one.exposed != 0;
        if (free == nullptr && !is_needed) {
            free = &one;
        }
        if (one.address == 0) {
            break;
        }
    }
    if (free != nullptr) {
        *free = {address, nullptr, number_, 0, 0, 0};
    }
    return free;
}

Line* Interval::line(std::uintptr_t address) noexcept
{
    const std::size_t first = ((address / line_bytes) * scatter) >> 32;
    for (std::size_t probe = 0; probe < probes_max; ++probe) {
        const std::size_t index = (first + probe) % lines_max;
        Line& one = lines_[index];
        if (one.address == address && one.epoch == epoch_) {
            return &one;
        }
        if (one.epoch != epoch_) {
            if (listed_ == listed_max) {
                return nullptr;
            }
            list_[listed_++] = static_cast<std::uint32_t>(index);
            one = {address, 0, 0, nullptr, epoch_, false};
            return &one;
        }
    }
    return nullptr;
}

void Interval::written(std::uintptr_t store, std::size_t size_bytes, Place* place) noexcept
{
    const std::uintptr_t last = store + (size_bytes == 0 ? 0 : size_bytes - 1);
    for (std::uintptr_t at = store & ~(line_bytes - 1); at <= last; at += line_bytes) {
        Line* const one = lies_in(ranges_.data(), ranges_count_, at) ? nullptr : line(at);
        if (one != nullptr && !one->is_tracked) {
            one->store = std::max(store, at);
            one->size_bytes = std::min(last + 1, at + line_bytes) - one->store;
            one->place = place;
        }
    }
}

void Interval::tracked(const void* address, std::size_t size_bytes) noexcept
{
    constexpr std::size_t long_lines = 64;
    if (size_bytes == 0) {
        return;
    }
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t first = begin & ~(line_bytes - 1);
    const std::uintptr_t last = begin + size_bytes - 1;
    if ((last - first) / line_bytes < long_lines || ranges_count_ == blocks_max) {
        for (std::uintptr_t at = first; at <= last; at += line_bytes) {
            if (Line* const one = line(at); one != nullptr) {
                one->place = nullptr;
                one->is_tracked = true;
            }
        }
        return;
    }
    ranges_[ranges_count_++] = {first, last + 1};
    for (std::uint32_t index = 0; index < listed_; ++index) {
        Line& one = lines_[list_[index]];
        one.place = one.address >= first && one.address <= last ? nullptr : one.place;
    }
}

void Interval::allocated(const void* block, std::size_t size_bytes) noexcept
{
    const auto begin = reinterpret_cast<std::uintptr_t>(block);
    if (blocks_count_ < blocks_max) {
        blocks_[blocks_count_++] = {begin, begin + size_bytes};
    }
}

bool Interval::is_new(std::uintptr_t address) const noexcept { return lies_in(blocks_.data(), blocks_count_, address); }

}  // namespace stillpoint::respct::lint_notes
