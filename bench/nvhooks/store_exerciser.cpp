// Holds a store (store.h) against a model: std::map. Linked with one implementation, as ycsb_worker.cpp is.
//
// Usage: store_exerciser POOL POOL_MIB THREADS OPERATIONS GENERATION
//
// Each thread has keys of its own and does OPERATIONS puts, gets and removes, the same for the same GENERATION; every get
// is compared with the model. Then all of the store is. With GENERATION above 1 the store must be found as the runs
// before left it: their operations are done on the model alone first. Exit code 1 where anything differs.

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sysexits.h>
#include <thread>
#include <vector>

#include "../harness/random.hpp"
#include "../harness/worker.hpp"
#include "store.h"

namespace bench {
namespace {

constexpr std::uint64_t keys_of_a_thread = 512;

struct Owner {
    unsigned thread;
    std::map<std::uint64_t, std::uint64_t> model;  ///< key to the seed of its value
};

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
bool exercise(Owner& owner, std::uint64_t generation, std::uint64_t operations, bool store)
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
    }
    return true;
}

/// The whole store against the models of all threads.
bool whole(const std::vector<Owner>& owners)
{
    std::size_t keys = 0;
    for (const Owner& owner : owners) {
        keys += owner.model.size();
        for (std::uint64_t number = 0; number < keys_of_a_thread; ++number) {
            if (!equals((number * 64 + owner.thread) * 0x9e3779b97f4a7c15u, owner.model)) {
                return false;
            }
        }
    }
    return store_check() == static_cast<long>(keys);
}

bool run(unsigned threads, std::uint64_t operations, std::uint64_t generation)
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
            if (!exercise(owner, generation, operations, true)) {
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
    std::uint64_t numbers[4] = {};
    if (count != 6 || !bench::parse(words[2], 1, 1u << 20, numbers[0]) || !bench::parse(words[3], 1, 64, numbers[1]) ||
        !bench::parse(words[4], 1, 1u << 30, numbers[2]) || !bench::parse(words[5], 1, 1000, numbers[3])) {
        std::fputs("Usage: store_exerciser POOL POOL_MIB THREADS OPERATIONS GENERATION\n", stderr);
        return EX_USAGE;
    }
    const int failed = store_open(words[1], numbers[0] << 20);
    if (failed != 0) {
        std::fprintf(stderr, "store_exerciser: %s: %s: %s\n", words[1], std::strerror(failed), store_error());
        return EXIT_FAILURE;
    }
    const bool equal = bench::run(static_cast<unsigned>(numbers[1]), numbers[2], numbers[3]);
    store_close();
    return equal ? EXIT_SUCCESS : EXIT_FAILURE;
}
