#pragma once
// The world that protocols act in: the threads, what each of them lets the others see, and the costs of the machine.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "../harness/random.hpp"
#include "descriptions.hpp"
#include "event_engine.hpp"

namespace bench::model {

/// Where a thread's time goes; the shares of SPHT's Figure 4c, and the time outside of transactions.
enum class Activity : std::uint8_t { outside, committed, aborted, fallback, commit_phase };
inline constexpr std::size_t activities = 5;

enum class Abort : std::uint8_t { conflict, capacity, lock, clock, validation };
inline constexpr std::size_t aborts = 5;

/// One transaction of the program: the same through all its attempts. Times are of this machine without instrumentation.
struct Transaction {
    std::size_t class_number;
    double outside_ns;
    double body_ns;
    double read_words;
    double written_words;
    double written_lines;
    double missed_lines;

    [[nodiscard]] bool is_read_only() const noexcept { return written_words == 0; }
    /// Address and value of each written word, and a timestamp that ends them (SPHT, 3.1).
    [[nodiscard]] double log_bytes() const noexcept { return 16 * written_words + 8; }
};

struct Counters {
    std::uint64_t attempts = 0;   ///< speculative
    std::uint64_t committed = 0;  ///< transactions, durable
    std::uint64_t speculated = 0; ///< attempts that committed
    std::uint64_t fallbacks = 0;  ///< transactions under the single global lock
    std::array<std::uint64_t, aborts> aborted{};
    std::uint64_t flushes = 0;
    std::array<double, activities> time_ns{};
};

/// A simulated thread.
struct Worker {
    int id = 0;
    int socket = 0;
    Worker* sibling = nullptr;  ///< the other hardware thread of the core, where that is used too
    bool is_computing = false;
    Random random;
    Sleeper sleeper;
    Counters counters;

    // Seen by other threads of this one (SPHT, Algorithm 1: ts, isPers, isUpd). `changed` wakes those that wait for a change.
    double timestamp = 0;
    bool is_persistent = true;
    bool is_update = false;
    Signal changed;
    std::uint64_t version = 0;                 ///< of the line that these lie in
    std::vector<std::uint64_t> seen_versions;  ///< of the others' lines
    bool is_line_shared = false;               ///< another thread has read it since the last change
    double owned_again_ns = 0;                 ///< when the last change has the line for itself: a fence waits for that

    /// Uniform in [0, 1).
    double uniform() noexcept { return static_cast<double>(random.next() >> 11) * 0x1p-53; }
    /// A factor with mean 1 and a normally distributed logarithm.
    double lognormal(double sigma) noexcept;
};

/// A line that several threads write: a lock's, a clock's, a marker's.
struct SharedLine {
    const Worker* owner = nullptr;
    Server transfers;
};

class World {
public:
    World(const Machine& machine, const Workload& workload, int threads, std::uint64_t seed);

    Simulation simulation;
    const Machine& machine;
    const Workload& workload;
    std::vector<std::unique_ptr<Worker>> workers;
    std::uint64_t committed = 0;  ///< transactions of all threads, durable

    [[nodiscard]] Transaction next_transaction(Worker& worker) const;

    /// co_await: computes, slower where the sibling does. Time counts as `activity`.
    [[nodiscard]] Task<> compute(Worker& worker, double duration_ns, Activity activity);
    /// A factor of the time that a computation takes which begins now.
    [[nodiscard]] double slowdown(const Worker& worker) const noexcept
    {
        return worker.sibling != nullptr && worker.sibling->is_computing ? machine.hyperthread_slowdown : 1;
    }

    /// Larger than all that were given before. Threads never share one.
    [[nodiscard]] double timestamp(const Worker& worker) const noexcept { return simulation.now_ns() + 1e-6 * worker.id; }

    /// co_await: lines that hold `bytes`, and were not flushed just before, become durable. Waits for the memory's bandwidth too.
    [[nodiscard]] Simulation::Delay flush(Worker& worker, double bytes);
    /// co_await: a flush of one line that was flushed just before.
    [[nodiscard]] Simulation::Delay flush_again(Worker& worker);
    /// Starts the write back of one line, without a wait; it takes its part of the memory's bandwidth.
    void write_back_unfenced(Worker& worker);
    /// A line that another thread has written.
    [[nodiscard]] double transfer_ns(const Worker& from, const Worker& to) const noexcept
    {
        return machine.line_transfer_ns * (from.socket == to.socket ? 1 : machine.second_socket_factor);
    }
    /// Time of an atomic change of a line that several threads write: waits for those that came before. Takes the line now.
    [[nodiscard]] double access_ns(SharedLine& line, const Worker& worker) const;
    /// co_await: such a change.
    [[nodiscard]] Simulation::Delay access(SharedLine& line, const Worker& worker) { return simulation.delay(access_ns(line, worker)); }
    /// co_await: one pass over what all other threads show. Lines that have changed since this thread's last pass are transferred.
    [[nodiscard]] Simulation::Delay scan(Worker& worker);

    /// Changes what other threads see, and wakes those that wait for it.
    void publish(Worker& worker, double timestamp, bool is_persistent, bool is_update);

    void account(Worker& worker, Activity activity, double since_ns) const
    {
        worker.counters.time_ns[static_cast<std::size_t>(activity)] += simulation.now_ns() - since_ns;
    }

private:
    double memory_ns(Worker& worker, double lines, double latency_ns);
    [[nodiscard]] double sharing_ns(const Worker& worker, const TransactionClass& one) const;

    Server persistent_memory_;
};

}  // namespace bench::model
