// The measured process of bench/throughput.py: a B+tree or a hash map, filled with every key of its
// range, then read and updated at random. Built twice: with libstillpoint, and without a trace of it (BENCH_PLAIN).
//
// Usage: throughput_worker btree|hash_map THREADS KEYS PERCENT_UPDATES

#include <atomic>
#include <cstdio>
#include <cstring>
#include <sysexits.h>

#include "harness/memory.hpp"
#include "harness/worker.hpp"
#include "workloads/btree.hpp"
#include "workloads/hash_map.hpp"

namespace bench {
namespace {

struct Shape {
    unsigned threads = 2;
    std::uint64_t keys = 1'000'000;
    std::uint64_t update_percent = 50;
};

constexpr unsigned operations_per_turn = 64;

/// Keys are spread over 64 bits, so that neighbours in the order of filling are not neighbours in the tree.
std::uint64_t key_number(std::uint64_t number) noexcept { return (number + 1) * 0x9e3779b97f4a7c15u; }

class BTreeWorkload final : public Workload {
public:
    explicit BTreeWorkload(const Shape& shape) : shape_(shape), tree_("bench.btree")
    {
        for (std::uint64_t i = 0; i < shape_.keys; ++i) {
            tree_.put(0, key_number(i), i);
        }
    }
    std::uint64_t perform(unsigned thread, Random& random) override
    {
        for (unsigned i = 0; i < operations_per_turn; ++i) {
            const std::uint64_t key = key_number(random.below(shape_.keys));
            if (random.below(100) < shape_.update_percent) {
                tree_.put(thread, key, random.next());
            } else {
                std::uint64_t value = 0;
                if (!tree_.get(thread, key, value)) {
                    ++missing_;
                }
            }
        }
        return operations_per_turn;
    }
    void settle() override { BenchMemory::settle(); }
    [[nodiscard]] bool holds() const { return missing_ == 0 && tree_.ordered(); }

private:
    Shape shape_;
    BTree<BenchMemory> tree_;
    std::atomic<std::uint64_t> missing_{0};
};

class HashMapWorkload final : public Workload {
public:
    explicit HashMapWorkload(const Shape& shape) : shape_(shape), map_("bench.hash_map", 1u << 20)
    {
        // Half of the range is filled: an update inserts or removes, so the size stays where it is.
        for (std::uint64_t i = 0; i < shape_.keys; i += 2) {
            map_.insert(key_number(i), i);
        }
    }
    std::uint64_t perform(unsigned, Random& random) override
    {
        for (unsigned i = 0; i < operations_per_turn; ++i) {
            const std::uint64_t key = key_number(random.below(shape_.keys));
            std::uint64_t value = 0;
            if (random.below(100) >= shape_.update_percent) {
                (void)map_.get(key, value);
            } else if (random.below(2) == 0) {
                map_.insert(key, i);
            } else {
                map_.remove(key);
            }
        }
        return operations_per_turn;
    }
    void settle() override { BenchMemory::settle(); }

private:
    Shape shape_;
    HashMap<BenchMemory> map_;
};

}  // namespace
}  // namespace bench

int main(int count, char** words)
{
    using namespace bench;
    Shape shape;
    std::uint64_t threads = 0;
    if (count != 5 || !parse(words[2], 1, BTree<BenchMemory>::threads_max, threads) ||
        !parse(words[3], 1, 1u << 30, shape.keys) || !parse(words[4], 0, 100, shape.update_percent)) {
        std::fputs("Usage: throughput_worker btree|hash_map THREADS KEYS PERCENT_UPDATES\n", stderr);
        return EX_USAGE;
    }
    shape.threads = static_cast<unsigned>(threads);
    if (std::strcmp(words[1], "btree") == 0) {
        BTreeWorkload workload(shape);
        const int code = serve(workload, shape.threads);
        if (!workload.holds()) {
            std::fputs("throughput_worker: the tree is broken\n", stderr);
            return EX_SOFTWARE;
        }
        return code;
    }
    if (std::strcmp(words[1], "hash_map") == 0) {
        HashMapWorkload workload(shape);
        return serve(workload, shape.threads);
    }
    std::fputs("throughput_worker: the workload is btree or hash_map\n", stderr);
    return EX_USAGE;
}
