// Prices of swaptions by Monte Carlo, in the shape of PARSEC's swaptions: many independent simulations, little memory.
//
// Model: forward rates with one Gaussian factor whose volatility falls exponentially with the time to maturity (Heath, Jarrow,
// Morton 1992; Hull and White's model as forward rates), in steps of half a year, with the drift that makes every discounted
// bond a martingale in discrete time too. So the mean of the swap itself is known without a simulation, which fault() asks for.
//
// Durable: for each swaption its sums and how many trials are in them; an operation adds a block of trials.

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numbers>
#include <string>
#include <vector>

#include "../harness/random.hpp"
#include "../workloads/engine_job.hpp"
#include "../workloads/makers.hpp"
#include "input_size.hpp"

namespace bench {
namespace {

constexpr unsigned periods = 20;
constexpr double period_years = 0.5;
constexpr std::uint64_t usual_block_trials = 32;
constexpr std::uint64_t swaptions = 32;

/// The right to enter, after `expiry` periods, a swap that lasts `tenor` periods, and to pay `strike` in it.
struct Swaption {
    double strike;
    unsigned expiry;
    unsigned tenor;
    std::array<double, periods> forwards;  ///< today's curve
    double volatility;
    double reversion;
};

struct Sums {
    double payoff = 0;
    double payoff_squares = 0;
    double swap = 0;
    double swap_squares = 0;
};

Swaption make_swaption(std::uint64_t number)
{
    Random random(100 + number);
    Swaption swaption = {};
    swaption.expiry = static_cast<unsigned>(4 + random.below(6));
    swaption.tenor = static_cast<unsigned>(4 + random.below(6));
    swaption.strike = 0.03 + 0.0005 * static_cast<double>(random.below(60));
    swaption.volatility = 0.008 + 0.0001 * static_cast<double>(random.below(60));
    swaption.reversion = 0.05 + 0.001 * static_cast<double>(random.below(50));
    for (unsigned i = 0; i < periods; ++i) {
        swaption.forwards[i] = 0.035 + 0.015 * (1 - std::exp(-0.3 * i * period_years));
    }
    return swaption;
}

/// The value of the swap at its beginning: `forwards` from that period on.
double swap_value(const Swaption& swaption, const double* forwards)
{
    double log_bond = 0;
    double fixed_side = 0;
    for (unsigned i = 0; i < swaption.tenor; ++i) {
        log_bond -= forwards[i] * period_years;
        fixed_side += swaption.strike * period_years * std::exp(log_bond);
    }
    return 1 - std::exp(log_bond) - fixed_side;
}

/// Two numbers of the standard normal distribution (Box and Muller).
std::array<double, 2> two_normals(Random& random)
{
    const double first = static_cast<double>((random.next() >> 11) + 1) * 0x1p-53;
    const double second = static_cast<double>(random.next() >> 11) * 0x1p-53;
    const double radius = std::sqrt(-2 * std::log(first));
    return {radius * std::cos(2 * std::numbers::pi * second), radius * std::sin(2 * std::numbers::pi * second)};
}

/// By the periods that are left to maturity: what a step adds to a forward rate, for sure and for each unit of the factor.
struct Step {
    std::array<double, periods> drift;
    std::array<double, periods> diffusion;
};

Step make_step(const Swaption& swaption)
{
    Step step = {};
    double bond_volatility = 0;  // of the bond that matures before period i
    for (unsigned i = 0; i < periods; ++i) {
        const double volatility = swaption.volatility * std::exp(-swaption.reversion * i * period_years);
        step.diffusion[i] = volatility * std::sqrt(period_years);
        const double longer = bond_volatility + volatility * period_years;
        step.drift[i] = 0.5 * (longer * longer - bond_volatility * bond_volatility);
        bond_volatility = longer;
    }
    return step;
}

/// One path of the curve: adds the discounted payoff and swap.
void simulate(const Swaption& swaption, const Step& step, Random& random, Sums& sums)
{
    std::array<double, periods> forwards = swaption.forwards;  // forwards[i] for period now + i
    const unsigned end = swaption.expiry + swaption.tenor;
    double log_discount = 0;
    std::array<double, 2> normals = {};
    for (unsigned now = 0; now < swaption.expiry; ++now) {
        if (now % 2 == 0) {
            normals = two_normals(random);
        }
        log_discount -= forwards[0] * period_years;
        for (unsigned i = 0; i + now + 1 < end; ++i) {
            forwards[i] = forwards[i + 1] + step.drift[i] + step.diffusion[i] * normals[now % 2];
        }
    }
    const double value = std::exp(log_discount) * swap_value(swaption, forwards.data());
    const double payoff = std::max(0.0, value);
    sums.payoff += payoff;
    sums.payoff_squares += payoff * payoff;
    sums.swap += value;
    sums.swap_squares += value * value;
}

/// Every block has random numbers of its own: the result does not depend on the thread that computes it.
Sums simulate_block(const Swaption& swaption, const Step& step, std::uint64_t number, std::uint64_t block, std::uint64_t block_trials)
{
    Random random(1 + number + swaptions * (block + 1));
    Sums sums;
    for (std::uint64_t trial = 0; trial < block_trials; ++trial) {
        simulate(swaption, step, random, sums);
    }
    return sums;
}

/// Today's value of the swap, from the curve alone.
double swap_today(const Swaption& swaption)
{
    double log_bond = 0;
    for (unsigned i = 0; i < swaption.expiry; ++i) {
        log_bond -= swaption.forwards[i] * period_years;
    }
    return std::exp(log_bond) * swap_value(swaption, swaption.forwards.data() + swaption.expiry);
}

class Swaptions final : public EngineJob {
public:
    Swaptions(const Shape& shape, std::uint64_t trials)
        : EngineJob(shape), block_trials_(shape.operation_size != 0 ? shape.operation_size : usual_block_trials),
          blocks_((trials + block_trials_ - 1) / block_trials_), results_(E::named<Result>("bench.swaptions", swaptions))
    {
    }

    void load() override
    {
        for (std::uint64_t number = 0; number < swaptions; ++number) {
            portfolio_.push_back(make_swaption(number));
        }
    }
    void prepare() override
    {
        for (std::uint64_t number = 0; number < swaptions; ++number) {
            E::Operation<1> operation;
            operation.lock(results_[number].mutex);
            results_[number].sums.set({});
            results_[number].blocks = std::uint64_t{0};
        }
    }
    void work(Context& context) override
    {
        const auto [first, last] = part_of(context.thread, swaptions);
        for (std::uint64_t number = first; number < last; ++number) {
            const Step step = make_step(portfolio_[number]);
            for (std::uint64_t block = 0; block < blocks_; ++block) {
                add(results_[number], simulate_block(portfolio_[number], step, number, block, block_trials_));
                context.changed_bytes += sizeof(Sums) + sizeof block;
            }
        }
    }
    std::string fault() override
    {
        if (expected_.empty()) {
            expect();
        }
        for (std::uint64_t number = 0; number < swaptions; ++number) {
            const Sums sums = results_[number].sums.get();
            if (results_[number].blocks != blocks_ || sums.payoff != expected_[number].payoff ||
                sums.payoff_squares != expected_[number].payoff_squares) {
                return "swaption " + std::to_string(number) + " has not the price that one thread finds";
            }
            const auto trials = static_cast<double>(blocks_ * block_trials_);
            const double mean = sums.swap / trials;
            const double error = std::sqrt((sums.swap_squares / trials - mean * mean) / trials);
            if (std::abs(mean - swap_today(portfolio_[number])) > 6 * error) {
                return "the swap of swaption " + std::to_string(number) + " is worth " + std::to_string(mean) + " by simulation, but " +
                       std::to_string(swap_today(portfolio_[number])) + " by the curve";
            }
        }
        return {};
    }
    std::uint64_t items() const override { return swaptions * blocks_ * block_trials_; }

private:
    struct alignas(64) Result {
        E::Mutex mutex;
        E::Record<Sums> sums;
        E::Durable<std::uint64_t> blocks;  ///< of trials that are in the sums
    };

    static void add(Result& result, const Sums& block)
    {
        E::Operation<1> operation;
        operation.lock(result.mutex);
        Sums sums = result.sums.get();
        add_sums(sums, block);
        result.sums.set(sums);
        result.blocks = result.blocks + 1;
    }
    static void add_sums(Sums& sums, const Sums& block) noexcept
    {
        sums.payoff += block.payoff;
        sums.payoff_squares += block.payoff_squares;
        sums.swap += block.swap;
        sums.swap_squares += block.swap_squares;
    }
    void expect()
    {
        for (std::uint64_t number = 0; number < swaptions; ++number) {
            Sums& sums = expected_.emplace_back();
            const Step step = make_step(portfolio_[number]);
            for (std::uint64_t block = 0; block < blocks_; ++block) {
                add_sums(sums, simulate_block(portfolio_[number], step, number, block, block_trials_));
            }
        }
    }

    std::uint64_t block_trials_;
    std::uint64_t blocks_;
    std::vector<Swaption> portfolio_;
    Result* results_;
    std::vector<Sums> expected_;
};

}  // namespace

Work make_swaptions(const Shape& shape)
{
    return {nullptr, std::make_unique<Swaptions>(shape, input_size(shape, 16'384, 256, {256, 1'000'000'000, "trials of each swaption"}))};
}

}  // namespace bench
