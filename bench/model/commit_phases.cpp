// commit_phases: real threads that do what the model says they do, to judge the model: the commit phases of some systems, without
// speculation and without conflicts, on the machine as it is. Writes a file of measurements for `commit_model --validate`.
//
//   build/bin/commit_phases workload=FILE [output=FILE] [batches=N]
//
// Bodies of transactions spin for as long as the workload says. A batch of transactions counts where the other threads did about as many
// in the meantime: otherwise one of them did not have a CPU. DudeTM and cc-HTM have a thread in the background, so with two CPUs they are
// measured with one thread of the program only.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <numbers>
#include <pthread.h>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "../harness/clock.hpp"
#include "../harness/commands.hpp"
#include "../harness/random.hpp"
#include "arch/arch.hpp"
#include "arch/native.hpp"
#include "commit_phases.hpp"
#include "descriptions.hpp"
#include "json_value.hpp"
#include "two_threads.hpp"

namespace {

using namespace bench::model;

constexpr std::uint64_t transactions_of_batch = 100;

/// A factor with mean 1 and a normally distributed logarithm, as the model draws them.
double lognormal(bench::Random& random, double sigma)
{
    const auto uniform = [&] { return static_cast<double>(random.next() >> 11) * 0x1p-53; };
    const double radius = std::sqrt(-2 * std::log1p(-uniform()));
    return std::exp(sigma * radius * std::cos(2 * std::numbers::pi * uniform()) - sigma * sigma / 2);
}

/// Ticks of the timestamp counter in a nanosecond.
double ticks_per_ns()
{
    const std::uint64_t begin_ns = bench::monotonic_ns();
    const std::uint64_t begin = ticks();
    while (bench::monotonic_ns() - begin_ns < 20'000'000) {
    }
    return static_cast<double>(ticks() - begin) / static_cast<double>(bench::monotonic_ns() - begin_ns);
}

void spin(double duration)
{
    const std::uint64_t end = ticks() + static_cast<std::uint64_t>(std::max(0.0, duration));
    while (ticks() < end) {
    }
}

struct Batches {
    std::atomic<std::uint64_t> done{0};
    std::vector<double> ticks_of_transaction;
};

struct Run {
    CommitPhase& phase;
    const TransactionClass& transactions;
    double ticks_of_ns;
    std::size_t batches;
    std::vector<std::unique_ptr<Batches>> threads;
    std::atomic<bool> stop{false};

    std::uint64_t done_by_others(std::size_t self) const
    {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < threads.size(); ++i) {
            sum += i == self ? 0 : threads[i]->done.load(std::memory_order_relaxed);
        }
        return sum;
    }

    void work(std::size_t self)
    {
        pin_this_thread(static_cast<int>(self));
        bench::Random random(self + 1);
        std::vector<double> factors(1024);
        std::ranges::generate(factors, [&] { return lognormal(random, transactions.time_sigma) * ticks_of_ns; });
        std::uint64_t number = 0;
        Batches& own = *threads[self];
        while (!stop.load(std::memory_order_relaxed)) {
            const std::uint64_t others_before = done_by_others(self);
            const std::uint64_t begin = ticks();
            for (std::uint64_t i = 0; i < transactions_of_batch; ++i) {
                const double factor = factors[random.below(factors.size())];
                spin(transactions.outside_ns * factor);
                phase.begin(self);
                phase.log_words(self, number, static_cast<std::size_t>(transactions.written_words));
                spin(transactions.body_ns * factor);
                phase.commit(self);
                own.done.store(++number, std::memory_order_relaxed);
            }
            const double taken = static_cast<double>(ticks() - begin);
            const std::uint64_t expected = transactions_of_batch * (threads.size() - 1);
            const std::uint64_t others = done_by_others(self) - others_before;
            if (others * 10 >= expected * 8 && others * 10 <= expected * 12) {
                own.ticks_of_transaction.push_back(taken / transactions_of_batch);
            }
            if (own.ticks_of_transaction.size() >= batches) {
                stop = true;
            }
        }
    }
};

double transactions_per_s(const std::string& system, std::size_t count, const TransactionClass& transactions, std::size_t batches)
{
    const std::unique_ptr<CommitPhase> phase = make_commit_phase(system, count);
    Run run{*phase, transactions, ticks_per_ns(), batches, {}, {}};
    for (std::size_t i = 0; i < count; ++i) {
        run.threads.push_back(std::make_unique<Batches>());
    }
    std::jthread background([&](const std::stop_token& stop) {
        pin_this_thread(static_cast<int>(count));
        phase->background(stop);
    });
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < count; ++i) {
        threads.emplace_back([&run, i] { run.work(i); });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    background.request_stop();
    std::vector<double> all;
    for (const auto& one : run.threads) {
        all.insert(all.end(), one->ticks_of_transaction.begin(), one->ticks_of_transaction.end());
    }
    std::ranges::sort(all);
    return 1e9 * static_cast<double>(count) * run.ticks_of_ns / all[all.size() / 4];
}

/// Throughputs at the line transfer time `transfer_ns`, which changes when a hypervisor moves a processor: measured again until it is
/// nearly the same before and after.
double at_transfer_time(double transfer_ns, const std::string& system, std::size_t threads, const TransactionClass& transactions,
                        std::size_t batches)
{
    constexpr int attempts = 500;
    const auto is_same = [&] { return std::abs(line_transfer_ns(100, 1) / transfer_ns - 1) < 0.25; };
    for (int attempt = 0; attempt < attempts; ++attempt) {
        if (!is_same()) {
            continue;
        }
        const double found = transactions_per_s(system, threads, transactions, batches);
        if (is_same()) {
            return found;
        }
    }
    throw std::runtime_error(fmt::format("a line transfer does not stay at {:.0f} ns: measure again on a quieter machine", transfer_ns));
}

void run_all(const bench::Settings& words)
{
    const Workload workload = read_workload(words.text("workload"));
    const auto batches = static_cast<std::size_t>(words.number("batches", 200));
    const auto cpus = static_cast<std::size_t>(sysconf(_SC_NPROCESSORS_ONLN));
    if (cpus < 2) {
        throw std::runtime_error("two CPUs are needed");
    }
    pin_this_thread(0);
    const double transfer_ns = line_transfer_ns(100, 1);
    std::string json = fmt::format("{{\"workload\": {}, \"machine\": \"measured_here\",\n"
                                   " \"changes\": {{\"line_transfer_ns\": {:.1f}, \"has_hardware_transactions\": 1}},\n \"measured\": {{",
                                   quoted(workload.name), transfer_ns);
    const char* separator = "\n";
    for (const CommitPhaseKind& kind : commit_phases()) {
        std::string rates;
        for (std::size_t threads = 1; threads <= 2 && threads + (kind.has_background ? 1 : 0) <= cpus; ++threads) {
            rates += fmt::format("{}{:.0f}", rates.empty() ? "" : ", ",
                                 at_transfer_time(transfer_ns, kind.system, threads, workload.classes.front(), batches));
        }
        json += fmt::format("{}  {}: [{}]", separator, quoted(kind.system), rates);
        separator = ",\n";
    }
    json += "\n}}\n";
    const std::string output = words.text("output");
    if (output.empty()) {
        fmt::print("{}", json);
        return;
    }
    std::ofstream file(output, std::ios::binary);
    file << json;
    if (!file.flush()) {
        throw std::runtime_error(fmt::format("{} cannot be written", output));
    }
}

}  // namespace

int main(int count, char** words) { return bench::worker_main(count, words, run_all); }
