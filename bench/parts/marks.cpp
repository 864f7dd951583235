// The cost of a mark, and of collecting marks: the ground for the size of a card
// (docs/internals/decisions/card-granularity.md).
//
//   build/bin/bench_marks [rounds=N] [stores=N]
//
// Stores: the sequence that the compiler pass puts behind a store (shift, compare, test the card, set it), by hand, for three
// sizes of card, against the same loop without it. Bursts of all alternate, because machines drift; a ratio is taken
// within a round, and the median of the rounds is printed. "set": the cards are marked already, as they are
// for most stores of an interval; "clear": nothing is marked yet.
//
// Barriers: what a mark would cost that lets a stop copy nothing (docs/internals/decisions/stops-that-copy.md). Before the store the line's
// card is compared with the tag of the running epoch. If it differs, and the checkpoint of the epoch before has not taken the line, the
// thread claims the card, copies the line aside, and only then sets the tag.
//
// Collection: one look over the whole heap in which one page in a hundred was written, as in a stop: by the trackers uffd and
// hooks of the engine; and over cards of the other sizes, by the same loop.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <vector>

#include "core/store_marks.hpp"
#include "core/units.hpp"
#include "engines/pmthreads/tracker.hpp"
#include "../harness/commands.hpp"
#include "../harness/random.hpp"
#include "os/card_table.hpp"

namespace {

using stillpoint::window_base;
using stillpoint::pmthreads::ScanMode;
using stillpoint::pmthreads::Tracker;
using stillpoint::pmthreads::WrittenRun;

constexpr unsigned no_mark = 0;
constexpr std::array<unsigned, 3> shifts = {6, 9, 12};
constexpr std::uint64_t gib = 1u << 30;

/// Below the window, like the product's table; one for each size of card, of the first GiB of the window.
template <unsigned shift>
constexpr std::uintptr_t table_of = window_base - 0x2000000000 + (std::uintptr_t{shift} << 28);

void map_at(std::uintptr_t address, std::size_t bytes)
{
    void* const wanted = reinterpret_cast<void*>(address);
    if (mmap(wanted, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) != wanted) {
        throw std::runtime_error(fmt::format("cannot map {} bytes at {:#x}: {}", bytes, address, std::strerror(errno)));
    }
}

template <unsigned shift>
[[gnu::always_inline]] inline void mark(std::uintptr_t address)
{
    if constexpr (shift != no_mark) {
        if (address >> SP_WINDOW_SHIFT == SP_WINDOW_INDEX) [[likely]] {
            auto* const card = reinterpret_cast<volatile std::uint8_t*>((address >> shift) + (table_of<shift> - (window_base >> shift)));
            if (*card == 0) {
                *card = 1;
            }
        }
    }
}

/// The next place to store to. The same for every size of card.
struct Sequential {
    std::uintptr_t base;
    std::uint64_t bytes;  ///< a power of two
    std::uint64_t at = 0;
    std::uintptr_t next() { return base + ((at++ * 8) & (bytes - 1)); }
};
/// Each line once, in no order.
struct EachLineOnce {
    std::uintptr_t base;
    std::uint64_t bytes;  ///< a power of two
    std::uint64_t at = 0;
    std::uintptr_t next()
    {
        constexpr std::uint64_t odd = 0x9e3779b97f4a7c15u;
        return base + ((at++ * odd) & (bytes / stillpoint::cache_line_bytes - 1)) * stillpoint::cache_line_bytes;
    }
};
struct Scattered {
    std::uintptr_t base;
    std::uint64_t bytes;  ///< a power of two
    bench::Random random{7};
    std::uintptr_t next() { return base + ((random.next() >> 20) & (bytes - 8)); }
};

/// Nanoseconds for each store.
template <unsigned shift, class Places>
[[gnu::noinline]] double burst(Places places, std::uint64_t stores)
{
    const auto begin = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < stores; ++i) {
        const std::uintptr_t address = places.next();
        *reinterpret_cast<volatile std::uint64_t*>(address) = i;
        mark<shift>(address);
    }
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / static_cast<double>(stores);
}

template <unsigned shift>
void clear_cards()
{
    madvise(reinterpret_cast<void*>(table_of<shift>), gib >> shift, MADV_DONTNEED);
    // Pages of the table are there in the middle of an interval; only the cards are clear.
    std::memset(reinterpret_cast<void*>(table_of<shift>), 0, gib >> shift);
}

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

template <class Places>
void measure_stores(const char* name, Places places, bool clear, unsigned rounds, std::uint64_t stores)
{
    std::array<std::vector<double>, shifts.size()> ratios;
    std::vector<double> plain_ns;
    const auto one = [&]<unsigned shift>(std::size_t index, double before_ns) {
        clear_cards<shift>();
        if (!clear) {
            burst<shift>(places, stores);
        }
        ratios[index].push_back(burst<shift>(places, stores) / before_ns);
    };
    burst<no_mark>(places, stores);
    for (unsigned round = 0; round < rounds; ++round) {
        const double before_ns = burst<no_mark>(places, stores);
        plain_ns.push_back(before_ns);
        one.template operator()<shifts[0]>(0, before_ns);
        one.template operator()<shifts[1]>(1, burst<no_mark>(places, stores));
        one.template operator()<shifts[2]>(2, burst<no_mark>(places, stores));
    }
    std::printf("%-34s %-6s %8.2f %8.2f %8.2f %8.2f\n", name, clear ? "clear" : "set", median(plain_ns), median(ratios[0]),
                median(ratios[1]), median(ratios[2]));
}

namespace store_marks = stillpoint::store_marks;

/// The code around a store. The cards are the product's own.
enum class Tracking { none, mark_after, barrier_before };

constexpr std::uint8_t closing_tag = 2;
constexpr std::uint8_t running_tag_now = 4;
constexpr std::uint8_t claimed = 254;
/// A variable of the program's, as it would be: each barrier reads it.
std::atomic<std::uint8_t> running_tag{running_tag_now};

struct LineAside {
    alignas(stillpoint::cache_line_bytes) std::byte bytes[stillpoint::cache_line_bytes];
};
/// Lines that one thread has set aside.
std::vector<LineAside> lines_aside;
std::vector<std::uintptr_t> addresses_aside;
std::uint64_t aside_count = 0;

/// The first store to a line in an epoch.
[[gnu::noinline]] void take_line(std::uintptr_t address, std::uint8_t tag)
{
    const std::atomic_ref<std::uint8_t> card(*store_marks::card_of(address));
    std::uint8_t seen = card.load(std::memory_order_acquire);
    while (seen != tag) {
        if (seen == claimed) {
            seen = card.load(std::memory_order_acquire);
            continue;
        }
        const bool is_pending = seen == closing_tag;
        if (!card.compare_exchange_weak(seen, is_pending ? claimed : tag, std::memory_order_acq_rel)) {
            continue;
        }
        if (is_pending) {
            const std::uint64_t at = aside_count++ % lines_aside.size();
            const std::uintptr_t line = address & ~(stillpoint::cache_line_bytes - 1);
            std::memcpy(lines_aside[at].bytes, reinterpret_cast<const void*>(line), stillpoint::cache_line_bytes);
            addresses_aside[at] = line;
            card.store(tag, std::memory_order_release);
        }
        break;
    }
    store_marks::mark_page(*store_marks::page_card_of(address));
}

template <Tracking tracking, class Places>
[[gnu::noinline]] double tracked_burst(Places places, std::uint64_t stores)
{
    const auto begin = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < stores; ++i) {
        const std::uintptr_t address = places.next();
        const bool is_durable = address >> SP_WINDOW_SHIFT == SP_WINDOW_INDEX;
        if constexpr (tracking == Tracking::barrier_before) {
            if (is_durable) [[likely]] {
                const std::uint8_t tag = running_tag.load(std::memory_order_relaxed);
                if (std::atomic_ref<std::uint8_t>(*store_marks::card_of(address)).load(std::memory_order_relaxed) != tag) [[unlikely]] {
                    take_line(address, tag);
                }
                stillpoint::sync::compiler_fence(std::memory_order_seq_cst);
            }
        }
        *reinterpret_cast<volatile std::uint64_t*>(address) = i;
        if constexpr (tracking == Tracking::mark_after) {
            if (is_durable) [[likely]] {
                store_marks::mark_card(*store_marks::card_of(address), *store_marks::page_card_of(address));
            }
        }
    }
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / static_cast<double>(stores);
}

void set_cards(std::uint64_t bytes, std::uint8_t line, std::uint8_t page)
{
    std::memset(store_marks::card_of(window_base), line, bytes / stillpoint::cache_line_bytes);
    std::memset(store_marks::page_card_of(window_base), page, bytes / stillpoint::page_bytes);
}

/// Nanoseconds that each store takes longer than without tracking.
template <class Places>
void measure_barrier(const char* name, Places places, std::uint64_t bytes, unsigned rounds, std::uint64_t stores)
{
    constexpr std::size_t columns = 5;
    std::array<std::vector<double>, columns> more_ns;
    std::vector<double> plain_ns;
    tracked_burst<Tracking::none>(places, stores);
    for (unsigned round = 0; round < rounds; ++round) {
        const auto one = [&]<Tracking tracking>(std::size_t column, std::uint8_t line, std::uint8_t page) {
            const double before_ns = tracked_burst<Tracking::none>(places, stores);
            plain_ns.push_back(before_ns);
            set_cards(bytes, line, page);
            more_ns[column].push_back(tracked_burst<tracking>(places, stores) - before_ns);
        };
        one.template operator()<Tracking::mark_after>(0, store_marks::written, store_marks::written);
        one.template operator()<Tracking::barrier_before>(1, running_tag_now, store_marks::written);
        one.template operator()<Tracking::mark_after>(2, 0, 0);
        one.template operator()<Tracking::barrier_before>(3, 0, 0);
        one.template operator()<Tracking::barrier_before>(4, closing_tag, 0);
    }
    std::printf("%-34s %9.2f", name, median(plain_ns));
    for (const std::vector<double>& column : more_ns) {
        std::printf(" %9.2f", median(column));
    }
    std::printf("\n");
}

void measure_barriers(unsigned rounds, std::uint64_t stores)
{
    constexpr std::uint64_t large = 64 * stillpoint::mib;
    lines_aside.resize(large / stillpoint::cache_line_bytes);
    addresses_aside.resize(lines_aside.size());
    std::printf("\n%-34s %9s %19s %29s\n", "ns that a store takes longer", "", "line written before", "first store to a line");
    std::printf("%-34s %9s %9s %9s %9s %9s %9s\n", "", "none, ns", "mark", "barrier", "mark", "taken", "pending");
    measure_barrier("one after the other, 16 KiB", Sequential{window_base, 16384}, 16384, rounds, stores);
    measure_barrier("one after the other, 64 MiB", Sequential{window_base, large}, large, rounds, stores);
    measure_barrier("scattered in 16 KiB", Scattered{window_base, 16384}, 16384, rounds, stores);
    measure_barrier("scattered in 64 MiB", Scattered{window_base, large}, large, rounds, stores);
    measure_barrier("scattered in 1 GiB", Scattered{window_base, gib}, gib, rounds, stores);
    measure_barrier("each line of 1 MiB once", EachLineOnce{window_base, stillpoint::mib}, stillpoint::mib, rounds,
                    stillpoint::mib / stillpoint::cache_line_bytes);
    measure_barrier("each line of 64 MiB once", EachLineOnce{window_base, large}, large, rounds, large / stillpoint::cache_line_bytes);
}

/// As the tracker does it, without making runs of pages.
std::uint64_t take_all(std::uintptr_t table, std::uint64_t cards)
{
    std::uint64_t found = 0;
    for (std::uint64_t at = 0; at < cards; at += sizeof(std::uint64_t)) {
        const std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(table + at));
        if (word.load(std::memory_order_relaxed) != 0) {
            found += static_cast<unsigned>(__builtin_popcountll(word.exchange(0)));
        }
    }
    return found;
}

double microseconds(const std::function<void()>& work)
{
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

void write_pages(std::uintptr_t base, std::uint64_t heap_bytes, unsigned round, const std::function<void(std::uintptr_t)>& marked)
{
    bench::Random random{round + 1};
    for (std::uint64_t i = 0; i < heap_bytes / stillpoint::page_bytes / 100; ++i) {
        const std::uintptr_t page = base + random.below(heap_bytes / stillpoint::page_bytes) * stillpoint::page_bytes;
        *reinterpret_cast<volatile std::uint64_t*>(page + 8 * (i % 512)) = i + round;
        marked(page + 8 * (i % 512));
    }
}

void look(Tracker& tracker, std::uintptr_t base, std::uint64_t heap_bytes, std::vector<WrittenRun>& runs)
{
    for (std::uintptr_t at = base; at < base + heap_bytes;) {
        std::size_t count = 0;
        at = tracker.collect(at, base + heap_bytes, ScanMode::stop, runs.data(), runs.size(), count);
        if (at == 0) {
            throw std::runtime_error("the tracker cannot look");
        }
    }
}

void measure_tracker(const char* name, std::uintptr_t base, std::uint64_t heap_bytes, unsigned rounds)
{
    auto tracker = stillpoint::pmthreads::make_tracker(name, heap_bytes, false);
    if (!tracker) {
        std::printf("%-34s %s\n", name, std::string(tracker.error().text()).c_str());
        return;
    }
    if (auto added = (*tracker)->add_range(reinterpret_cast<std::byte*>(base), heap_bytes, 0); !added) {
        throw std::runtime_error(std::string(added.error().text()));
    }
    std::vector<WrittenRun> runs(heap_bytes / stillpoint::page_bytes);
    std::vector<double> times;
    std::vector<double> idle;
    for (unsigned round = 0; round < rounds; ++round) {
        write_pages(base, heap_bytes, round, [](std::uintptr_t address) { stillpoint::note_store(reinterpret_cast<void*>(address), 8); });
        times.push_back(microseconds([&] { look(**tracker, base, heap_bytes, runs); }));
        idle.push_back(microseconds([&] { look(**tracker, base, heap_bytes, runs); }));
    }
    std::printf("%-34s %10.1f %10.1f\n", (std::string("tracker ") + name).c_str(), median(times), median(idle));
}

template <unsigned shift>
void measure_cards(std::uintptr_t base, std::uint64_t heap_bytes, unsigned rounds)
{
    clear_cards<shift>();
    std::vector<double> times;
    std::vector<double> idle;
    for (unsigned round = 0; round < rounds; ++round) {
        write_pages(base, heap_bytes, round, [](std::uintptr_t address) { mark<shift>(address); });
        times.push_back(microseconds([&] { take_all(table_of<shift>, heap_bytes >> shift); }));
        idle.push_back(microseconds([&] { take_all(table_of<shift>, heap_bytes >> shift); }));
    }
    std::printf("%-34s %10.1f %10.1f\n", fmt::format("cards of {} bytes", 1u << shift).c_str(), median(times), median(idle));
}

void run(const bench::Settings& settings)
{
    const auto rounds = static_cast<unsigned>(settings.number("rounds", 15));  // of which the median is taken
    const std::uint64_t stores = settings.number("stores", 2'000'000);  // of a burst
    map_at(window_base, gib);
    map_at(table_of<shifts[0]>, gib >> shifts[0]);
    map_at(table_of<shifts[1]>, gib >> shifts[1]);
    map_at(table_of<shifts[2]>, gib >> shifts[2]);
    if (auto mapped = stillpoint::os::map_cards(reinterpret_cast<void*>(window_base), gib); !mapped) {
        throw std::runtime_error(std::string(mapped.error().text()));
    }
    const auto aside = std::make_unique<std::byte[]>(64 * stillpoint::mib);
    const auto outside = reinterpret_cast<std::uintptr_t>(aside.get());
    std::printf("%-34s %-6s %8s %8s %8s %8s\n", "stores of 8 bytes", "cards", "none, ns", "64 B", "512 B", "4 KiB");
    for (const bool clear : {false, true}) {
        measure_stores("one after the other, 16 KiB", Sequential{window_base, 16384}, clear, rounds, stores);
        measure_stores("one after the other, 64 MiB", Sequential{window_base, 64 * stillpoint::mib}, clear, rounds, stores);
        measure_stores("scattered in 16 KiB", Scattered{window_base, 16384}, clear, rounds, stores);
        measure_stores("scattered in 1 MiB", Scattered{window_base, stillpoint::mib}, clear, rounds, stores);
        measure_stores("scattered in 64 MiB", Scattered{window_base, 64 * stillpoint::mib}, clear, rounds, stores);
        measure_stores("scattered in 1 GiB", Scattered{window_base, gib}, clear, rounds, stores);
    }
    measure_stores("not durable, in a row, 16 KiB", Sequential{outside, 16384}, false, rounds, stores);
    measure_stores("not durable, scattered in 64 MiB", Scattered{outside, 64 * stillpoint::mib}, false, rounds, stores);
    measure_barriers(rounds, stores);
    const std::uint64_t heap_bytes = 1024 * stillpoint::mib;
    for (std::uintptr_t page = window_base; page < window_base + heap_bytes; page += stillpoint::page_bytes) {
        *reinterpret_cast<volatile std::uint64_t*>(page) = 1;
    }
    std::printf("\n%-34s %10s %10s\n", "one look over 1024 MiB, us", "1 % dirty", "clean");
    measure_cards<shifts[0]>(window_base, heap_bytes, rounds);
    measure_cards<shifts[1]>(window_base, heap_bytes, rounds);
    measure_cards<shifts[2]>(window_base, heap_bytes, rounds);
    measure_tracker("hooks", window_base, heap_bytes, rounds);
    measure_tracker("uffd", window_base, heap_bytes, rounds);
}

}  // namespace

int main(int count, char** words) { return bench::worker_main(count, words, run); }
