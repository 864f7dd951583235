// The cost of sections under an engine: a program of POSIX threads that any compiler builds and `stillpoint run` starts, with threads as
// threads (compiled by `stillpoint c++`) or as processes. Prints sections a second.
//
// Usage: bench_sections map KEYS WRITES_PERCENT THREADS SECONDS     a hash map with a mutex for each bucket
//        bench_sections pages PERCENT THREADS ROUNDS                [NVthreads, Figure 3]: each of 1000 pages in turn, a random region of
//                                                                   that part of it changed under its lock

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include "stillpoint/stillpoint.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct Node {
    std::uint64_t key;
    std::uint64_t value;
    Node* next;
};

std::uint64_t number(const char* text) { return std::strtoull(text, nullptr, 10); }

template <class Work>
double run_threads(std::uint64_t threads, const Work& work)
{
    const auto begin = Clock::now();
    std::vector<std::thread> made;
    for (std::uint64_t i = 1; i < threads; ++i) {
        made.emplace_back(work, i);
    }
    work(0);
    for (std::thread& thread : made) {
        thread.join();
    }
    return seconds_since(begin);
}

void measure_map(std::uint64_t keys, std::uint64_t writes_percent, std::uint64_t threads, double seconds)
{
    const std::uint64_t buckets = keys;
    auto** const heads = static_cast<Node**>(sp_root("heads", buckets * sizeof(Node*)));
    auto* const nodes = static_cast<Node*>(sp_root("nodes", keys * sizeof(Node)));
    if (heads == nullptr || nodes == nullptr) {
        std::fprintf(stderr, "%s\n", sp_last_error());
        std::exit(1);
    }
    std::vector<pthread_mutex_t> locks(buckets, pthread_mutex_t PTHREAD_MUTEX_INITIALIZER);
    constexpr std::uint64_t filled_at_a_time = 4096;
    for (std::uint64_t key = 0; key < keys; ++key) {
        if (key % filled_at_a_time == 0) {
            pthread_mutex_lock(&locks[0]);
        }
        Node*& head = heads[key % buckets];
        nodes[key] = {key, 0, head};
        head = &nodes[key];
        if (key % filled_at_a_time == filled_at_a_time - 1 || key + 1 == keys) {
            pthread_mutex_unlock(&locks[0]);
        }
    }
    std::atomic<std::uint64_t> sections{0};
    const double took = run_threads(threads, [&](std::uint64_t thread) {
        std::mt19937_64 random(thread);
        std::uint64_t done = 0;
        constexpr std::uint64_t between_looks = 64;
        for (const auto begin = Clock::now(); done % between_looks != 0 || seconds_since(begin) < seconds; ++done) {
            const std::uint64_t key = random() % keys;
            const std::uint64_t bucket = key % buckets;
            pthread_mutex_lock(&locks[bucket]);
            Node* node = heads[bucket];
            while (node != nullptr && node->key != key) {
                node = node->next;
            }
            if (node != nullptr && random() % 100 < writes_percent) {
                ++node->value;
            }
            pthread_mutex_unlock(&locks[bucket]);
        }
        sections += done;
    });
    std::printf("map %llu keys, %llu %% writes, %llu threads: %.0f sections/s\n", static_cast<unsigned long long>(keys),
                static_cast<unsigned long long>(writes_percent), static_cast<unsigned long long>(threads),
                static_cast<double>(sections.load()) / took);
}

void measure_pages(std::uint64_t percent, std::uint64_t threads, std::uint64_t rounds)
{
    constexpr std::uint64_t pages = 1000;
    constexpr std::uint64_t page_bytes = 4096;
    auto* const memory = static_cast<unsigned char*>(sp_root("pages", (pages + 1) * page_bytes));
    if (memory == nullptr) {
        std::fprintf(stderr, "%s\n", sp_last_error());
        std::exit(1);
    }
    unsigned char* const first = memory + (page_bytes - reinterpret_cast<std::uintptr_t>(memory) % page_bytes) % page_bytes;
    std::vector<pthread_mutex_t> locks(pages, pthread_mutex_t PTHREAD_MUTEX_INITIALIZER);
    const std::uint64_t changed = page_bytes * percent / 100;
    const double took = run_threads(threads, [&](std::uint64_t thread) {
        std::mt19937_64 random(thread);
        for (std::uint64_t round = 0; round < rounds; ++round) {
            for (std::uint64_t page = 0; page < pages; ++page) {
                const std::uint64_t begin = random() % (page_bytes - changed + 1) / 8 * 8;
                pthread_mutex_lock(&locks[page]);
                for (std::uint64_t at = begin; at + 8 <= std::min(begin + changed, page_bytes); at += 8) {
                    const std::uint64_t value = random();
                    std::memcpy(first + page * page_bytes + at, &value, sizeof value);
                }
                pthread_mutex_unlock(&locks[page]);
            }
        }
    });
    std::printf("pages %llu %%, %llu threads: %.0f sections/s\n", static_cast<unsigned long long>(percent),
                static_cast<unsigned long long>(threads), static_cast<double>(threads * rounds * pages) / took);
}

}  // namespace

int main(int count, char** arguments)
{
    if (count == 6 && std::string_view(arguments[1]) == "map") {
        measure_map(number(arguments[2]), number(arguments[3]), number(arguments[4]), static_cast<double>(number(arguments[5])));
    } else if (count == 5 && std::string_view(arguments[1]) == "pages") {
        measure_pages(number(arguments[2]), number(arguments[3]), number(arguments[4]));
    } else {
        std::fputs("Usage: bench_sections map KEYS WRITES_PERCENT THREADS SECONDS\n       bench_sections pages PERCENT THREADS ROUNDS\n",
                   stderr);
        return 64;
    }
    return 0;
}
