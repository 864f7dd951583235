// model_costs: measures what the machine file of commit_model needs, on this machine, and writes that file.
//
//   build/bin/model_costs [output=FILE] [rounds=N]
//
// Each cost is measured in short batches; the file has their tenth percentile, since other work on the machine only adds. Two threads are
// pinned to two CPUs where a cost is between threads.
// The STM here is the inner part of TinySTM's: versioned locks in a table, encounter-time locking, a read set that is validated.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <pthread.h>
#include <sched.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "../harness/commands.hpp"
#include "arch/arch.hpp"
#include "arch/native.hpp"
#include "costs_stm.hpp"
#include "two_threads.hpp"
#include "json_value.hpp"

namespace {

using namespace bench::model;
using stillpoint::arch::X86_64;

constexpr std::size_t line_bytes = 64;

class Measuring {
public:
    Measuring(int rounds, int cpus) : rounds_(rounds), cpus_(cpus), arch_(X86_64::detect()) {}

    /// Nanoseconds of one of `count` turns that `batch` does.
    template <class Batch>
    double ns_of(int count, Batch batch) const
    {
        std::vector<double> found;
        for (int round = 0; round < rounds_; ++round) {
            const auto begin = std::chrono::steady_clock::now();
            batch(count);
            const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
            found.push_back(taken.count() / count);
        }
        return undisturbed(found);
    }

    double timestamp_ns() const
    {
        return ns_of(10'000, [](int count) {
            unsigned processor = 0;
            std::uint64_t sum = 0;
            for (int i = 0; i < count; ++i) {
                sum += __builtin_ia32_rdtscp(&processor);
            }
            asm volatile("" : : "r"(sum));
        });
    }

    double compare_and_swap_ns() const
    {
        Line line;
        return ns_of(10'000, [&](int count) {
            for (int i = 0; i < count; ++i) {
                std::uint64_t expected = line.value.load(std::memory_order_relaxed);
                line.value.compare_exchange_strong(expected, expected + 1);
            }
        });
    }

    double lock_ns() const
    {
        pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
        return ns_of(10'000, [&](int count) {
            for (int i = 0; i < count; ++i) {
                pthread_mutex_lock(&mutex);
                pthread_mutex_unlock(&mutex);
            }
        });
    }

    /// One thread writes 64 lines, then the other reads them, without waiting for each.
    double line_scan_ns() const
    {
        const std::unique_ptr<Line[]> lines(new Line[64]);
        Line turn;
        std::vector<double> found;
        for (int round = 0; round < rounds_; ++round) {
            turn.value = 0;
            std::jthread other([&] {
                pin_this_thread(1 % cpus_);
                for (int i = 0; i < 64; ++i) {
                    lines[static_cast<std::size_t>(i)].value.store(static_cast<std::uint64_t>(round), std::memory_order_relaxed);
                }
                turn.value.store(1, std::memory_order_release);
                while (turn.value.load(std::memory_order_acquire) != 2) {
                    _mm_pause();
                }
            });
            while (turn.value.load(std::memory_order_acquire) != 1) {
                _mm_pause();
            }
            std::uint64_t sum = 0;
            const auto begin = std::chrono::steady_clock::now();
            for (std::size_t i = 0; i < 64; ++i) {
                sum += lines[i].value.load(std::memory_order_relaxed);
            }
            asm volatile("" : : "r"(sum) : "memory");
            const std::chrono::duration<double, std::nano> taken = std::chrono::steady_clock::now() - begin;
            turn.value.store(2, std::memory_order_release);
            found.push_back(taken.count() / 64);
        }
        return undisturbed(found);
    }

    /// Address and value to the end of a log that lies in the cache.
    double log_word_ns() const
    {
        std::vector<std::uint64_t> log(512);
        return ns_of(20'000, [&](int count) {
            std::size_t at = 0;
            for (int i = 0; i < count; ++i) {
                if (at + 2 > log.size()) {
                    at = 0;
                }
                log[at++] = reinterpret_cast<std::uintptr_t>(&log) + static_cast<std::uint64_t>(i);
                log[at++] = static_cast<std::uint64_t>(i);
                asm volatile("" : : : "memory");
            }
        });
    }

    /// Appends of `lines` lines to a log of 16 MiB, each with a fence: around the caches, or stored and written back.
    double append_ns(std::size_t lines, bool around_the_caches) const
    {
        constexpr std::size_t log_bytes = std::size_t{16} << 20;
        const auto free_log = [](char* log) { std::free(log); };
        const std::unique_ptr<char, decltype(free_log)> log(static_cast<char*>(std::aligned_alloc(4096, log_bytes)), free_log);
        std::memset(log.get(), 1, log_bytes);
        alignas(line_bytes) char record[4 * line_bytes] = {1};
        std::size_t at = 0;
        return ns_of(2'000, [&](int count) {
            for (int i = 0; i < count; ++i) {
                if (at + lines * line_bytes > log_bytes) {
                    at = 0;
                }
                char* const to = log.get() + at;
                if (around_the_caches) {
                    arch_.copy_nontemporal(to, record, lines * line_bytes);
                } else {
                    std::memcpy(to, record, lines * line_bytes);
                    for (std::size_t line = 0; line < lines; ++line) {
                        arch_.write_back(to + line * line_bytes);
                    }
                }
                arch_.fence();
                at += lines * line_bytes;
            }
        });
    }

    /// Memory that is larger than the caches, as lines in a random order.
    struct Scattered {
        static constexpr std::size_t bytes = std::size_t{256} << 20;
        static void release(char* memory) { std::free(memory); }
        std::unique_ptr<char, void (*)(char*)> memory{static_cast<char*>(std::aligned_alloc(4096, bytes)), release};
        std::uint64_t state = 88172645463325252;

        Scattered() { std::memset(memory.get(), 1, bytes); }
        char* next()
        {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            return memory.get() + state % (bytes / line_bytes) * line_bytes;
        }
    };

    /// Loads of lines that are not in the caches: each waits for the one before.
    double flushed_read_ns() const
    {
        Scattered scattered;
        return ns_of(500, [&](int count) {
            for (int i = 0; i < count; ++i) {
                std::uint64_t found = 0;
                std::memcpy(&found, scattered.next(), sizeof found);
                scattered.state += found & 1;  // all bytes are 1: the next place depends on the load
            }
            asm volatile("" : : "r"(scattered.state) : "memory");
        });
    }

    double scattered_write_ns() const
    {
        constexpr int lines = 4;
        Scattered scattered;
        return ns_of(400 * lines, [&](int count) {
            for (int i = 0; i < count; i += lines) {
                for (int line = 0; line < lines; ++line) {
                    char* const to = scattered.next();
                    *to = 1;
                    arch_.write_back(to);
                }
                arch_.fence();
            }
        });
    }

    double flush_again_ns() const
    {
        Line line;
        return ns_of(2'000, [&](int count) {
            for (int i = 0; i < count; ++i) {
                line.value.store(static_cast<std::uint64_t>(i), std::memory_order_relaxed);
                arch_.write_back(&line);
                arch_.fence();
            }
        });
    }

    /// Bytes a nanosecond that all CPUs together append in records of two lines, each with a fence.
    double write_gb_per_s() const
    {
        std::vector<std::jthread> threads;
        std::atomic<std::uint64_t> sum_per_us{0};
        for (int cpu = 0; cpu < cpus_; ++cpu) {
            threads.emplace_back([&, cpu] {
                pin_this_thread(cpu);
                sum_per_us += static_cast<std::uint64_t>(1000 * 2 * line_bytes / append_ns(2, true));
            });
        }
        threads.clear();
        return static_cast<double>(sum_per_us) / 1000;
    }

private:
    int rounds_;
    int cpus_;
    X86_64 arch_;
};

struct Written {
    std::string name;
    double value;
    std::string source;
};

std::string json_of(const std::vector<Written>& costs)
{
    std::string out =
        "{\n  \"name\": \"measured_here\",\n  \"says\": \"Costs measured by model_costs on one machine, and as many cores of its kind "
        "as threads: persistent memory is DRAM there, transactions are software.\"";
    for (const Written& one : costs) {
        out += fmt::format(",\n  {}: {{\"value\": {:.4g}, \"source\": {}}}", quoted(one.name), one.value, quoted(one.source));
    }
    return out + "\n}\n";
}

/// The least squares line through the times of appends of 1 to 4 lines, as (first line, each next line).
std::pair<double, double> fitted(const double (&ns)[4])
{
    const double slope = (-1.5 * ns[0] - 0.5 * ns[1] + 0.5 * ns[2] + 1.5 * ns[3]) / 5;
    const double mean = (ns[0] + ns[1] + ns[2] + ns[3]) / 4;
    return {mean - 1.5 * slope, slope};
}

std::vector<Written> measured(int rounds)
{
    const int cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
    pin_this_thread(0);
    const Measuring measuring(rounds, cpus);
    double around[4];
    double back[4];
    for (std::size_t lines = 1; lines <= 4; ++lines) {
        around[lines - 1] = measuring.append_ns(lines, true);
        back[lines - 1] = measuring.append_ns(lines, false);
    }
    const bool is_around = around[0] + around[3] < back[0] + back[3];
    const auto [first, next] = fitted(is_around ? around : back);
    const std::string appends = fmt::format(
        "measured: the line through appends of 1, 2, 3, 4 lines with a fence. Around the caches {:.0f}, {:.0f}, {:.0f}, {:.0f} ns; stored and "
        "written back {:.0f}, {:.0f}, {:.0f}, {:.0f} ns; the faster way",
        around[0], around[1], around[2], around[3], back[0], back[1], back[2], back[3]);
    const StmCosts stm = measure_stm(rounds);
    const std::string no_htm = "not used: no transactions in hardware";
    const std::string stm_here =
        "measured: an STM with versioned locks, what its instrumentation adds to plain accesses; to be replaced by the engine's";
    const double level_2_bytes = static_cast<double>(std::max(sysconf(_SC_LEVEL2_CACHE_SIZE), 1L << 18));
    return {
        {"sockets", 1, "this kind of machine"},
        {"cores_per_socket", 64, fmt::format("assumed: more cores of the kind of these {}", cpus)},
        {"threads_per_core", 1, "this kind of machine"},
        {"hyperthread_slowdown", 1, "not used: one thread for each core"},
        {"compute_factor", 1, "assumed: as fast as the machine of the workloads' times"},
        {"line_transfer_ns", line_transfer_ns(rounds, 1 % cpus),
         "measured: two threads pass a line to and fro; half a round. Two values are common on this machine, about 45 and 145: virtual processors move"},
        {"line_scan_ns", measuring.line_scan_ns(), "measured: 64 lines that another thread has just written"},
        {"second_socket_factor", 1, "one socket"},
        {"cache_lines", level_2_bytes / line_bytes, "size of the second-level cache"},
        {"timestamp_ns", measuring.timestamp_ns(), "measured: rdtscp"},
        {"compare_and_swap_ns", measuring.compare_and_swap_ns(), "measured: uncontended"},
        {"lock_ns", measuring.lock_ns(), "measured: pthread_mutex_lock and unlock, uncontended"},
        {"log_word_ns", measuring.log_word_ns(), "measured: address and value to a log in the cache"},
        {"flush_first_line_ns", first, appends},
        {"flush_next_line_ns", std::max(0.0, next), appends},
        {"flush_again_ns", measuring.flush_again_ns(), "measured: store, write back and fence of one line, again and again"},
        {"flushed_read_ns", measuring.flushed_read_ns(), "measured: a load that misses all caches"},
        {"scattered_write_ns", std::max(0.0, measuring.scattered_write_ns() - first / 4),
         "measured: 4 stores to lines that are in no cache, write backs and a fence; for each line, without the flush of one"},
        {"second_socket_flush_factor", 1, "one socket"},
        {"persistent_write_gb_per_s", measuring.write_gb_per_s() * 64 / cpus,
         fmt::format("measured: all {} CPUs append two lines with a fence; times 64 / {}, as memory channels come with cores", cpus, cpus)},
        {"persistent_miss_ns", 0, "the memory is DRAM"},
        {"has_hardware_transactions", 0, "no TSX"},
        {"htm_begin_ns", 0, no_htm},
        {"htm_commit_ns", 0, no_htm},
        {"htm_abort_ns", 0, no_htm},
        {"htm_capacity_lines", 512, no_htm},
        {"hyperthread_capacity_share", 1, no_htm},
        {"htm_attempts", 10, "SPHT, section 4: attempts before the single global lock; the same for speculation by software"},
        {"stm_begin_ns", stm.begin_ns, stm_here},
        {"stm_read_ns", stm.read_ns, stm_here},
        {"stm_write_ns", stm.write_ns, stm_here},
        {"stm_validate_read_ns", stm.validate_read_ns, stm_here},
        {"stm_commit_write_ns", stm.commit_write_ns, stm_here},
        {"stm_abort_ns", stm.abort_ns, stm_here},
    };
}

void run(const bench::Settings& words)
{
    const std::string json = json_of(measured(static_cast<int>(words.number_from("rounds", 3, 100'000))));
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

int main(int count, char** words) { return bench::worker_main(count, words, run); }
