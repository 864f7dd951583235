// Holds a store (store.h) against a model: std::map. Linked with one implementation, as ycsb_worker.cpp is.
//
// Usage: store_exerciser pool=PATH pool_mib=N threads=N operations=N generation=N [acknowledged=PATH]
//
// Each thread has keys of its own and does `operations` puts, gets and removes, the same for the same `generation`; every get
// is compared with the model. Then all of the store is. With a generation above 1 the store must be found as the runs
// before left it: their operations are done on the model alone first. Exit code 1 or 70 where anything differs.
//
// `acknowledged` is a file in which each thread counts its operations that have returned, so that the process can be killed. With 0
// operations the store must then be as after those of the file, or after one more of a thread that was killed within it.

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <sys/mman.h>
#include <unistd.h>
#include <thread>
#include <vector>

#include "../harness/turns.hpp"
#include "store.h"

namespace bench {
namespace {

constexpr std::uint64_t keys_of_a_thread = 512;

struct Owner {
    unsigned thread;
    std::map<std::uint64_t, std::uint64_t> model;  ///< key to the seed of its value
};

/// One count for each thread in a file; NULL where none is asked for. It survives the process as the page cache does.
std::atomic<std::uint64_t>* map_counts(const char* path)
{
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void* found = file >= 0 && ftruncate(file, 4096) == 0 ? mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    if (found == MAP_FAILED) {
        std::perror(path);
        std::exit(EXIT_FAILURE);
    }
    close(file);
    return static_cast<std::atomic<std::uint64_t>*>(found);
}

void make_value(unsigned char (&value)[STORE_VALUE_BYTES], std::uint64_t seed)
{
    Random random(seed);
    for (std::size_t at = 0; at < sizeof value; at += sizeof seed) {
        const std::uint64_t word = random.next();
        std::memcpy(value + at, &word, sizeof word);
    }
}

bool equals(std::uint64_t key, const std::map<std::uint64_t, std::uint64_t>& model)
{
    unsigned char found[STORE_VALUE_BYTES];
    unsigned char wanted[STORE_VALUE_BYTES];
    const auto known = model.find(key);
    if (store_get(key, found) != (known != model.end())) {
        return false;
    }
    if (known == model.end()) {
        return true;
    }
    make_value(wanted, known->second);
    return std::memcmp(found, wanted, sizeof found) == 0;
}

/// One generation's operations of one thread; on the model alone where `store` is false. False: the store differs.
bool exercise(Owner& owner, std::uint64_t generation, std::uint64_t operations, bool store,
              std::atomic<std::uint64_t>* acknowledged = nullptr)
{
    Random random(generation * 1000 + owner.thread);
    for (std::uint64_t i = 0; i < operations; ++i) {
        const std::uint64_t key = (random.below(keys_of_a_thread) * 64 + owner.thread) * 0x9e3779b97f4a7c15u;
        const std::uint64_t choice = random.below(10);
        const std::uint64_t seed = random.next();
        if (choice < 5) {
            unsigned char value[STORE_VALUE_BYTES];
            make_value(value, seed);
            if (store && store_put(key, value) != 0) {
                return false;
            }
            owner.model[key] = seed;
        } else if (choice < 7) {
            if (store && store_remove(key) != (owner.model.count(key) == 1)) {
                return false;
            }
            owner.model.erase(key);
        } else if (store && !equals(key, owner.model)) {
            return false;
        }
        if (acknowledged != nullptr) {
            acknowledged[owner.thread] = i + 1;
        }
    }
    return true;
}

bool equals_all(const Owner& owner)
{
    for (std::uint64_t number = 0; number < keys_of_a_thread; ++number) {
        if (!equals((number * 64 + owner.thread) * 0x9e3779b97f4a7c15u, owner.model)) {
            return false;
        }
    }
    return true;
}

/// After a kill: nothing that was acknowledged is lost, and of what was not at most one operation of each thread is there.
bool verify_killed(unsigned threads, const std::atomic<std::uint64_t>* acknowledged)
{
    for (unsigned thread = 0; thread < threads; ++thread) {
        Owner before{thread, {}};
        Owner after{thread, {}};
        (void)exercise(before, 1, acknowledged[thread], false);
        (void)exercise(after, 1, acknowledged[thread] + 1, false);
        if (!equals_all(before) && !equals_all(after)) {
            std::fprintf(stderr, "store_exerciser: %s: thread %u: not as after %" PRIu64 " operations, nor one more\n", store_name(),
                         thread, acknowledged[thread].load());
            return false;
        }
    }
    return store_check() >= 0;
}

/// The whole store against the models of all threads.
bool whole(const std::vector<Owner>& owners)
{
    std::size_t keys = 0;
    for (const Owner& owner : owners) {
        keys += owner.model.size();
        if (!equals_all(owner)) {
            return false;
        }
    }
    return store_check() == static_cast<long>(keys);
}

bool run(unsigned threads, std::uint64_t operations, std::uint64_t generation, std::atomic<std::uint64_t>* acknowledged)
{
    std::vector<Owner> owners;
    for (unsigned thread = 0; thread < threads; ++thread) {
        owners.push_back({thread, {}});
        for (std::uint64_t earlier = 1; earlier < generation; ++earlier) {
            (void)exercise(owners.back(), earlier, operations, false);
        }
    }
    if (!whole(owners)) {
        std::fprintf(stderr, "store_exerciser: %s: not as the last run left it\n", store_name());
        return false;
    }
    std::atomic<bool> equal{true};
    std::vector<std::thread> running;
    for (Owner& owner : owners) {
        running.emplace_back([&] {
            if (!exercise(owner, generation, operations, true, acknowledged)) {
                equal = false;
            }
        });
    }
    for (std::thread& thread : running) {
        thread.join();
    }
    if (!equal || !whole(owners)) {
        std::fprintf(stderr, "store_exerciser: %s: differs from the model\n", store_name());
        return false;
    }
    return true;
}

}  // namespace
}  // namespace bench

int main(int count, char** words)
{
    const bench::Settings settings(count, words);
    const std::string pool = settings.text("pool");
    const auto threads = static_cast<unsigned>(settings.number_from("threads", 1, 64));
    const std::uint64_t operations = settings.number_from("operations", 0, 1u << 30);
    const std::string counts = settings.text("acknowledged");
    std::atomic<std::uint64_t>* const acknowledged = counts.empty() ? nullptr : bench::map_counts(counts.c_str());
    const int failed = store_open(pool.c_str(), settings.number_from("pool_mib", 1, 1u << 20) << 20);
    if (failed != 0) {
        bench::give_up(pool + ": " + std::strerror(failed) + ": " + store_error());
    }
    const bool equal = acknowledged != nullptr && operations == 0
                           ? bench::verify_killed(threads, acknowledged)
                           : bench::run(threads, operations, settings.number_from("generation", 1, 1000), acknowledged);
    store_close();
    return equal ? EXIT_SUCCESS : EXIT_FAILURE;
}
