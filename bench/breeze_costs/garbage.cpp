// The collection of garbage by the engine breeze, as lines of JSON: slices of the same transactions with it and without it.
//
//   breeze_garbage POOL THREADS RECORDS OPERATIONS SECONDS
//
// A hash map with values of 1000 bytes; half of the operations read a record, half replace one by a new object, so that the old one is
// garbage. Keys by a power law; each thread has keys of its own. A slice has 20 times OPERATIONS operations of each thread. In one
// "with", the engine's thread applies activation records and frees objects meanwhile, and `settled_ns` ends when nothing waits any more:
// most of the work must be done by then, or the slice is too short to tell. In one "without" that thread does not run. Records wait in the
// logs, which have room for a piece; between pieces they are applied, and that time does not count. The two kinds alternate.

#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "../harness/random.hpp"
#include "../harness/zipf.hpp"
#include "engines/breeze/breeze_pool.hpp"
#include "media/open.hpp"
#include "stillpoint/breeze.h"

namespace {

using namespace stillpoint;
using breeze::BreezePool;
using breeze::Transaction;

struct Record {
    Record* next;
    std::uint64_t key;
    char value[1000];
};
struct Table {
    std::uint64_t buckets;
    Record* heads[1];  ///< and more
};
NVM_TYPE(Record, NVM_HAS_PTR(Record, next));
NVM_TYPE(Table, NVM_HAS_PTR_TAIL(Table, heads));

constexpr std::uint64_t pieces = 20;

[[noreturn]] void die(std::string_view why)
{
    std::fprintf(stderr, "breeze_garbage: %.*s\n", static_cast<int>(why.size()), why.data());
    std::exit(1);
}
template <class R>
typename R::value_type checked(R result)
{
    if (!result) {
        die(result.error().text());
    }
    if constexpr (!std::is_void_v<typename R::value_type>) {
        return std::move(*result);
    }
}

std::uint64_t now_ns()
{
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

std::unique_ptr<BreezePool> create(const char* path, std::uint64_t size_bytes)
{
    const std::uint64_t image_bytes = round_up(size_bytes, breeze::zone_bytes);
    const Pool::CreateOptions wanted{breeze::pool_format(), image_bytes, image_bytes};
    MediumOptions options;
    options.path = path;
    options.kind = MediumKind::memory;
    auto pool = checked(Pool::create(checked(create_medium(options, checked(Pool::file_bytes_for(wanted)))), wanted));
    checked(BreezePool::format(pool));
    return checked(BreezePool::open(std::move(pool), {.counts_in_background = false}));
}

class Work {
public:
    Work(BreezePool& pool, std::uint64_t records, std::uint64_t threads) : pool_(pool), threads_(threads), keys_(records / threads)
    {
        Transaction& first = pool_.begin();
        table_ = reinterpret_cast<Table*>(checked(first.allocate(NVM_TYPE_ID(Table), sizeof(Table) + records * sizeof(Record*), {})));
        table_->buckets = records;
        checked(first.set_root(offset_of(table_) - breeze::object_header_bytes));
        checked(first.commit());
        pool_.end(first);
        for (std::uint64_t key = 0; key < records; ++key) {
            replace(key);
        }
        pool_.parts().counts.drain();
        for (std::uint64_t thread = 0; thread < threads; ++thread) {
            randoms_.emplace_back(thread + 7);
        }
    }

    /// One slice, as a line of JSON.
    void run(bool collects, std::uint64_t operations)
    {
        breeze::ReferenceCounts& counts = pool_.parts().counts;
        const std::uint64_t freed_before = counts.freed();
        Times times = collects ? run_with(counts, operations * pieces) : Times{};
        for (std::uint64_t piece = 0; !collects && piece < pieces; ++piece) {
            times.wall_ns += run_without(counts, operations);
        }
        const std::uint64_t freed = counts.freed() - freed_before;
        if (collects && times.freed_meanwhile < freed / 2) {
            die("most objects were freed after the slice: more operations, or the machine has no CPU left for the collection");
        }
        std::printf("{\"collects\": %s, \"operations\": %" PRIu64 ", \"wall_ns\": %" PRIu64 ", \"settled_ns\": %" PRIu64
                    ", \"freed_meanwhile\": %" PRIu64 ", \"freed\": %" PRIu64 "}\n",
                    collects ? "true" : "false", pieces * operations * threads_, times.wall_ns, collects ? times.settled_ns : times.wall_ns,
                    times.freed_meanwhile, freed);
    }

private:
    struct Times {
        std::uint64_t wall_ns = 0;
        std::uint64_t settled_ns = 0;
        std::uint64_t freed_meanwhile = 0;
    };
    /// Returns the time that the threads take.
    std::uint64_t run_threads(std::uint64_t operations)
    {
        const std::uint64_t begin_ns = now_ns();
        std::vector<std::thread> others;
        for (std::uint64_t thread = 1; thread < threads_; ++thread) {
            others.emplace_back([this, thread, operations] { work(thread, operations); });
        }
        work(0, operations);
        for (std::thread& other : others) {
            other.join();
        }
        return now_ns() - begin_ns;
    }
    Times run_with(breeze::ReferenceCounts& counts, std::uint64_t operations)
    {
        const std::uint64_t freed_before = counts.freed();
        checked(counts.start([](void*) noexcept {}, nullptr));
        Times times;
        const std::uint64_t begin_ns = now_ns();
        times.wall_ns = run_threads(operations);
        times.freed_meanwhile = counts.freed() - freed_before;
        counts.stop();
        counts.drain();
        times.settled_ns = now_ns() - begin_ns;
        return times;
    }
    std::uint64_t run_without(breeze::ReferenceCounts& counts, std::uint64_t operations)
    {
        const std::uint64_t freed_before = counts.freed();
        const std::uint64_t wall_ns = run_threads(operations);
        if (counts.freed() != freed_before) {
            die("objects were freed in a slice without collection: fewer operations");
        }
        counts.drain();
        return wall_ns;
    }
    [[nodiscard]] std::uint64_t offset_of(const void* address) const { return pool_.parts().memory.offset_of(address); }
    void replace(std::uint64_t key)
    {
        Transaction& transaction = pool_.begin();
        Record*& head = table_->heads[key];
        auto* const record = reinterpret_cast<Record*>(checked(transaction.allocate(NVM_TYPE_ID(Record), sizeof(Record), {})));
        record->key = key;
        std::memset(record->value, static_cast<int>(key), sizeof record->value);
        checked(transaction.log_range(offset_of(&head), sizeof head, {}, true));
        head = record;
        checked(transaction.commit());
        pool_.end(transaction);
    }
    void work(std::uint64_t thread, std::uint64_t operations)
    {
        std::uint64_t sum = 0;
        char value[sizeof Record::value];
        for (std::uint64_t i = 0; i < operations; ++i) {
            const std::uint64_t key = keys_.next(randoms_[thread]) * threads_ + thread;
            if (randoms_[thread].next() % 2 == 0) {
                replace(key);
            } else {
                std::memcpy(value, table_->heads[key]->value, sizeof value);
                sum += static_cast<unsigned char>(value[i % sizeof value]);
            }
        }
        sum_.fetch_add(sum, std::memory_order_relaxed);
    }

    BreezePool& pool_;
    std::uint64_t threads_;
    bench::Zipf keys_;
    Table* table_ = nullptr;
    std::vector<bench::Random> randoms_;
    std::atomic<std::uint64_t> sum_{0};
};

}  // namespace

int main(int count, char** words)
{
    if (count != 6) {
        die("a wrong number of words: the head of the source has the usage");
    }
    const std::uint64_t threads = std::strtoull(words[2], nullptr, 10);
    const std::uint64_t records = std::strtoull(words[3], nullptr, 10);
    const std::uint64_t operations = std::strtoull(words[4], nullptr, 10);
    const std::uint64_t end_ns = now_ns() + static_cast<std::uint64_t>(std::strtod(words[5], nullptr) * 1e9);
    if (threads == 0 || threads > breeze::logs_max || records / threads < 2 || operations == 0) {
        die("1 to 32 threads, two records and one operation for each at least");
    }
    // The logs of a pool of 512 MiB are the largest.
    const auto pool = create(words[1], (records + 2 * threads * operations) * 1600 + 512 * mib);
    Work work(*pool, records, threads);
    work.run(true, operations);  // Not counted by the reader: caches are cold.
    work.run(false, operations);
    for (std::uint64_t round = 0; round < 3 || now_ns() < end_ns; ++round) {
        work.run(round % 2 == 0, operations);
        work.run(round % 2 != 0, operations);
    }
    checked(pool->close());
    return 0;
}
