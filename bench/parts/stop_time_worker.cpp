// The measured process of bench/parts/stop_time.py: a large heap of which a small part is written in each interval.
//
// Usage: stop_time_worker heap_mib=N pages_per_second=N
//
// Begins as a fresh heap (fills every page) or finds the one of the run that was killed. Its first answer has first_operation_ns: when
// its first operation ended (find the heap, lock, read and write one page), on the monotonic clock. A slice also tells the latencies of
// its operations, which is what a stop does to the program itself: latency_ns_p50, _p99, _max.
// Stores are marked by hand, so that the tracker hooks can be measured too.

#include <algorithm>
#include <cstring>
#include <pthread.h>
#include <time.h>
#include <vector>

#include "../engines/pmthreads/pmthreads_engine.hpp"
#include "../harness/turns.hpp"
#include "marks_by_hand.h"

namespace bench {
namespace {

constexpr std::size_t page_size_bytes = 4096;
constexpr std::size_t block_bytes = 1u << 20;
constexpr std::size_t pages_per_block = block_bytes / page_size_bytes;
constexpr std::uint64_t heap_mib_max = 64 * 1024;
constexpr std::uint64_t tick_ns = 1'000'000;

struct LargeHeap {
    pthread_mutex_t lock;  ///< zeroed memory is a free mutex
    std::uint64_t block_count;
    unsigned char* blocks[heap_mib_max];
};

class StopTimeWorkload final : public TurnWorkload {
public:
    StopTimeWorkload(std::uint64_t heap_mib, std::uint64_t pages_per_second)
        : heap_(static_cast<LargeHeap*>(PmthreadsEngine::root("bench.stop_time", sizeof(LargeHeap)))),
          pages_per_tick_(std::max<std::uint64_t>(1, pages_per_second * tick_ns / 1'000'000'000u))
    {
        if (heap_->block_count == 0) {
            fill(heap_mib);
        }
        latencies_.reserve(1u << 22);
    }

    void touch(std::uint64_t page)
    {
        const std::uint64_t begin_ns = monotonic_ns();
        pthread_mutex_lock(&heap_->lock);
        auto* at = heap_->blocks[page / pages_per_block] + page % pages_per_block * page_size_bytes;
        std::uint64_t word = 0;
        std::memcpy(&word, at, sizeof word);
        ++word;
        std::memcpy(at, &word, sizeof word);
        sp_mark_written(at, sizeof word);
        pthread_mutex_unlock(&heap_->lock);
        if (latencies_.size() < latencies_.capacity()) {
            latencies_.push_back(monotonic_ns() - begin_ns);
        }
    }

    // Paced: a burst of pages each millisecond, so that the pages of an interval are as many as was asked for.
    std::uint64_t perform(unsigned, Random& random) override
    {
        const std::uint64_t pages = heap_->block_count * pages_per_block;
        for (std::uint64_t i = 0; i < pages_per_tick_; ++i) {
            touch(random.below(pages));
        }
        const std::uint64_t now_ns = monotonic_ns();
        if (next_tick_ns_ < now_ns) {
            next_tick_ns_ = now_ns;  // after a pause there is nothing to catch up with
        }
        next_tick_ns_ += tick_ns;
        const timespec until{static_cast<time_t>(next_tick_ns_ / 1'000'000'000u), static_cast<long>(next_tick_ns_ % 1'000'000'000u)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
        return pages_per_tick_;
    }

    void settle() override { PmthreadsEngine::settle(); }

    void describe(Answer& answer) override
    {
        std::sort(latencies_.begin(), latencies_.end());
        const auto at = [this](double part) {
            return latencies_.empty() ? 0 : latencies_[static_cast<std::size_t>(part * static_cast<double>(latencies_.size() - 1))];
        };
        answer.number("latency_ns_p50", at(0.5)).number("latency_ns_p99", at(0.99)).number("latency_ns_max", at(1));
        latencies_.clear();
    }

private:
    void fill(std::uint64_t heap_mib)
    {
        // One FASE for each block: a FASE for all of it would hold up checkpoints for a second.
        for (std::uint64_t i = 0; i < heap_mib; ++i) {
            pthread_mutex_lock(&heap_->lock);
            auto* block = static_cast<unsigned char*>(PmthreadsEngine::allocate(block_bytes));
            std::memset(block, static_cast<int>(i & 0xff) + 1, block_bytes);
            heap_->blocks[i] = block;
            heap_->block_count = i + 1;
            sp_mark_written(block, block_bytes);
            sp_mark_written(&heap_->blocks[i], sizeof heap_->blocks[i]);
            sp_mark_written(&heap_->block_count, sizeof heap_->block_count);
            pthread_mutex_unlock(&heap_->lock);
        }
    }

    LargeHeap* heap_;
    std::uint64_t pages_per_tick_;
    std::uint64_t next_tick_ns_ = 0;
    std::vector<std::uint64_t> latencies_;  ///< of this slice; one thread works
};

void run(const Settings& settings)
{
    StopTimeWorkload workload(settings.number_from("heap_mib", 1, heap_mib_max), settings.number_from("pages_per_second", 1, 10'000'000));
    workload.touch(0);
    serve(workload, 1, Answer().number("first_operation_ns", monotonic_ns()));
}

}  // namespace
}  // namespace bench

int main(int count, char** words) { return bench::worker_main(count, words, &bench::run); }
