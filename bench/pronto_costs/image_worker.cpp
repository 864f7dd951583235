// An object of a chosen size whose pages are written, snapshotted and recovered: Pronto, Figure 5.12 and §5.3.8.
//
// Usage: pronto_image size_mib=N [expects=N]
//
// At its start it finds or makes the object and does one operation on it; with expects=N it then reads every page, and ends with an error
// where one was not filled with N. The first answer: first_operation_ns, last_page_ns (monotonic), recovery_ns.
//
//   fill N                         writes the number N to every page
//   snapshot                       -> stop_ns, quiesce_ns (of it: until no thread was inside an operation), snapshot_ns, pages
//   snapshot_beside_writer NS      as snapshot; a thread stores words at random places from NS before until NS after
//                                  -> the same, slowest_ns, operations
//   sequential NS ACCESSES EVERY   operations of that many accesses for NS, half of them stores; a snapshot in each EVERY ns (0: none)
//   random NS ACCESSES EVERY       -> operations, wall_ns, cpu_ns, snapshots, all_snapshots (of it and of a log that was full)
//   log N BYTES                    N operations that store a block of BYTES at a random place

#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <time.h>
#include <vector>

#include "../harness/clock.hpp"
#include "../harness/ending.hpp"
#include "../harness/latency_histogram.hpp"
#include "../harness/random.hpp"
#include "durable_side.hpp"
#include "stillpoint/pronto.hpp"

namespace bench {
namespace {

constexpr std::size_t page_size_bytes = 4096;
constexpr std::size_t page_words = page_size_bytes / sizeof(std::uint64_t);

namespace pronto = stillpoint::pronto;

/// The first word of each page is what it was filled with; random stores go after it.
class Image : public pronto::object<Image> {
public:
    static constexpr char type_name[] = "bench.image";
    using constructor = pronto::constructor<std::uint64_t>;
    static constexpr auto methods()
    {
        return pronto::methods(pronto::method<&Image::fill>("fill"), pronto::method<&Image::store>("store"),
                               pronto::method<&Image::sweep>("sweep"), pronto::method<&Image::write_block>("write_block"));
    }

    explicit Image(std::uint64_t mib)
        : page_count_(mib * (1u << 20) / page_size_bytes), words_(static_cast<std::uint64_t*>(sp_aligned_alloc(page_size_bytes, mib << 20)))
    {
        if (words_ == nullptr) {
            give_up(std::string("no durable memory: ") + sp_last_error());
        }
    }

    void fill(std::uint64_t number)
    {
        run<&Image::fill>(number, [&] {
            for (std::uint64_t page = 0; page < page_count_; ++page) {
                words_[page * page_words] = number;
            }
        });
    }
    void store(std::uint64_t place, std::uint64_t value)
    {
        run<&Image::store>(place, value, [&] { words_[word_at(place)] = value; });
    }
    /// Half of the accesses are stores. The sum of what it reads is kept in the object: no compiler leaves the loads out.
    void sweep(bool is_random, std::uint64_t seed, std::uint64_t accesses)
    {
        run<&Image::sweep>(is_random, seed, accesses, [&] {
            Random random(seed);
            const std::uint64_t first = word_at(random.next());
            for (std::uint64_t i = 0; i < accesses; i += 2) {
                const std::uint64_t at = is_random ? word_at(random.next()) : usable(first + i);
                sum_ += words_[is_random ? word_at(random.next()) : usable(first + i + 1)];
                words_[at] = seed + i;
            }
        });
    }
    void write_block(std::uint64_t page, std::span<const std::byte> block)
    {
        run<&Image::write_block>(page, block, [&] {
            std::memcpy(words_ + page % page_count_ * page_words + 1, block.data(), std::min(block.size(), block_bytes_max));
            ++blocks_;
        });
    }

    /// Reads a word of every page; false: one was not filled with `number`.
    [[nodiscard]] bool is_filled_with(std::uint64_t number) const noexcept
    {
        for (std::uint64_t page = 0; page < page_count_; ++page) {
            if (words_[page * page_words] != number) {
                return false;
            }
        }
        return true;
    }
    [[nodiscard]] std::uint64_t blocks() const noexcept { return blocks_; }

private:
    static constexpr std::size_t block_bytes_max = page_size_bytes - sizeof(std::uint64_t);

    [[nodiscard]] std::uint64_t usable(std::uint64_t word) const noexcept
    {
        const std::uint64_t at = word % (page_count_ * page_words);
        return at % page_words == 0 ? at + 1 : at;
    }
    [[nodiscard]] std::uint64_t word_at(std::uint64_t random) const noexcept
    {
        return usable((random >> 32) * (page_count_ * page_words) >> 32);
    }

    std::uint64_t page_count_;
    std::uint64_t* words_;
    std::uint64_t sum_ = 0;
    std::uint64_t blocks_ = 0;
};

void add_stop(Answer& answer, std::uint64_t snapshot_ns)
{
    answer.number("stop_ns", statistic("stop_ns_last")).number("quiesce_ns", statistic("quiesce_ns_last"));
    answer.number("snapshot_ns", snapshot_ns);
    answer.number("pages", statistic("dirty_pages_last"));
}

std::uint64_t timed_snapshot()
{
    const std::uint64_t began_ns = monotonic_ns();
    take_snapshot();
    return monotonic_ns() - began_ns;
}

void sleep_ns(std::uint64_t ns)
{
    const timespec length{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
    nanosleep(&length, nullptr);
}

void snapshot_beside_writer(Image& image, std::uint64_t around_ns, Answer& answer)
{
    std::atomic<bool> is_over{false};
    std::uint64_t slowest_ns = 0;
    std::uint64_t operations = 0;
    std::thread writer([&] {
        Random random(monotonic_ns());
        std::uint64_t before_ns = monotonic_ns();
        while (!is_over.load(std::memory_order_relaxed)) {
            image.store(random.next(), operations++);
            const std::uint64_t after_ns = monotonic_ns();
            slowest_ns = std::max(slowest_ns, after_ns - before_ns);
            before_ns = after_ns;
        }
    });
    sleep_ns(around_ns);
    const std::uint64_t snapshot_ns = timed_snapshot();
    add_stop(answer, snapshot_ns);
    sleep_ns(around_ns);
    is_over = true;
    writer.join();
    answer.number("slowest_ns", slowest_ns).number("operations", operations);
}

/// `every_ns` 0: no snapshots.
void sweep(Image& image, bool is_random, const Commands::Numbers& numbers, Answer& answer)
{
    const std::uint64_t slice_ns = numbers[0];
    const std::uint64_t accesses = numbers[1];
    const std::uint64_t every_ns = numbers[2];
    std::atomic<bool> is_over{false};
    std::uint64_t operations = 0;
    std::uint64_t snapshots = 0;
    LatencyHistogram latencies;
    const std::uint64_t before = statistic("checkpoints");
    Stopwatch watch;
    const std::uint64_t began_ns = monotonic_ns();
    std::thread program([&] {
        std::uint64_t before_ns = monotonic_ns();
        do {  // One at least, also where the thread had to wait for a CPU longer than the slice.
            image.sweep(is_random, ++operations, accesses);
            const std::uint64_t after_ns = monotonic_ns();
            latencies.record(after_ns - before_ns);
            before_ns = after_ns;
        } while (before_ns - began_ns < slice_ns);
        is_over = true;
    });
    while (!is_over) {
        // Looks ten times in an interval whether the program has ended.
        sleep_ns(every_ns == 0 ? slice_ns / 50 : every_ns / 10);
        if (every_ns != 0 && !is_over && monotonic_ns() - began_ns >= (snapshots + 1) * every_ns) {
            take_snapshot();
            ++snapshots;
        }
    }
    program.join();
    watch.lap();
    watch.add_to(answer, operations);
    answer.number("snapshots", snapshots).raw("latencies_ns", json_of(latencies));
    take_snapshot();  // the next slice begins with protected pieces, whichever it is
    answer.number("all_snapshots", statistic("checkpoints") - before - 1);
}

void write_log(Image& image, std::uint64_t count, std::uint64_t block_bytes)
{
    const std::vector<std::byte> block(block_bytes, std::byte{'b'});
    Random random(count);
    for (std::uint64_t i = 0; i < count; ++i) {
        image.write_block(random.next() >> 32, block);
    }
}

void run(const Settings& settings)
{
    Image& image = pronto::get_object<Image>("bench.image", settings.number("size_mib", 64));
    image.store(0, 1);
    const std::uint64_t first_operation_ns = monotonic_ns();
    const std::uint64_t expected = settings.number("expects", 0);
    if (expected != 0 && !image.is_filled_with(expected)) {
        give_up("a page of the recovered object is not as it was filled");
    }
    Answer ready;
    ready.number("first_operation_ns", first_operation_ns).number("last_page_ns", monotonic_ns());
    ready.number("recovery_ns", statistic("recovery_ns")).number("blocks", image.blocks());

    using Numbers = const Commands::Numbers&;
    Commands commands;
    commands.add("fill", 1, [&](Numbers numbers, Answer&) { image.fill(numbers[0]); });
    commands.add("snapshot", 0, [](Numbers, Answer& answer) { add_stop(answer, timed_snapshot()); });
    commands.add("snapshot_beside_writer", 1, [&](Numbers numbers, Answer& answer) { snapshot_beside_writer(image, numbers[0], answer); });
    commands.add("sequential", 3, [&](Numbers numbers, Answer& answer) { sweep(image, false, numbers, answer); });
    commands.add("random", 3, [&](Numbers numbers, Answer& answer) { sweep(image, true, numbers, answer); });
    commands.add("log", 2, [&](Numbers numbers, Answer&) { write_log(image, numbers[0], numbers[1]); });
    commands.serve(ready);
}

}  // namespace
}  // namespace bench

int main(int count, char** words) { return bench::worker_main(count, words, &bench::run); }
