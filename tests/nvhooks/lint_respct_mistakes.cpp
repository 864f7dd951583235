// Every breach of the rules of restart points that `stillpoint lint` knows, each on a line that says what must be reported of it, and lines
// beside them that are right. The argument "right" leaves the breaches out; "lock" ends with a restart point inside a critical section.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <string>
#include <thread>
#include <unistd.h>

#include "stillpoint/respct.hpp"

namespace respct = stillpoint::respct;

namespace {

/// x to the power of p, as Figure 6 of the paper computes it.
struct Plain {
    std::uint64_t x;
    std::uint64_t p;
};
struct Logged {
    respct::logged<std::uint64_t> x;
    std::uint64_t p;
};

struct Mixed {
    respct::mutex guard;
    respct::condition changed;
    respct::logged<int> count;
    respct::logged<bool> is_ready;
    int one;
    int other;
    char text[100];
    std::uint64_t far[64];
};

void power_without_logging(Plain& all, std::uint64_t x, std::uint64_t p)
{
    respct::RP(1);
    all.x = x;
    respct::add_modified(all.x);
    all.p = p;
    respct::add_modified(all.p);
    respct::RP(2);
    const std::uint64_t base = all.x;
    for (std::uint64_t i = 1; i < all.p; ++i) {
        all.x = all.x * base;  // expect: store-needs-logging
        respct::add_modified(all.x);
    }
    respct::RP(3);
}

void power(Logged& all, std::uint64_t x, std::uint64_t p)
{
    respct::RP(4);
    all.x = x;
    all.p = p;
    respct::add_modified(all.p);
    respct::RP(5);
    const std::uint64_t base = all.x;
    for (std::uint64_t i = 1; i < all.p; ++i) {
        all.x = all.x * base;
    }
    respct::RP(6);
}

void add_one(int& number)
{
    number += 1;  // expect: store-needs-logging
    respct::add_modified(number);
}

void unlogged(Mixed& all)
{
    respct::RP(7);
    add_one(all.one);
    respct::RP(8);
    const int seen = all.other;
    std::memset(&all.other, seen, sizeof all.other);  // expect: store-needs-logging
    respct::add_modified(all.other);
    respct::RP(9);
}

/// No interval between two restart points breaks a rule; the three together do.
void unlogged_later(Mixed& all)
{
    respct::RP(16);
    all.far[50] = 1;
    respct::add_modified(all.far[50]);
    respct::RP(17);
    const std::uint64_t seen = all.far[50];
    respct::RP(18);
    all.far[50] = 2;  // expect: store-needs-logging
    all.far[51] = seen;
    respct::add_modified(&all.far[50], 16);
    respct::RP(19);
}

void untracked(Mixed& all)
{
    respct::RP(10);
    all.far[20] = 1;  // expect: store-not-tracked
    respct::RP(15);
    std::strcpy(all.text + 64, "a text");
    respct::add_modified(all.text + 64, 7);
    respct::add_modified(all.far);  // Before or after the stores is all one.
    all.far[9] = 1;
    respct::RP(11);
    all.far[9] = 2;  // expect: store-not-tracked
    all.far[40] = 3;
    respct::add_modified(&all.far[40], 8);
    sp_respct_checkpoint_allow();
    sp_respct_checkpoint_prevent(nullptr);
    all.far[40] = 4;  // expect: store-not-tracked
}

void* nothing(void*) { return nullptr; }

void blocking(Mixed& all)
{
    respct::RP(12);
    pthread_t thread;
    pthread_create(&thread, nullptr, nothing, nullptr);
    pthread_join(thread, nullptr);  // expect: blocking-call pthread_join
    std::thread another([] {});
    another.join();  // expect: blocking-call std::thread::join
    usleep(1);  // expect: blocking-call usleep
    sem_t semaphore;
    sem_init(&semaphore, 0, 1);
    sem_wait(&semaphore);  // expect: blocking-call sem_wait
    int ends[2];
    char byte = 'x';
    if (pipe(ends) == 0 && write(ends[1], &byte, 1) == 1 && read(ends[0], &byte, 1) == 1) {  // expect: blocking-call read
        close(ends[0]);
        close(ends[1]);
    }
    static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
    static bool is_ready = false;
    pthread_mutex_lock(&guard);  // Before the thread begins, so that it cannot be ready before this one waits.
    std::thread opener([] {
        respct::RP(13);
        pthread_mutex_lock(&guard);
        is_ready = true;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&guard);
    });
    while (!is_ready) {
        pthread_cond_wait(&changed, &guard);  // expect: blocking-call pthread_cond_wait
    }
    pthread_mutex_unlock(&guard);
    const respct::blocking_call wait;
    opener.join();
}

void right(Mixed& all, Logged& figure)
{
    power(figure, 3, 7);
    respct::RP(20);
    all.one = all.other;  // The neighbour in the word is read; this one is not.
    respct::add_modified(all.one);
    respct::RP(21);
    std::thread opener([&all] {
        respct::critical_section section(22, all.guard);
        ++all.count;
        all.is_ready = true;
        all.changed.notify_one();
    });
    {
        respct::critical_section section(23, all.guard);
        section.wait(all.changed, [&all] { return all.is_ready.get(); });
        all.is_ready = false;
    }
    for (int round = 0; round < 3; ++round) {  // A block that was freed is another when it is given out again.
        auto* const used_again = respct::make<Mixed>();
        used_again->one = 1;
        respct::add_modified(used_again->one);
        respct::RP(27);
        used_again->count = used_again->one;
        respct::destroy(used_again);
        respct::RP(28);
    }
    auto* const made = respct::make<Mixed>();
    made->count = made->count + 1;
    made->far[3] = made->far[4] + 1;  // New since the restart point.
    respct::add_modified(made->far);
    respct::destroy(made);
    char byte = 0;
    const int file = open("/proc/self/exe", O_RDONLY);
    const bool is_read = read(file, &byte, 1) == 1;  // A file does not block.
    close(file);
    respct::RP(is_read ? 24 : 25);
    std::thread late([&all] {
        all.guard.lock();
        ++all.count;  // The thread's first call of respct.h is made under a lock.
        all.guard.unlock();
        respct::RP(26);
    });
    const respct::blocking_call wait;
    opener.join();
    late.join();
    usleep(1);
}

}  // namespace

int main(int count, char** words)
{
    const std::string which = count > 1 ? words[1] : "";
    auto& plain = *respct::root<Plain>("plain");
    auto& figure = *respct::root<Logged>("logged");
    auto& all = *respct::root<Mixed>("mixed");
    if (which == "lock") {
        all.guard.lock();
        respct::RP(30);  // expect in lock: restart-point-in-section
        return 0;
    }
    right(all, figure);
    if (which == "right") {
        return 0;
    }
    power_without_logging(plain, 3, 7);
    unlogged(all);
    unlogged_later(all);
    untracked(all);
    blocking(all);
    std::thread last([&all] {
        respct::RP(31);
        all.far[60] = 1;  // expect: store-not-tracked
    });
    const respct::blocking_call wait;
    last.join();
    return 0;
}
