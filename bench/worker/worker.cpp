// One measured process: one engine, one workload; works when it is told to.
//
// The driver (bench/driver) keeps several such processes, one for each configuration, because a process has one pool, and
// lets them work in turn. Commands come on standard input, a line each; each answer is a JSON object on a line:
//
//   (at the start)       load_began_ns, first_operation_ns       the data are there, and one operation is done
//   slice NS             operations, wall_ns, cpu_ns, changed_bytes, ... (measured.cpp, end_slice; counters.cpp)
//   timed NS             the same, latencies_ns: [[ns, count], ...], and what its transactions did (transaction_phases.hpp)
//   exact N PARTS        as slice, of exactly N operations of one thread; not for jobs
//   noted                the durable count of each thread's operations, or of a job's steps
//   mortal NS PATH       answers at once; then works until it is killed, for at most NS, or until a job that can go on has ended
//   check                fault: what is wrong with the data; "" if nothing is
//
// At the end of its input it checks once more, and exits with 70 where something is wrong.
// A slice ends when what was done in it is durable: wall_ns has settle_ns in it, the time that was waited for that. CPU time is that of
// the whole process, so a checkpoint thread's counts too; that of the waiting is settle_cpu_ns.

#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <sys/prctl.h>
#include <sysexits.h>
#include <vector>

#include "../engines/current.hpp"
#include "../harness/ending.hpp"
#include "../workloads/makers.hpp"
#include "command_line.hpp"
#include "measured.hpp"

namespace bench {

namespace {

// The volatile program with one-word locks is built for the structures alone, where locks are what matters.
#if BENCH_HAS_MEMORY && !defined(BENCH_WORD_LOCKS)
#define BENCH_HAS_PROGRAMS 1
#else
#define BENCH_HAS_PROGRAMS 0
#endif

#if BENCH_HAS_PROGRAMS
/// nullptr: the engine sees the stores that the workload needs it to see.
constexpr const char* why_not(StoresSeen needed)
{
    constexpr StoresSeen seen = CurrentEngine::stores_seen;
    return seen >= needed                  ? nullptr
           : seen == StoresSeen::announced ? "it sees only stores that are announced, and libstdc++ announces none"
                                           : "it does not see what libstdc++ stores in functions that are compiled already";
}
constexpr const char* in_place =
    CurrentEngine::rolls_back_bytes
        ? nullptr
        : "it overwrites plain bytes that a crash must roll back, and the engine rolls back logged variables only";
constexpr const char* under_one_lock = BENCH_HAS_TRANSACTIONS ? nullptr : in_place;
#elif BENCH_HAS_MEMORY
constexpr const char* why_left_out = "it is built for structures under locks alone";
#else
constexpr const char* why_left_out = why_no_program;
#endif

constexpr WorkloadRow rows[] = {
#define SIZED_ROW(name, family, unit, mix, values, operations, sentence, make, why_not)                                                    \
    {#name, family, unit, mix, values, operations, sentence, make, why_not},
#define ROW(name, family, unit, mix, values, sentence, make, why_not)                                                                      \
    SIZED_ROW(name, family, unit, mix, values, "fixed", sentence, make, why_not)
#if BENCH_HAS_STORES
#define KEY_VALUE(name, family, unit, mix, values, sentence) ROW(name, family, unit, mix, values, sentence, make_##name, nullptr)
#else
#define KEY_VALUE(name, family, unit, mix, values, sentence) ROW(name, family, unit, mix, values, sentence, nullptr, why_left_out)
#endif
#define QUEUE KEY_VALUE
#if BENCH_HAS_PROGRAMS
#define TRANSACTIONAL(name, sentence) ROW(name, "transactions", "transactions", "fixed", "fixed", sentence, make_##name, under_one_lock)
#define MEMORY(name, family, unit, mix, values, sentence) ROW(name, family, unit, mix, values, sentence, make_##name, nullptr)
#define BATCHED(name, operations, family, unit, mix, values, sentence)                                                                     \
    SIZED_ROW(name, family, unit, mix, values, operations, sentence, make_##name, nullptr)
#define IN_PLACE(name, family, unit, mix, values, sentence) ROW(name, family, unit, mix, values, sentence, make_##name, in_place)
#define IN_PLACE_KEY_VALUE IN_PLACE
#define CONTAINER(name, needs, family, unit, mix, values, sentence)                                                                        \
    ROW(name, family, unit, mix, values, sentence, make_##name, why_not(StoresSeen::needs))
#else
#if BENCH_HAS_TRANSACTIONS
#define TRANSACTIONAL(name, sentence) ROW(name, "transactions", "transactions", "fixed", "fixed", sentence, make_##name, nullptr)
#else
#define TRANSACTIONAL(name, sentence) ROW(name, "transactions", "transactions", "fixed", "fixed", sentence, nullptr, why_left_out)
#endif
#define BATCHED(name, operations, family, unit, mix, values, sentence)                                                                     \
    SIZED_ROW(name, family, unit, mix, values, operations, sentence, nullptr, why_left_out)
#define IN_PLACE(name, family, unit, mix, values, sentence) ROW(name, family, unit, mix, values, sentence, nullptr, why_left_out)
#define IN_PLACE_KEY_VALUE KEY_VALUE
#define MEMORY(name, family, unit, mix, values, sentence) ROW(name, family, unit, mix, values, sentence, nullptr, why_left_out)
#define CONTAINER(name, needs, family, unit, mix, values, sentence) ROW(name, family, unit, mix, values, sentence, nullptr, why_left_out)
#endif
#include "../workloads/workloads.inc"
#undef ROW
#undef SIZED_ROW
#undef KEY_VALUE
#undef QUEUE
#undef MEMORY
#undef BATCHED
#undef IN_PLACE
#undef IN_PLACE_KEY_VALUE
#undef CONTAINER
#undef TRANSACTIONAL
};

void list()
{
    std::string able;
    std::string left_out;
    for (const WorkloadRow& row : workload_rows()) {
        Answer one;
        one.text("name", row.name);
        if (row.why_not != nullptr) {
            left_out += (left_out.empty() ? "" : ", ") + one.text("reason", row.why_not).json();
            continue;
        }
        one.text("family", row.family).text("unit", row.unit).text("mix", row.mixes);
        one.text("values", row.values).text("operations", row.operations).text("sentence", row.sentence);
        able += (able.empty() ? "" : ", ") + one.json();
    }
    Answer answer;
    answer.raw("workloads", "[" + able + "]").raw("left_out", "[" + left_out + "]").text("compiler", BENCH_COMPILER);
#if BENCH_IS_LOADED
    LoadedPeer::describe(answer);
#endif
    answer.send();
}

void obey(Measured& measured, const char* line)
{
    Answer answer;
    std::uint64_t ns = 0;
    std::uint64_t parts = 0;
    char path[1024];
    if (std::sscanf(line, "slice %" SCNu64, &ns) == 1) {
        measured.slice(ns, answer);
    } else if (std::sscanf(line, "timed %" SCNu64, &ns) == 1) {
        measured.timed_slice(ns, answer);
    } else if (std::sscanf(line, "mortal %" SCNu64 " %1023[^\n]", &ns, path) == 2) {
        measured.work_until_killed(path, ns, answer);
        return;
    } else if (std::sscanf(line, "exact %" SCNu64 " %" SCNu64, &ns, &parts) == 2 && parts != 0 && !measured.is_job()) {
        measured.exact(ns, parts, answer);
    } else if (std::strcmp(line, "noted\n") == 0) {
        measured.noted(answer);
    } else if (std::strcmp(line, "check\n") == 0) {
        measured.check();
        answer.text("fault", measured.fault());
    } else {
        give_up(std::string("the command \"") + line + "\" is not understood");
    }
    answer.send();
}

int run(const WorkerCall& call)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // No worker outlives its driver.
    open_current(call.shape);
    Measured measured(call.row->make(call.shape), call.shape);
    Answer ready;
    measured.start(ready);
    ready.send();
    char line[1100];
    while (std::fgets(line, sizeof line, stdin) != nullptr) {
        obey(measured, line);
        rest();
    }
    measured.check();
    if (!measured.fault().empty()) {
        give_up("the result is wrong: " + measured.fault());
    }
    return EXIT_SUCCESS;
}

}  // namespace

#if BENCH_IS_LOADED
std::span<const WorkloadRow> workload_rows()
{
    static const std::vector<WorkloadRow> offered = [] {
        std::vector<WorkloadRow> found(std::begin(rows), std::end(rows));
        for (WorkloadRow& row : found) {
            row.why_not = row.why_not != nullptr ? row.why_not : LoadedPeer::why_not(row.name, row.family);
        }
        return found;
    }();
    return offered;
}
#else
std::span<const WorkloadRow> workload_rows() { return rows; }
#endif
void rest() { rest_current(); }

}  // namespace bench

int main(int count, char** words)
{
#if BENCH_IS_LOADED
    bench::Answer::keep_apart();
#endif
    std::string error;
    const auto call = bench::parse_worker_call(count, words, error);
    if (!call) {
        std::fprintf(stderr, "bench worker: %s\n", error.c_str());
        return EX_USAGE;
    }
    if (call->lists) {
        bench::list();
        return EXIT_SUCCESS;
    }
    return bench::run(*call);
}
