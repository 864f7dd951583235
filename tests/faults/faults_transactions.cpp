// faults_files' sibling of transactions: a whole life of them, or a look at what is there. Prints "start KIND count N", N being -1 if the
// state is not whole, and "commit N result R" for each transaction, where R is the error that it ended with, or 0.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>

#include "stillpoint/spht.hpp"

namespace spht = stillpoint::spht;

namespace {

constexpr std::uint64_t count_max = 32 << 10;

/// A count on each of many pages, and a block that has it in each word.
struct Counts {
    std::int64_t* block;
    std::uint64_t block_words;
    std::int64_t counts[count_max];
};

std::int64_t count_of(const Counts& counts)
{
    for (std::uint64_t i = 0; i < count_max; i += 512) {
        if (counts.counts[i] != counts.counts[0]) {
            return -1;
        }
    }
    for (std::uint64_t i = 0; i < counts.block_words; ++i) {
        if (counts.block[i] != counts.counts[0]) {
            return -1;
        }
    }
    return counts.counts[0];
}

/// Counts, into a new block of that many words.
int commit(Counts& counts, std::uint64_t words)
{
    const std::int64_t number = counts.counts[0] + 1;
    int result = SP_OK;
    try {
        spht::atomically([&](spht::transaction& tx) {
            for (std::uint64_t i = 0; i < count_max; i += 512) {
                tx.write(counts.counts[i], number);
            }
            std::int64_t* const old = tx.read(counts.block);
            if (old != nullptr) {
                tx.free(old);
            }
            auto* const block = static_cast<std::int64_t*>(tx.allocate(words * sizeof(std::int64_t)));
            for (std::uint64_t i = 0; i < words; ++i) {
                tx.write(block[i], number);
            }
            tx.write(counts.block, block);
            tx.write(counts.block_words, words);
        });
    } catch (const spht::error& error) {
        result = error.code();
        std::printf("error %s\n", error.what());
    } catch (const std::bad_alloc&) {
        result = SP_E_NO_MEMORY;
    }
    std::printf("commit %ld result %d\n", static_cast<long>(number), result);
    std::fflush(stdout);
    return result;
}

int live(Counts& counts)
{
    commit(counts, 100);
    commit(counts, (6u << 20) / sizeof(std::int64_t) / 8);  // The image grows, and the record has parts.
    std::printf("checkpoint %d\n", sp_checkpoint());
    commit(counts, 40'000);
    return commit(counts, 100) == SP_OK ? 0 : 4;
}

}  // namespace

int main(int argc, char** argv)
{
    auto* const counts = static_cast<Counts*>(sp_root("counts", sizeof(Counts)));
    if (counts == nullptr) {
        std::fprintf(stderr, "faults_transactions: %s\n", sp_last_error());
        return 3;
    }
    std::printf("start %d count %ld\n", static_cast<int>(sp_start_kind()), static_cast<long>(count_of(*counts)));
    std::fflush(stdout);
    return argc > 1 && std::strcmp(argv[1], "live") == 0 ? live(*counts) : 0;
}
