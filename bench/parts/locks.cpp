// Cost of interposition alone: lock + unlock through libstillpoint with a pool open, against libc's
// own functions, in one process. Both alternate, because the machine drifts; each pair of neighbours gives one
// ratio, and the median of the ratios is reported. Uncontended: bursts of about 0.1 ms of one thread; contended:
// slices of two threads.
//
//   build/bin/bench_locks [bursts=N] [slices=N] [slice_ms=N] [pool=FILE | no_pool=1] [ignored=N]
//
// no_pool: what a program pays that is linked with libstillpoint and opens no pool. ignored: so many other locks are ignored
// (sp_lock_ignore), as a server does that holds some while it sleeps.
// Bars: uncontended at most 1.25 times plain; contended no measurable difference.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <dlfcn.h>
#include <fmt/format.h>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "../harness/commands.hpp"
#include "stillpoint/stillpoint.h"

namespace {

template <class Lock>
struct Functions {
    int (*lock)(Lock*);
    int (*unlock)(Lock*);
};

template <class Function>
Function* libc_function(const char* name)
{
    static void* const libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    return reinterpret_cast<Function*>(dlsym(libc, name));
}

double seconds_since(std::chrono::steady_clock::time_point begin)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Seconds per operation of one thread that locks, increments and unlocks `turns` times.
template <class Lock>
[[gnu::noinline]] double burst(Functions<Lock> functions, Lock& lock, int turns)
{
    static volatile std::uint64_t guarded = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (int turn = 0; turn < turns; ++turn) {
        functions.lock(&lock);
        guarded = guarded + 1;
        functions.unlock(&lock);
    }
    return seconds_since(begin) / turns;
}

/// Seconds per operation of `threads` threads that use the same lock for `milliseconds`.
template <class Lock>
double slice(Functions<Lock> functions, Lock& lock, int threads, int milliseconds)
{
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> total{0};
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) {
        workers.emplace_back([&] {
            std::uint64_t done = 0;
            while (!stop.load(std::memory_order_relaxed)) {
                burst(functions, lock, 64);
                done += 64;
            }
            total += done;
        });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    stop = true;
    workers.clear();
    return seconds_since(begin) / static_cast<double>(std::max<std::uint64_t>(total.load(), 1));
}

double median(std::vector<double> values)
{
    std::ranges::sort(values);
    return values[values.size() / 2];
}

struct Settings {
    int slices = 15;
    int slice_ms = 150;
    int bursts = 3000;
};

/// The pairs of measurements of one comparison, in seconds per operation.
struct Pairs {
    std::vector<double> plain;
    std::vector<double> intercepted;

    void print(const char* name) const
    {
        std::vector<double> ratios;
        for (std::size_t i = 0; i < plain.size(); ++i) {
            ratios.push_back(intercepted[i] / plain[i]);
        }
        std::ranges::sort(ratios);
        const double best = std::ranges::min(intercepted) / std::ranges::min(plain);
        fmt::print("{:<32} {:>8.1f} {:>12.1f} {:>13.3f} {:>14.3f}   {:.3f} to {:.3f}\n", name, 1e9 * median(plain),
                   1e9 * median(intercepted), median(ratios), best, ratios[ratios.size() / 4], ratios[ratios.size() * 3 / 4]);
        std::fflush(stdout);
    }
};

/// One thread: bursts of a fraction of a millisecond, so that both of a pair meet the same machine.
template <class Lock>
void compare_alone(const char* name, const Settings& settings, Lock& lock, Functions<Lock> intercepted, Functions<Lock> plain)
{
    constexpr int turns = 10'000;
    Pairs pairs;
    std::thread measured([&] {
        for (int i = 0; i < settings.bursts; ++i) {
            pairs.plain.push_back(burst(plain, lock, turns));
            pairs.intercepted.push_back(burst(intercepted, lock, turns));
        }
    });
    measured.join();
    pairs.print(name);
}

template <class Lock>
void compare_contended(const char* name, const Settings& settings, Lock& lock, Functions<Lock> intercepted, Functions<Lock> plain)
{
    Pairs pairs;
    for (int i = 0; i < settings.slices; ++i) {
        pairs.plain.push_back(slice(plain, lock, 2, settings.slice_ms));
        pairs.intercepted.push_back(slice(intercepted, lock, 2, settings.slice_ms));
    }
    pairs.print(name);
}

void run(const Settings& settings)
{
    fmt::print("{:<32} {:>8} {:>12} {:>13} {:>14}   {}\n", "lock + unlock", "plain ns", "intercepted", "median ratio", "ratio of bests",
               "middle half of the pairs");
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    using MutexFunction = int(pthread_mutex_t*);
    const Functions<pthread_mutex_t> plain_mutex{libc_function<MutexFunction>("pthread_mutex_lock"),
                                                 libc_function<MutexFunction>("pthread_mutex_unlock")};
    const Functions<pthread_mutex_t> mutex_functions{&pthread_mutex_lock, &pthread_mutex_unlock};
    compare_alone("mutex, uncontended", settings, mutex, mutex_functions, plain_mutex);
    compare_contended("mutex, 2 threads", settings, mutex, mutex_functions, plain_mutex);
    auto* const durable = static_cast<pthread_mutex_t*>(sp_malloc(sizeof mutex));
    pthread_mutex_init(durable, nullptr);
    compare_alone(stillpoint_is_persistent(durable) ? "mutex in durable memory" : "mutex from sp_malloc, not durable", settings, *durable,
                  mutex_functions, plain_mutex);

    pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
    using RwlockFunction = int(pthread_rwlock_t*);
    auto* const plain_unlock = libc_function<RwlockFunction>("pthread_rwlock_unlock");
    compare_alone<pthread_rwlock_t>("rwlock read, uncontended", settings, rwlock, {&pthread_rwlock_rdlock, &pthread_rwlock_unlock},
                                    {libc_function<RwlockFunction>("pthread_rwlock_rdlock"), plain_unlock});
    compare_alone<pthread_rwlock_t>("rwlock write, uncontended", settings, rwlock, {&pthread_rwlock_wrlock, &pthread_rwlock_unlock},
                                    {libc_function<RwlockFunction>("pthread_rwlock_wrlock"), plain_unlock});

    pthread_spinlock_t spinlock{};
    pthread_spin_init(&spinlock, PTHREAD_PROCESS_PRIVATE);
    using SpinFunction = int(pthread_spinlock_t*);
    compare_alone<pthread_spinlock_t>(
        "spinlock, uncontended", settings, spinlock, {&pthread_spin_lock, &pthread_spin_unlock},
        {libc_function<SpinFunction>("pthread_spin_lock"), libc_function<SpinFunction>("pthread_spin_unlock")});
}

void run_with_a_pool(const bench::Settings& words)
{
    const auto number = [&](const char* name, int usual) {
        return static_cast<int>(words.number(name, static_cast<std::uint64_t>(usual)));
    };
    Settings settings;
    settings.slices = number("slices", settings.slices);
    settings.bursts = number("bursts", settings.bursts);
    settings.slice_ms = number("slice_ms", settings.slice_ms);
    if (words.number("no_pool", 0) != 0) {
        return run(settings);
    }
    const std::string pool = words.text("pool", fmt::format("/dev/shm/bench-locks-{}.pool", getpid()));  // removed at the end
    if (sp_open(pool.c_str(), "durability=process quiet") != SP_OK) {
        throw std::runtime_error(sp_last_error());
    }
    std::vector<pthread_mutex_t> others(words.number("ignored", 0), pthread_mutex_t PTHREAD_MUTEX_INITIALIZER);
    for (pthread_mutex_t& other : others) {
        if (sp_lock_ignore(&other) != SP_OK) {
            throw std::runtime_error(sp_last_error());
        }
    }
    run(settings);
    sp_close();
    unlink(pool.c_str());
}

}  // namespace

int main(int count, char** words) { return bench::worker_main(count, words, run_with_a_pool); }
