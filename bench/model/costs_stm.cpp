#include "costs_stm.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../harness/random.hpp"
#include "two_threads.hpp"

namespace bench::model {
namespace {

constexpr std::size_t words = std::size_t{1} << 19;  // 4 MiB
constexpr std::size_t locks = std::size_t{1} << 20;
constexpr std::size_t reads = 64;
constexpr std::size_t writes = 16;

/// One thread's transactions. A lock is even with a version, odd while its owner holds it.
class Stm {
public:
    Stm() : data_(words), locks_(locks)
    {
        read_set_.reserve(reads);
        write_set_.reserve(writes);
    }

    [[gnu::noinline]] bool begin()
    {
        read_set_.clear();
        write_set_.clear();
        snapshot_ = clock_.load(std::memory_order_acquire);
        return setjmp(restart_) == 0;
    }

    [[gnu::noinline]] std::uint64_t read(std::size_t word)
    {
        std::atomic<std::uint64_t>& lock = lock_of(word);
        const std::uint64_t before = lock.load(std::memory_order_acquire);
        const std::uint64_t value = data_[word].load(std::memory_order_acquire);
        if ((before & 1) != 0 || lock.load(std::memory_order_relaxed) != before || before > snapshot_) {
            std::longjmp(restart_, 1);
        }
        read_set_.push_back({&lock, before});
        return value;
    }

    [[gnu::noinline]] void write(std::size_t word, std::uint64_t value)
    {
        std::atomic<std::uint64_t>& lock = lock_of(word);
        std::uint64_t version = lock.load(std::memory_order_acquire);
        if ((version & 1) != 0 || !lock.compare_exchange_strong(version, version | 1)) {
            std::longjmp(restart_, 1);
        }
        write_set_.push_back({&lock, version, word, value});
    }

    [[gnu::noinline]] bool validate() const
    {
        return std::ranges::all_of(read_set_, [](const Read& one) { return one.lock->load(std::memory_order_acquire) == one.version; });
    }

    [[gnu::noinline]] void write_back()
    {
        for (const Write& one : write_set_) {
            data_[one.word].store(one.value, std::memory_order_relaxed);
            one.lock->store(one.version, std::memory_order_release);
        }
    }

    [[gnu::noinline]] void roll_back()
    {
        for (const Write& one : write_set_) {
            one.lock->store(one.version, std::memory_order_release);
        }
    }

    [[gnu::noinline]] std::uint64_t plain_read(std::size_t word) const { return data_[word].load(std::memory_order_relaxed); }
    [[gnu::noinline]] void plain_write(std::size_t word, std::uint64_t value) { data_[word].store(value, std::memory_order_relaxed); }

private:
    struct Read {
        std::atomic<std::uint64_t>* lock;
        std::uint64_t version;
    };
    struct Write {
        std::atomic<std::uint64_t>* lock;
        std::uint64_t version;
        std::size_t word;
        std::uint64_t value;
    };

    std::atomic<std::uint64_t>& lock_of(std::size_t word) { return locks_[word * 2 & (locks - 1)]; }

    std::vector<std::atomic<std::uint64_t>> data_;
    std::vector<std::atomic<std::uint64_t>> locks_;
    std::atomic<std::uint64_t> clock_{0};
    std::uint64_t snapshot_ = 0;
    std::vector<Read> read_set_;
    std::vector<Write> write_set_;
    std::jmp_buf restart_;
};

class Stopwatch {
public:
    double lap_ns()
    {
        const auto now = std::chrono::steady_clock::now();
        const std::chrono::duration<double, std::nano> taken = now - begin_;
        begin_ = now;
        return taken.count();
    }

private:
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

StmCosts measure_stm(int rounds)
{
    constexpr int transactions = 200;
    Stm stm;
    Random random(7);
    std::vector<std::size_t> at(reads + writes);
    // By part: plain reads and writes, begin, reads, writes, validation, write back, roll back. Reading the clock costs as much as a part.
    std::vector<std::vector<double>> found(8);
    for (int round = 0; round < rounds; ++round) {
        std::vector<double> sums(found.size());
        for (int transaction = 0; transaction < transactions; ++transaction) {
            for (std::size_t i = 0; i < at.size(); ++i) {
                // Locks of a transaction differ: each comes from a part of the data of its own.
                at[i] = i * (words / at.size()) + random.below(words / at.size());
            }
            std::uint64_t sum = 0;
            Stopwatch watch;
            for (std::size_t i = 0; i < reads; ++i) {
                sum += stm.plain_read(at[i]);
            }
            sums[0] += watch.lap_ns();
            for (std::size_t i = reads; i < at.size(); ++i) {
                stm.plain_write(at[i], sum + i);
            }
            sums[1] += watch.lap_ns();
            if (!stm.begin()) {
                continue;  // one thread meets no conflict
            }
            sums[2] += watch.lap_ns();
            for (std::size_t i = 0; i < reads; ++i) {
                sum += stm.read(at[i]);
            }
            sums[3] += watch.lap_ns();
            for (std::size_t i = reads; i < at.size(); ++i) {
                stm.write(at[i], sum);
            }
            sums[4] += watch.lap_ns();
            sum += stm.validate() ? 1U : 0U;
            sums[5] += watch.lap_ns();
            if (transaction % 2 == 0) {
                stm.write_back();
                sums[6] += 2 * watch.lap_ns();
            } else {
                stm.roll_back();
                sums[7] += 2 * watch.lap_ns();
            }
            asm volatile("" : : "r"(sum) : "memory");
        }
        for (std::size_t i = 0; i < sums.size(); ++i) {
            found[i].push_back(sums[i] / transactions);
        }
    }
    std::vector<double> laps(1000);
    Stopwatch watch;
    std::ranges::generate(laps, [&] { return watch.lap_ns(); });
    const double lap_ns = undisturbed(laps);
    const auto part = [&](std::size_t i, double count) { return std::max(0.0, undisturbed(found[i]) - lap_ns) / count; };
    const double read_ns = part(3, reads) - part(0, reads);
    const double write_ns = part(4, writes) - part(1, writes);
    return {part(2, 1), std::max(0.0, read_ns), std::max(0.0, write_ns), part(5, reads), part(6, writes), part(7, 1)};
}

}  // namespace bench::model
