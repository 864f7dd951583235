#include "two_threads.hpp"

#include <algorithm>
#include <chrono>
#include <pthread.h>
#include <sched.h>
#include <stop_token>
#include <thread>

namespace bench::model {

void pin_this_thread(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(cpu), &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

double undisturbed(std::vector<double> values)
{
    std::ranges::sort(values);
    return values[values.size() / 10];
}

double line_transfer_ns(int rounds, int other_cpu)
{
    constexpr int passes = 50;
    Line line;  // even: this thread's turn
    const std::jthread other([&](const std::stop_token& stop) {
        pin_this_thread(other_cpu);
        while (!stop.stop_requested()) {
            const std::uint64_t turn = line.value.load(std::memory_order_acquire);
            if (turn % 2 == 1) {
                line.value.store(turn + 1, std::memory_order_release);
            }
        }
    });
    std::vector<double> found;
    for (int round = 0; round < rounds; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        for (int pass = 0; pass < passes; ++pass) {
            const std::uint64_t turn = line.value.load(std::memory_order_relaxed);
            line.value.store(turn + 1, std::memory_order_release);
            while (line.value.load(std::memory_order_acquire) != turn + 2) {
            }
        }
        const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
        found.push_back(taken.count() / (2 * passes));
    }
    return undisturbed(found);
}

}  // namespace bench::model
