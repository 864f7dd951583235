// faults_files' sibling over durable objects: a whole life of operations, some that end in a crash, or a look at what is there. Prints
// "start KIND count N", N being -1 if the object is not whole, and "commit N result R" for each operation, where R is the error that
// it threw, or 0.

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "stillpoint/pronto.hpp"
#include "stillpoint/stillpoint.h"

namespace pronto = stillpoint::pronto;

namespace {

/// A count on each of many pages.
class Counts : public pronto::object<Counts> {
public:
    static constexpr char type_name[] = "counts";
    static constexpr auto methods() { return pronto::methods(pronto::method<&Counts::add>("add"), pronto::method<&Counts::grow>("grow")); }

    void add(std::span<const long> ballast)
    {
        run<&Counts::add>(ballast, [&] {
            for (long& count : counts_) {
                ++count;
            }
            ballast_.assign(ballast.begin(), ballast.end());
        });
    }
    /// Counts as add() does, over so many numbers from then on.
    void grow(std::uint64_t size)
    {
        run<&Counts::grow>(size, [&] {
            const long next = counts_.front() + 1;
            counts_.assign(size, next);
        });
    }
    [[nodiscard]] long count() const
    {
        const bool is_whole = std::all_of(counts_.begin(), counts_.end(), [&](long one) { return one == counts_.front(); });
        return is_whole ? counts_.front() : -1;
    }

private:
    std::vector<long, pronto::allocator<long>> counts_ = std::vector<long, pronto::allocator<long>>(32 << 10);
    std::vector<long, pronto::allocator<long>> ballast_;
};

template <class Operation>
int commit(const Counts& counts, Operation&& operation)
{
    const long number = counts.count() + 1;
    int result = SP_OK;
    try {
        operation();
    } catch (const pronto::error& error) {
        result = error.code();
        std::printf("error %s\n", error.what());
    } catch (const std::bad_alloc&) {
        result = SP_E_NO_MEMORY;
    }
    std::printf("commit %ld result %d\n", number, result);
    std::fflush(stdout);
    return result;
}

int live(Counts& counts)
{
    const std::vector<long> some(100, 1);
    const std::vector<long> many(40'000, 2);  // More than a chunk of the log.
    auto& other = pronto::get_object<Counts>("other");  // Recovered beside it, by another thread.
    commit(counts, [&] { counts.add(some); });
    commit(counts, [&] { counts.grow((6u << 20) / sizeof(long)); });
    commit(counts, [&] { counts.add(many); });
    std::printf("snapshot %d\n", sp_pronto_snapshot());
    try {
        other.add(some);
    } catch (const std::exception& error) {
        std::printf("error %s\n", error.what());
    }
    return commit(counts, [&] { counts.add(some); }) == SP_OK ? 0 : 4;
}

/// Operations whose ballast says which they are, and an end without a snapshot.
int crash_after(Counts& counts, long operations)
{
    for (long i = 1; i <= operations; ++i) {
        const std::vector<long> ballast(100, 0x5ca1ab1e00000000 + i);
        commit(counts, [&] { counts.add(ballast); });
    }
    raise(SIGKILL);
    return 1;
}

}  // namespace

int main(int argc, char** argv)
{
    try {
        Counts& counts = pronto::get_object<Counts>("counts");
        std::printf("start %d count %ld\n", static_cast<int>(sp_start_kind()), counts.count());
        std::fflush(stdout);
        const char* const what = argc > 1 ? argv[1] : "";
        if (std::strcmp(what, "crash") == 0) {
            return crash_after(counts, argc > 2 ? std::strtol(argv[2], nullptr, 10) : 1);
        }
        return std::strcmp(what, "live") == 0 ? live(counts) : 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "faults_objects: %s\n", error.what());
        return 3;
    }
}
