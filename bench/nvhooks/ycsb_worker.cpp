// The measured process of the benchmark of NVHooks: YCSB's load phase on a store, then its workloads A and B in slices.
//
// Linked with one implementation of store.h. The store alone is compiled by what is measured; this file and the
// harness are compiled once, uninstrumented, and are the same in every configuration.
//
// Usage: ycsb_worker pool=PATH pool_mib=N entries=N threads=N
//
//   (at the start)           operations, wall_ns, cpu_ns, settle_cpu_ns of the load phase: every key is inserted
//   mix UPDATE_PERCENT NS    -> the same of a slice
//   modify PERCENT NS        likewise: YCSB F, so many of a hundred read a value and write it back changed
//   latest PERCENT NS        likewise: YCSB D, so many insert a key and remove the oldest, the others read the newest mostly
//
// At the end of its input it checks the structure, and exits with 70 where it is not sound or a key was missing.

#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "../harness/turns.hpp"
#include "store.h"

// Present where the layer is pmthreads: its stores become durable later, and no slice may pay for another's.
extern "C" {
__attribute__((weak)) std::uint64_t sp_epoch();
__attribute__((weak)) int sp_wait_durable(std::uint64_t epoch, std::int64_t timeout_ms);
// A store has it that waits in its own way, or for nothing.
__attribute__((weak)) void store_settle();
}

namespace bench {
namespace {

constexpr unsigned threads_max = 64;

void settle_store()
{
    if (store_settle != nullptr) {
        store_settle();
    } else if (sp_epoch != nullptr && sp_wait_durable != nullptr) {
        (void)sp_wait_durable(sp_epoch(), 10'000);
    }
}

/// Keys are spread over 64 bits, as YCSB hashes its record numbers.
std::uint64_t key_number(std::uint64_t number) noexcept { return (number + 1) * 0x9e3779b97f4a7c15u; }

void make_value(unsigned char (&value)[STORE_VALUE_BYTES], std::uint64_t seed)
{
    for (std::size_t at = 0; at < sizeof value; at += sizeof seed) {
        std::memcpy(value + at, &seed, sizeof seed);
    }
}

void must(int failed, const char* what)
{
    if (failed != 0) {
        give_up(std::string(what) + ": " + std::strerror(failed) + ": " + store_error());
    }
}

/// YCSB's request distribution: Zipf with the constant 0.99 [Gray et al., SIGMOD 1994], drawn in advance.
std::vector<std::uint32_t> draw_zipf(std::uint64_t entries, std::size_t count)
{
    constexpr double theta = 0.99;
    double zeta = 0;
    for (std::uint64_t i = 1; i <= entries; ++i) {
        zeta += 1.0 / std::pow(static_cast<double>(i), theta);
    }
    const double zeta2 = 1.0 + std::pow(0.5, theta);
    const double alpha = 1.0 / (1.0 - theta);
    const double eta = (1.0 - std::pow(2.0 / static_cast<double>(entries), 1.0 - theta)) / (1.0 - zeta2 / zeta);
    Random random(7);
    std::vector<std::uint32_t> drawn(count);
    for (std::uint32_t& number : drawn) {
        const double u = static_cast<double>(random.next() >> 11) * 0x1p-53;
        const double rank = u * zeta < 1.0     ? 0.0
                            : u * zeta < zeta2 ? 1.0
                                               : static_cast<double>(entries) * std::pow(eta * u - eta + 1.0, alpha);
        const auto scattered = (static_cast<std::uint64_t>(rank) + 1) * 0xc6a4a7935bd1e995u;
        number = static_cast<std::uint32_t>((scattered >> 16) % entries);
    }
    return drawn;
}

/// Inserts every key once, the threads taking turns of 16.
class Load final : public TurnWorkload {
public:
    explicit Load(std::uint64_t entries) : entries_(entries) {}
    std::uint64_t perform(unsigned, Random&) override
    {
        constexpr std::uint64_t turn = 16;
        const std::uint64_t first = next_.fetch_add(turn);
        std::uint64_t number = first;
        for (; number < first + turn && number < entries_; ++number) {
            unsigned char value[STORE_VALUE_BYTES];
            make_value(value, key_number(number));
            must(store_put(key_number(number), value), "an insert failed");
        }
        return number > first ? number - first : 0;
    }
    void settle() override { settle_store(); }
    [[nodiscard]] bool done() const { return next_ >= entries_; }

private:
    std::uint64_t entries_;
    std::atomic<std::uint64_t> next_{0};
};

class Requests final : public TurnWorkload {
public:
    enum class Kind : std::uint8_t { update, modify, latest };

    explicit Requests(std::uint64_t entries) : entries_(entries), numbers_(draw_zipf(entries, 1u << 18)) {}
    std::uint64_t perform(unsigned thread, Random& random) override
    {
        constexpr unsigned turn = 64;
        std::uint32_t at = places_[thread].at;
        for (unsigned i = 0; i < turn; ++i, ++at) {
            const std::uint64_t number = numbers_[(thread * 30'011 + at) % numbers_.size()];
            if (kind == Kind::latest) {
                read_or_replace(number, random);
            } else {
                read_or_update(number, random);
            }
        }
        places_[thread].at = at;
        return turn;
    }
    void settle() override { settle_store(); }
    [[nodiscard]] std::uint64_t missing() const { return missing_; }

    Kind kind = Kind::update;  ///< written between slices only, as is the next
    std::uint64_t percent = 50;  ///< of requests that write

private:
    struct alignas(64) Place {
        std::uint32_t at = 0;
    };

    void read_or_update(std::uint64_t number, Random& random)
    {
        const std::uint64_t key = key_number(removed_ + number);
        unsigned char value[STORE_VALUE_BYTES];
        const bool writes = random.below(100) < percent;
        if ((!writes || kind == Kind::modify) && !store_get(key, value)) {
            ++missing_;
        }
        if (writes) {
            kind == Kind::modify ? static_cast<void>(++value[random.below(sizeof value)]) : make_value(value, random.next());
            must(store_put(key, value), "an update failed");
        }
    }
    /// A key that a thread is about to insert is not there yet: then the request has read nothing.
    void read_or_replace(std::uint64_t age, Random& random)
    {
        unsigned char value[STORE_VALUE_BYTES];
        if (random.below(100) < percent) {
            const std::uint64_t oldest = removed_.fetch_add(1);
            make_value(value, random.next());
            must(store_put(key_number(oldest + entries_), value), "an insert failed");
            static_cast<void>(store_remove(key_number(oldest)));
        } else {
            static_cast<void>(store_get(key_number(removed_ + entries_ - 1 - age), value));
        }
    }

    std::uint64_t entries_;
    std::vector<std::uint32_t> numbers_;
    Place places_[threads_max];
    std::atomic<std::uint64_t> removed_{0};  ///< so many keys, from the first inserted on, were replaced by new ones
    std::atomic<std::uint64_t> missing_{0};
};

Answer load_all(std::uint64_t entries, unsigned threads)
{
    Load load(entries);
    TurnThreads slices(load, threads);
    SliceThreads::Slice all{0, 0};
    Stopwatch watch;
    while (!load.done()) {
        const SliceThreads::Slice slice = slices.run(1'000'000);
        all.operations += slice.operations;
        all.wall_ns += slice.wall_ns;
    }
    watch.lap();
    settle_store();
    Answer answer;
    watch.add_to(answer, all.operations, all.wall_ns);
    return answer;
}

void serve_requests(Requests& requests, unsigned threads, const Answer& loaded)
{
    TurnThreads slices(requests, threads);
    Commands commands;
    const auto add = [&](const char* name, Requests::Kind kind) {
        commands.add(name, 2, [&requests, &slices, kind](const Commands::Numbers& numbers, Answer& answer) {
            requests.kind = kind;
            requests.percent = numbers[0];
            slices.slice(numbers[1], answer);
        });
    };
    add("mix", Requests::Kind::update);
    add("modify", Requests::Kind::modify);
    add("latest", Requests::Kind::latest);
    commands.serve(loaded);
}

void run(const Settings& settings)
{
    const auto threads = static_cast<unsigned>(settings.number_from("threads", 1, threads_max));
    const std::uint64_t entries = settings.number_from("entries", 16, 1u << 30);
    must(store_open(settings.text("pool").c_str(), settings.number_from("pool_mib", 1, 1u << 20) << 20), "the pool cannot be opened");
    const Answer loaded = load_all(entries, threads);
    Requests requests(entries);
    serve_requests(requests, threads, loaded);
    const long found = store_check();
    if (found != static_cast<long>(entries) || requests.missing() != 0) {
        give_up(std::string(store_name()) + ": " + std::to_string(found) + " keys of " + std::to_string(entries) + ", " +
                std::to_string(requests.missing()) + " reads found nothing");
    }
    store_close();
}

}  // namespace
}  // namespace bench

int main(int count, char** words) { return bench::worker_main(count, words, &bench::run); }
