#include "lint_memory.hpp"

#include <atomic>
#include <sys/mman.h>

#include "heap/heap.hpp"
#include "lint_target.hpp"
#include "runtime/fase.hpp"

namespace stillpoint::lint {

namespace {

constexpr std::size_t remembered_max = 1 << 16;
constexpr std::size_t probes_max = 16;
/// Blocks from here on are arrays rather than objects: their words are one place.
constexpr std::size_t object_bytes_max = 4096;

std::atomic<std::uintptr_t> remembered[remembered_max];

std::size_t slot_of(std::uintptr_t location, std::size_t probe)
{
    return static_cast<std::size_t>((location * 0x9e3779b97f4a7c15ULL) >> 40) + probe;
}

bool is_remembered(const void* location)
{
    const auto wanted = reinterpret_cast<std::uintptr_t>(location);
    for (std::size_t probe = 0; probe < probes_max; ++probe) {
        if (remembered[slot_of(wanted, probe) % remembered_max].load(std::memory_order_relaxed) == wanted) {
            return true;
        }
    }
    return false;
}

void report_word(Report& report, const std::byte* block, std::size_t block_bytes, const std::uint64_t* word, std::uint64_t value)
{
    const auto offset = static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(word) - block);
    const std::uint64_t offset_in_key = block_bytes <= object_bytes_max ? offset : 0;
    const std::uint64_t words = (std::uint64_t{block_bytes} << 16) | offset_in_key;
    const std::uint64_t key = (words << kind_bits) | static_cast<std::uint64_t>(Kind::found_pointer);
    bool is_new = false;
    Place* const place = place_of(report, key, is_new);
    if (place == nullptr || !is_new) {
        return;
    }
    const TargetFacts facts = facts_of_target(value, __builtin_frame_address(0), report);
    place->kind = Kind::found_pointer;
    place->address = reinterpret_cast<std::uint64_t>(word);
    place->size = block_bytes;
    place->block_offset = offset;
    place->value = value;
    place->target = facts.target;
    place->target_spot = facts.spot;
    place->ready.store(1, std::memory_order_release);
}

}  // namespace

bool is_mapped(std::uint64_t address) noexcept
{
    constexpr std::uint64_t page_bytes = 4096;
    unsigned char is_resident = 0;
    return mincore(reinterpret_cast<void*>(address & ~(page_bytes - 1)), page_bytes, &is_resident) == 0;
}

void remember(const void* location) noexcept
{
    const auto wanted = reinterpret_cast<std::uintptr_t>(location);
    for (std::size_t probe = 0; probe < probes_max; ++probe) {
        std::atomic<std::uintptr_t>& slot = remembered[slot_of(wanted, probe) % remembered_max];
        std::uintptr_t present = slot.load(std::memory_order_relaxed);
        if (present == wanted || (present == 0 && slot.compare_exchange_strong(present, wanted, std::memory_order_relaxed))) {
            return;
        }
    }
}

void find_pointers(const Heap& heap, Report& report) noexcept
{
    const FaseGuard section;
    heap.visit_live_blocks(
        [](void* context, const std::byte* block, std::size_t bytes) {
            visit_volatile_addresses(block, bytes, [&](const std::uint64_t* word, std::uint64_t value) {
                if (!is_remembered(word)) {
                    report_word(*static_cast<Report*>(context), block, bytes, word, value);
                }
            });
        },
        &report);
}

}  // namespace stillpoint::lint
