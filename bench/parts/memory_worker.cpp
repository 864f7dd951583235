// The measured process of bench/parts/memory.py: memory that is filled once, and of which words are changed from two threads.
//
// Usage: memory_worker heap_mib=N changed_pages=N durable=0|1
//
// `changed_pages`: words of so many pages are changed, which lie evenly in the heap; 0: of all. Its first answer has data_at, the place
// of the heap. Stores are marked by hand, so that the tracker hooks can be measured too.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <pthread.h>

#include "../engines/pmthreads/pmthreads_engine.hpp"
#include "../harness/turns.hpp"
#include "marks_by_hand.h"

namespace bench {
namespace {

constexpr std::uint64_t page_size_bytes = 4096;
constexpr std::uint64_t mib_bytes = 1u << 20;
constexpr unsigned thread_count = 2;
constexpr unsigned changes_of_turn = 16;

class MemoryWorkload final : public TurnWorkload {
public:
    MemoryWorkload(std::uint64_t heap_mib, std::uint64_t changed_pages, bool is_durable)
        : is_durable_(is_durable), heap_(static_cast<unsigned char*>(is_durable ? PmthreadsEngine::allocate(heap_mib * mib_bytes)
                                                                                : std::malloc(heap_mib * mib_bytes))),
          changed_pages_(changed_pages == 0 ? heap_mib * mib_bytes / page_size_bytes : changed_pages),
          pages_apart_(heap_mib * mib_bytes / page_size_bytes / changed_pages_)
    {
        // One FASE for each MiB: a FASE for all of it would hold up checkpoints.
        for (std::uint64_t i = 0; i < heap_mib; ++i) {
            pthread_mutex_lock(&locks_[0].mutex);
            std::memset(heap_ + i * mib_bytes, static_cast<int>(i & 0xff) + 1, mib_bytes);
            mark(heap_ + i * mib_bytes, mib_bytes);
            pthread_mutex_unlock(&locks_[0].mutex);
        }
    }

    std::uint64_t perform(unsigned thread, Random& random) override
    {
        pthread_mutex_lock(&locks_[thread].mutex);
        for (unsigned i = 0; i < changes_of_turn; ++i) {
            unsigned char* const at = heap_ + random.below(changed_pages_) * pages_apart_ * page_size_bytes +
                                      random.below(page_size_bytes / sizeof(std::uint64_t)) * sizeof(std::uint64_t);
            __atomic_fetch_add(reinterpret_cast<std::uint64_t*>(at), 1, __ATOMIC_RELAXED);  // The other thread may change the same word.
            mark(at, sizeof(std::uint64_t));
        }
        pthread_mutex_unlock(&locks_[thread].mutex);
        return changes_of_turn;
    }

    void settle() override
    {
        if (is_durable_) {
            PmthreadsEngine::settle();
        }
    }

    [[nodiscard]] std::uint64_t data_at() const { return reinterpret_cast<std::uint64_t>(heap_); }

private:
    struct alignas(64) Lock {
        pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    };

    void mark(const void* at, std::size_t bytes) const
    {
        if (is_durable_) {
            sp_mark_written(at, bytes);
        }
    }

    bool is_durable_;
    unsigned char* heap_;
    std::uint64_t changed_pages_;
    std::uint64_t pages_apart_;
    Lock locks_[thread_count];
};

void run(const Settings& settings)
{
    const std::uint64_t heap_mib = settings.number_from("heap_mib", 1, 16 * 1024);
    MemoryWorkload workload(heap_mib, settings.number_from("changed_pages", 0, heap_mib * mib_bytes / page_size_bytes),
                            settings.number_from("durable", 0, 1) == 1);
    serve(workload, thread_count, Answer().number("data_at", workload.data_at()));
}

}  // namespace
}  // namespace bench

int main(int count, char** words) { return bench::worker_main(count, words, &bench::run); }
