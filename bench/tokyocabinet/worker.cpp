// Threads that put records into a database of Tokyo Cabinet.
//
// Usage: tokyocabinet_worker kind=file|memory|durable threads=N records=N folder=DIR
//
//   slice NS   -> operations, wall_ns, cpu_ns, settle_wall_ns, settle_cpu_ns
//
// file: its B+tree in a file, each record a transaction that is synchronised. memory: its tree on memory, gone with the process. durable:
// that tree in the pool of `stillpoint run` (integrations/tokyocabinet).

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string>
#include <tcbdb.h>

#include "../harness/clock.hpp"
#include "../harness/commands.hpp"
#include "../harness/ending.hpp"
#include "../harness/random.hpp"
#include "../harness/slice_threads.hpp"
#include "stillpoint/stillpoint.h"
#include "tcdurable.h"

namespace bench {
namespace {

constexpr int value_bytes = 100;

struct Record {
    char key[24];
    int key_bytes;
    char value[value_bytes];
};

Record record_of(std::uint64_t number, std::uint64_t turn)
{
    Record made{};
    made.key_bytes = std::snprintf(made.key, sizeof made.key, "%012" PRIu64, number);
    std::memset(made.value, static_cast<int>('a' + turn % 26), sizeof made.value);
    return made;
}

class FileTree {
public:
    explicit FileTree(const std::string& folder)
    {
        const std::string path = folder + "/casket.tcb";
        const bool is_open = tcbdbsetmutex(tree_) && tcbdbopen(tree_, path.c_str(), BDBOWRITER | BDBOCREAT | BDBOTRUNC | BDBOTSYNC);
        check(is_open);
    }
    void put(const Record& record)
    {
        check(tcbdbtranbegin(tree_));
        check(tcbdbput(tree_, record.key, record.key_bytes, record.value, value_bytes));
        check(tcbdbtrancommit(tree_));
    }
    [[nodiscard]] std::uint64_t count() const { return tcbdbrnum(tree_); }

private:
    void check(bool is_done) const
    {
        if (!is_done) {
            give_up(std::string("Tokyo Cabinet: ") + tcbdberrmsg(tcbdbecode(tree_)));
        }
    }
    TCBDB* tree_ = tcbdbnew();
};

class MemoryTree {
public:
    explicit MemoryTree(bool is_durable) : is_durable_(is_durable), tree_(is_durable ? tcdurable_open("bench") : tcndbnew())
    {
        if (tree_ == nullptr) {
            give_up(std::string("no tree in the pool: ") + sp_last_error());
        }
    }
    void put(const Record& record)
    {
        if (is_durable_) {
            tcdurable_begin();
        }
        tcndbput(tree_, record.key, record.key_bytes, record.value, value_bytes);
        tcdurable_end();
    }
    [[nodiscard]] std::uint64_t count() const { return tcndbrnum(tree_); }

private:
    bool is_durable_;
    TCNDB* tree_;
};

template <class Tree>
void serve(const Settings& settings, Tree& tree)
{
    const std::uint64_t records = settings.number("records", 20'000);
    SliceThreads threads(static_cast<unsigned>(settings.number("threads", 1)), false);
    const SliceThreads::Work work = [&](unsigned thread, std::uint64_t deadline_ns) {
        Random random(thread + 1);
        std::uint64_t done = 0;
        for (; monotonic_ns() < deadline_ns; ++done) {
            tree.put(record_of(random.below(records), done));
        }
        return done;
    };
    Commands commands;
    commands.add("slice", 1, [&](const Commands::Numbers& numbers, Answer& answer) {
        Stopwatch watch;
        const std::uint64_t operations = threads.run(numbers[0], work).operations;
        watch.lap();
        watch.add_to(answer, operations);
        answer.number("records", tree.count());
    });
    commands.serve(Answer().text("side", settings.text("kind")));
}

void run(const Settings& settings)
{
    const std::string kind = settings.text("kind");
    if (kind == "file") {
        FileTree tree(settings.text("folder"));
        serve(settings, tree);
    } else if (kind == "memory" || kind == "durable") {
        MemoryTree tree(kind == "durable");
        serve(settings, tree);
    } else {
        give_up("kind is file, memory or durable, not " + kind);
    }
}

}  // namespace
}  // namespace bench

int main(int count, char** words) { return bench::worker_main(count, words, &bench::run); }
