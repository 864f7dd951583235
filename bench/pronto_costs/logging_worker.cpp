// The time that logging adds to an operation that takes a given time: Pronto, Figure 5.11.
//
// Usage: pronto_logging entry_bytes=N; the option pronto_logging of the pool says how entries are logged
//
// The first answer: spins_per_us, how many rounds of the work go into a microsecond.
//
//   compare SPINS NS   operations of SPINS rounds for NS, in blocks of two milliseconds with logging and without it in turn
//                      -> operations of a block; bare_ns, logged_ns, logged_cpu_ns: medians of the blocks, which other work disturbs least

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "../harness/clock.hpp"
#include "../harness/ending.hpp"
#include "durable_side.hpp"
#include "stillpoint/pronto.hpp"

namespace bench {
namespace {

namespace pronto = stillpoint::pronto;

/// Multiplications that wait for each other: no memory, no time of day.
std::uint64_t work(std::uint64_t state, std::uint64_t spins) noexcept
{
    for (std::uint64_t i = 0; i < spins; ++i) {
        state = (state ^ state >> 29) * 0x9e3779b97f4a7c15u;
    }
    return state;
}

class Computation : public pronto::object<Computation> {
public:
    static constexpr char type_name[] = "bench.computation";
    static constexpr auto methods() { return pronto::methods(pronto::method<&Computation::compute>("compute")); }

    void compute(std::uint64_t spins, std::span<const std::byte> entry)
    {
        run<&Computation::compute>(spins, entry, [&] { compute_bare(spins, entry); });
    }
    /// Computes without an operation around it: nothing is durable.
    void compute_bare(std::uint64_t spins, std::span<const std::byte> entry) noexcept
    {
        state_ = work(state_ + std::to_integer<std::uint64_t>(entry[0]), spins);
    }

private:
    std::uint64_t state_ = 1;
};

std::uint64_t spins_per_us()
{
    constexpr std::uint64_t spins = 2'000'000;
    volatile std::uint64_t kept = work(1, spins);  // once for the clock of the CPU
    const std::uint64_t began_ns = monotonic_ns();
    kept = work(kept, spins);
    return spins * 1000 / (monotonic_ns() - began_ns);
}

class Comparison {
public:
    explicit Comparison(const Settings& settings)
        : object_(pronto::get_object<Computation>("bench.computation")), entry_(settings.number("entry_bytes", 1024), std::byte{'e'})
    {
    }

    void compare(std::uint64_t spins, std::uint64_t length_ns, Answer& answer)
    {
        const std::uint64_t block = operations_in_a_block(spins);
        std::vector<std::uint64_t> bare_ns;
        std::vector<std::uint64_t> logged_ns;
        std::vector<std::uint64_t> logged_cpu_ns;
        for (const std::uint64_t end_ns = monotonic_ns() + length_ns; bare_ns.empty() || monotonic_ns() < end_ns;) {
            const std::uint64_t cpu_before_ns = process_cpu_ns();
            logged_ns.push_back(timed(block, [&] { object_.compute(spins, entry_); }));
            logged_cpu_ns.push_back(process_cpu_ns() - cpu_before_ns);
            bare_ns.push_back(timed(block, [&] { object_.compute_bare(spins, entry_); }));
        }
        answer.number("operations", block).number("bare_ns", median(bare_ns)).number("logged_ns", median(logged_ns));
        answer.number("logged_cpu_ns", median(logged_cpu_ns)).number("blocks", bare_ns.size());
    }

private:
    static std::uint64_t median(std::vector<std::uint64_t>& values)
    {
        const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
        std::nth_element(values.begin(), middle, values.end());
        return *middle;
    }
    template <class Operation>
    static std::uint64_t timed(std::uint64_t count, Operation operation)
    {
        const std::uint64_t began_ns = monotonic_ns();
        for (std::uint64_t i = 0; i < count; ++i) {
            operation();
        }
        return monotonic_ns() - began_ns;
    }
    std::uint64_t operations_in_a_block(std::uint64_t spins)
    {
        constexpr std::uint64_t block_ns = 2'000'000;
        constexpr std::uint64_t tried = 50;
        return 1 + block_ns / (1 + timed(tried, [&] { object_.compute(spins, entry_); }) / tried);
    }

    Computation& object_;
    std::vector<std::byte> entry_;
};

void run(const Settings& settings)
{
    Comparison comparison(settings);
    Commands commands;
    commands.add("compare", 2,
                 [&](const Commands::Numbers& numbers, Answer& answer) { comparison.compare(numbers[0], numbers[1], answer); });
    commands.serve(Answer().number("spins_per_us", spins_per_us()));
}

}  // namespace
}  // namespace bench

int main(int count, char** words) { return bench::worker_main(count, words, &bench::run); }
