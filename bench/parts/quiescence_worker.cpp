// The measured process of bench/parts/quiescence.py: one thread changes durable memory; another is
// busy outside every FASE in a way that would stop a system that waits for all threads.
//
// Usage: quiescence_worker other=none|sleep|compute|read
//   none     there is no other thread
//   sleep    it sleeps forever
//   compute  it computes forever
//   read     it is blocked in read() on a pipe without a writer

#include <atomic>
#include <pthread.h>
#include <thread>
#include <time.h>
#include <unistd.h>

#include "../engines/pmthreads/pmthreads_engine.hpp"
#include "../harness/turns.hpp"

namespace bench {
namespace {

struct Counter {
    pthread_mutex_t lock;  ///< zeroed memory is a free mutex
    std::uint64_t value;
};

class CounterWorkload final : public TurnWorkload {
public:
    std::uint64_t perform(unsigned, Random&) override
    {
        pthread_mutex_lock(&counter_->lock);
        ++counter_->value;
        pthread_mutex_unlock(&counter_->lock);
        const timespec pause{0, 100'000};
        nanosleep(&pause, nullptr);
        return 1;
    }
    void settle() override { PmthreadsEngine::settle(); }

private:
    Counter* counter_ = static_cast<Counter*>(PmthreadsEngine::root("bench.quiescence", sizeof(Counter)));
};

using Body = void (*)();

void sleep_for_ever()
{
    while (true) {
        sleep(3600);
    }
}

void compute_for_ever()
{
    std::atomic<std::uint64_t> number{0};  // atomic, so that the loop may not be optimised away
    while (true) {
        number.store(number.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
}

void read_for_ever()
{
    int ends[2];
    char byte = 0;
    if (pipe(ends) == 0) {
        while (read(ends[0], &byte, 1) >= 0) {
        }
    }
}

void run(const Settings& settings)
{
    constexpr struct {
        const char* name;
        Body body;
    } others[] = {{"none", nullptr}, {"sleep", sleep_for_ever}, {"compute", compute_for_ever}, {"read", read_for_ever}};
    for (const auto& other : others) {
        if (settings.text("other") == other.name) {
            CounterWorkload workload;
            if (other.body != nullptr) {
                std::thread(other.body).detach();
            }
            serve(workload, 1);
            return;
        }
    }
    give_up("other is none, sleep, compute or read");
}

}  // namespace
}  // namespace bench

int main(int count, char** words) { return bench::worker_main(count, words, &bench::run); }
