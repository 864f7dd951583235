// Each class is the commit phase of the system of its name; the model of it is in protocols/.

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include <immintrin.h>

#include "arch/arch.hpp"
#include "arch/native.hpp"
#include "commit_phases.hpp"

namespace bench::model {
namespace {

constexpr std::size_t line_bytes = 64;
constexpr std::size_t log_bytes = std::size_t{8} << 20;
constexpr std::size_t data_bytes = std::size_t{16} << 20;
constexpr std::size_t record_bytes_max = 4096;

std::size_t whole_lines(std::size_t bytes) { return (bytes + line_bytes - 1) / line_bytes * line_bytes; }

struct Freed {
    void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<char, Freed>;

Memory memory_of(std::size_t bytes)
{
    Memory memory(static_cast<char*>(std::aligned_alloc(4096, bytes)));
    std::memset(memory.get(), 1, bytes);
    return memory;
}

/// A thread's record of its transaction, in the cache, and its log in memory.
struct alignas(line_bytes) Log {
    alignas(line_bytes) char record[record_bytes_max] = {};
    std::size_t bytes = 0;
    std::size_t end = 0;
    Memory memory = memory_of(log_bytes);
};

/// A thread as the others see it (SPHT, Algorithm 1): the timestamp, and in its lowest bit whether the transaction is persistent.
struct alignas(line_bytes) Shown {
    std::atomic<std::uint64_t> word{1};
    std::atomic<bool> is_update{false};
};

class LoggedPhase : public CommitPhase {
public:
    explicit LoggedPhase(std::size_t threads) : logs_(threads), shown_(threads), arch_(stillpoint::arch::X86_64::detect()) {}

    void begin(std::size_t thread) override
    {
        logs_[thread].bytes = 0;
        shown_[thread].is_update.store(false, std::memory_order_release);
        shown_[thread].word.store(ticks() << 1, std::memory_order_release);
    }

    void log_words(std::size_t thread, std::uint64_t value, std::size_t words) override
    {
        Log& log = logs_[thread];
        for (std::size_t i = 0; i < words && log.bytes + 24 <= record_bytes_max; ++i) {
            const std::uint64_t entry[2] = {i, value};
            std::memcpy(log.record + log.bytes, entry, sizeof entry);
            log.bytes += sizeof entry;
        }
    }

    void background(const std::stop_token&) override {}

protected:
    /// The end of the record and the record to memory.
    void flush_log(std::size_t thread, std::uint64_t timestamp)
    {
        Log& log = logs_[thread];
        std::memcpy(log.record + log.bytes, &timestamp, sizeof timestamp);
        log.bytes += sizeof timestamp;
        const std::size_t size = whole_lines(log.bytes);
        if (log.end + size > log_bytes) {
            log.end = 0;
        }
        arch_.copy_nontemporal(log.memory.get() + log.end, log.record, size);
        arch_.fence();
        log.end += size;
    }

    void publish(std::size_t thread, std::uint64_t timestamp, bool is_persistent)
    {
        shown_[thread].is_update.store(true, std::memory_order_release);
        shown_[thread].word.store(timestamp << 1 | (is_persistent ? 1 : 0), std::memory_order_release);
    }

    bool wait_for_preceding(std::size_t thread, std::uint64_t timestamp)
    {
        bool is_followed = false;
        for (std::size_t other = 0; other < shown_.size(); ++other) {
            if (other == thread) {
                continue;
            }
            std::uint64_t word = shown_[other].word.load(std::memory_order_acquire);
            while (word >> 1 < timestamp && (word & 1) == 0) {
                _mm_pause();
                word = shown_[other].word.load(std::memory_order_acquire);
            }
            is_followed = is_followed || (word >> 1 > timestamp && shown_[other].is_update.load(std::memory_order_acquire));
        }
        return is_followed;
    }

    std::vector<Log> logs_;
    std::vector<Shown> shown_;
    stillpoint::arch::X86_64 arch_;
};

class SphtPhase final : public LoggedPhase {
public:
    explicit SphtPhase(std::size_t threads) : LoggedPhase(threads), marked_(threads) {}

    void commit(std::size_t thread) override
    {
        const std::uint64_t timestamp = ticks();
        publish(thread, timestamp, false);
        flush_log(thread, timestamp);
        publish(thread, timestamp, true);
        const bool is_followed = wait_for_preceding(thread, timestamp);
        std::uint64_t marker = marker_.word.load(std::memory_order_acquire);
        while (!is_followed && marker < timestamp) {
            if (marker_.word.compare_exchange_strong(marker, timestamp)) {
                arch_.write_back(&marker_);
                arch_.fence();
                marked_[thread].word.store(timestamp, std::memory_order_release);
                return;
            }
        }
        while (std::ranges::none_of(marked_, [&](const Shown& one) { return one.word.load(std::memory_order_acquire) >= timestamp; })) {
            _mm_pause();
        }
    }

private:
    Shown marker_;
    std::vector<Shown> marked_;
};

class NvHtmPhase final : public LoggedPhase {
public:
    using LoggedPhase::LoggedPhase;

    void commit(std::size_t thread) override
    {
        const std::uint64_t timestamp = ticks();
        publish(thread, timestamp, false);
        flush_log(thread, timestamp);
        wait_for_preceding(thread, timestamp);
        // The marker lies in the last line of the transaction's log.
        char* const marker = logs_[thread].memory.get() + logs_[thread].end - sizeof timestamp;
        std::memcpy(marker, &timestamp, sizeof timestamp);
        arch_.write_back(marker);
        arch_.fence();
        publish(thread, timestamp, true);
    }
};

class DudeTmPhase final : public LoggedPhase {
public:
    using LoggedPhase::LoggedPhase;

    void begin(std::size_t thread) override { logs_[thread].bytes = 0; }

    void commit(std::size_t thread) override
    {
        const std::uint64_t number = clock_.word.fetch_add(1) + 1;
        queue_[number % queue_.size()].word.store(number << 8 | thread, std::memory_order_release);
        while (durable_.word.load(std::memory_order_acquire) < number) {
            _mm_pause();
        }
    }

    void background(const std::stop_token& stop) override
    {
        std::uint64_t durable = 0;
        while (!stop.stop_requested()) {
            std::uint64_t last = durable;
            std::uint64_t word = queue_[(last + 1) % queue_.size()].word.load(std::memory_order_acquire);
            while (word >> 8 == last + 1) {
                append(logs_[word & 255]);
                ++last;
                word = queue_[(last + 1) % queue_.size()].word.load(std::memory_order_acquire);
            }
            if (last > durable) {
                arch_.fence();
                durable = last;
                durable_.word.store(durable, std::memory_order_release);
            }
        }
    }

private:
    void append(Log& log)
    {
        const std::size_t size = whole_lines(log.bytes + 8);
        if (end_ + size > log_bytes) {
            end_ = 0;
        }
        arch_.copy_nontemporal(persistent_.get() + end_, log.record, size);
        end_ += size;
    }

    Shown clock_{.word = 0, .is_update = false};
    Shown durable_{.word = 0, .is_update = false};
    std::vector<Shown> queue_{256};
    Memory persistent_ = memory_of(log_bytes);
    std::size_t end_ = 0;
};

class CcHtmPhase final : public LoggedPhase {
public:
    using LoggedPhase::LoggedPhase;

    void commit(std::size_t thread) override
    {
        const std::uint64_t timestamp = ticks();
        publish(thread, timestamp, false);
        flush_log(thread, timestamp);
        publish(thread, timestamp, true);
        wait_for_preceding(thread, timestamp);
        ready_.word.store(timestamp << 1 | 1, std::memory_order_release);
        while (applied_.word.load(std::memory_order_acquire) < timestamp) {
            _mm_pause();
        }
    }

    /// For one thread of the program, whose transaction is the next to apply.
    void background(const std::stop_token& stop) override
    {
        std::uint64_t next = 88172645463325252;
        std::uint64_t applied = 1;
        while (!stop.stop_requested()) {
            const std::uint64_t word = ready_.word.load(std::memory_order_acquire);
            if (word == applied) {
                continue;
            }
            applied = word;
            const Log& log = logs_.front();
            for (std::size_t at = 0; at + 16 < log.bytes; at += 16) {
                next ^= next << 13;
                next ^= next >> 7;
                next ^= next << 17;
                char* const to = data_.get() + next % (data_bytes / line_bytes) * line_bytes;
                std::memcpy(to, log.memory.get() + log.end - whole_lines(log.bytes) + at + 8, 8);
                arch_.write_back(to);
            }
            arch_.fence();
            applied_.word.store(word >> 1, std::memory_order_release);
        }
    }

private:
    Shown ready_;
    Shown applied_;
    Memory data_ = memory_of(data_bytes);
};

}  // namespace

const std::vector<CommitPhaseKind>& commit_phases()
{
    static const std::vector<CommitPhaseKind> kinds{{"SPHT-NL", false}, {"NV-HTM", false}, {"DudeTM", true}, {"cc-HTM", true}};
    return kinds;
}

std::unique_ptr<CommitPhase> make_commit_phase(const std::string& system, std::size_t threads)
{
    if (system == "SPHT-NL") {
        return std::make_unique<SphtPhase>(threads);
    }
    if (system == "NV-HTM") {
        return std::make_unique<NvHtmPhase>(threads);
    }
    if (system == "DudeTM") {
        return std::make_unique<DudeTmPhase>(threads);
    }
    if (system == "cc-HTM") {
        return std::make_unique<CcHtmPhase>(threads);
    }
    throw std::runtime_error("the commit phase of " + system + " is in the model only");
}

}  // namespace bench::model
