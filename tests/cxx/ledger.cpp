// A ledger in standard containers, as a user of stillpoint.hpp would write it. Each section changes all containers; the start checks that
// they agree, and prints how many sections it has found. It then works until it is killed, or for as many sections as it was told.
//   ledger SECTIONS

#include <cstdio>
#include <cstdlib>
#include <memory_resource>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "stillpoint/stillpoint.hpp"

namespace sp = stillpoint;

namespace {

constexpr int threads = 2;
constexpr int accounts = 50;

std::string name_of(long number) { return "the account with the number " + std::to_string(number); }

struct Ledger {
    std::mutex lock;
    sp::map<sp::string, long> by_name;
    sp::unordered_map<sp::string, long> by_hash;
    sp::vector<long> by_number = sp::vector<long>(accounts);
    sp::deque<sp::string> last;
    sp::list<long> amounts;
    sp::unique_ptr<long> sections = sp::make_unique<long>(0);
    std::pmr::vector<long> all{sp::durable_resource()};
};

void fail(const char* text)
{
    std::printf("wrong: %s\n", text);
    std::exit(1);
}

void check(const Ledger& ledger)
{
    long sum = 0;
    for (long number = 0; number < accounts; ++number) {
        const long amount = ledger.by_number[static_cast<std::size_t>(number)];
        const auto named = ledger.by_name.find(std::string_view(name_of(number)));
        const auto hashed = ledger.by_hash.find(std::string_view(name_of(number)));
        if ((named == ledger.by_name.end() ? 0 : named->second) != amount ||
            (hashed == ledger.by_hash.end() ? 0 : hashed->second) != amount) {
            fail("an account");
        }
        sum += amount;
    }
    long moved = 0;
    for (const long amount : ledger.amounts) {
        moved += amount;
    }
    if (sum != 0 || ledger.last.size() != ledger.amounts.size() || moved != static_cast<long>(ledger.last.size())) {
        fail("a sum");
    }
    if (ledger.all.size() != static_cast<std::size_t>(*ledger.sections)) {
        fail("the number of sections");
    }
}

void work(Ledger& ledger, long sections, unsigned seed)
{
    std::mt19937 random(seed);
    for (long i = 0; i < sections; ++i) {
        const long from = static_cast<long>(random() % accounts);
        const long to = static_cast<long>(random() % accounts);
        const std::lock_guard lock(ledger.lock);
        sp::atomically([&] {
            for (const auto& [number, by] : {std::pair{from, -1L}, std::pair{to, 1L}}) {
                ledger.by_number[static_cast<std::size_t>(number)] += by;
                const std::string name = name_of(number);
                ledger.by_name[sp::string(name)] += by;
                ledger.by_hash[sp::string(name)] += by;
            }
            ledger.last.emplace_back(name_of(to));
            ledger.amounts.push_back(1);
            if (ledger.last.size() > 100) {
                ledger.last.pop_front();
                ledger.amounts.pop_front();
            }
            ++*ledger.sections;
            ledger.all.push_back(from);
        });
    }
}

}  // namespace

int main(int argc, char** argv)
try {
    auto& ledger = sp::root<Ledger>("ledger");
    check(ledger);
    std::printf("%ld\n", *ledger.sections);
    std::fflush(stdout);
    const long sections = argc > 1 ? std::atol(argv[1]) : 0;
    std::vector<std::thread> workers;
    for (unsigned i = 0; i < threads; ++i) {
        workers.emplace_back([&, i] { work(ledger, sections, i + static_cast<unsigned>(*ledger.sections)); });
    }
    for (auto& worker : workers) {
        worker.join();
    }
    return 0;
} catch (const sp::error& failure) {
    std::printf("error %d: %s\n", failure.code(), failure.what());
    return 2;
}
