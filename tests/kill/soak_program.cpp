// The program that the soak kills: threads change durable state that can be checked, and what they were
// told is durable is noted in a file outside the pool, mapped, so that a kill does not take it along.
//
//   soak_program NOTES [--threads N] [--operations N] [--phases N] [--verify] [--defect WORD]
//                [--report] [--acknowledged EPOCH:COUNT:...] [--expect KIND] [--rings]
//
// With --operations it does so many in each thread, in phases with a checkpoint after each, and ends;
// without, it works until it is killed. State: accounts whose sum never changes; for each thread a list
// of heap blocks filled with a pattern, which grow and shrink; memory that is synchronisation objects and integers in turn; a block
// that a device stores into, by direct reads and, with --rings, by io_uring; and a count that equals its operations. Each start
// verifies all of it, the allocator's figures, that nothing that was acknowledged is missing, and that it is the kind of
// start that --expect names (fresh, clean, crashed).
//
// Exit codes: 0 done; 2 cannot run; 3 the state is broken; 4 something acknowledged is lost; 5 another kind of start.
// --defect breaks a rule on purpose, so that the soak can show that it would notice: early-ack
// (acknowledges what is not durable yet), torn (a transfer in two FASEs), outside (stores outside a
// FASE), leak (forgets a block), stale (integers are where they were not stored), unmarked (one store
// of a transfer has no mark: with the tracker hooks), no-device (as where there is no direct I/O).

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <random>
#include <string_view>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "marks_by_hand.h"
#include "soak_arguments.hpp"
#include "soak_device.hpp"
#include "soak_reuse.hpp"
#include "stillpoint/stillpoint.h"

namespace {

constexpr unsigned threads_max = 8;
constexpr unsigned account_count = 64;
constexpr std::uint64_t first_balance = 1000;
constexpr std::uint64_t list_length_max = 120;
constexpr unsigned reused_count = 4;
constexpr std::uint64_t pattern_bytes_max = 8192;  ///< of a block: large ones are there to make the pool grow

/// Outside the pool; tests/kill/soak.py reads it by these offsets.
struct Notes {
    std::atomic<std::uint64_t> epoch;             ///< acknowledged
    std::atomic<std::uint64_t> count[threads_max];  ///< operations of each thread, acknowledged
    std::atomic<std::uint64_t> stage;             ///< of this run: 0 not in main yet, 1 in main, 2 verified, 3 ends by itself
    std::atomic<std::uint64_t> recovered_epoch;   ///< what this run began with
    std::atomic<std::uint64_t> operations;        ///< found by this run, of all threads
    std::atomic<std::uint64_t> device;            ///< of this run: 0 not opened yet, 1 there, 2 there is none
    std::atomic<std::uint64_t> device_reads;      ///< made by this run
};

struct Block {
    Block* next;
    std::uint64_t value;
    std::uint64_t size;  ///< of the whole block
};

struct alignas(4096) Worker {
    std::uint64_t count;
    std::uint64_t pushes;
    std::uint64_t pops;
    std::uint64_t resizes;
    std::uint64_t reuses;
    Block* first;
    soak::Reused reused[reused_count];
    soak::DeviceBlock device;
};

struct Account {
    std::uint64_t balance;
    std::uint64_t room[63];
};

struct State {
    std::uint64_t made;  ///< 1 once everything below has its first value
    std::uint64_t thread_count;
    Account accounts[account_count];
    Worker workers[threads_max];
};

soak::Arguments arguments;
Notes* notes;
State* state;
bool has_device = false;
std::mutex account_locks[account_count];
std::mutex worker_locks[threads_max];
std::atomic<std::uint64_t> finished[threads_max];  ///< operations whose FASE has ended

/// The object was stored to: all that the tracker hooks knows of it.
template <class T>
void stored(const T& object) noexcept
{
    sp_mark_written(&object, sizeof object);
}

[[noreturn]] void end(int code, const char* what, std::uint64_t wanted = 0, std::uint64_t found = 0)
{
    std::fprintf(stderr, "soak_program: %s (wanted %llu, found %llu)\n", what, static_cast<unsigned long long>(wanted),
                 static_cast<unsigned long long>(found));
    _exit(code);
}

[[nodiscard]] unsigned char pattern_of(const Block& block) noexcept { return static_cast<unsigned char>(block.value * 7 + block.size); }

void expect_equal(const char* what, std::uint64_t wanted, std::uint64_t found)
{
    if (wanted != found) {
        end(3, what, wanted, found);
    }
}

[[nodiscard]] std::uint64_t pattern_end(const Block& block) noexcept
{
    return block.size < pattern_bytes_max ? block.size : pattern_bytes_max;
}

void verify_block(const Block& block)
{
    const auto* const bytes = reinterpret_cast<const unsigned char*>(&block);
    for (std::uint64_t at = sizeof block; at < pattern_end(block); ++at) {
        if (bytes[at] != pattern_of(block)) {
            end(3, "a block does not hold its pattern", pattern_of(block), bytes[at]);
        }
    }
}

// -- One operation ----------------------------------------------------------------------------

std::uint64_t size_of_next(std::minstd_rand& random)
{
    const auto dice = random() % 100;
    if (arguments.operations != 0 && dice < 20) {
        return 1024 * 1024;  // A run that ends soon is to grow its pool as well.
    }
    if (dice < 2) {
        return 64 * 1024 + random() % (192 * 1024);  // Spans of their own: the pool grows by these.
    }
    return sizeof(Block) + random() % (dice < 70 ? 200 : 6000);
}

void push(Worker& worker, std::minstd_rand& random)
{
    const std::uint64_t size = size_of_next(random);
    auto* const block = static_cast<Block*>(sp_malloc(size));
    if (block == nullptr) {
        return;  // The pool is at its maximum; pops go on.
    }
    *block = {worker.first, random(), size};
    std::memset(reinterpret_cast<unsigned char*>(block) + sizeof *block, pattern_of(*block), pattern_end(*block) - sizeof *block);
    sp_mark_written(block, pattern_end(*block));
    worker.first = block;
    ++worker.pushes;
    stored(worker);
}

void pop(Worker& worker)
{
    Block* const block = worker.first;
    verify_block(*block);
    worker.first = block->next;
    ++worker.pops;
    stored(worker);
    if (arguments.defect != "leak") {
        sp_free(block);
    }
}

/// The block keeps what fits, whether it grows, moves or shrinks where it is.
void resize(Worker& worker, std::minstd_rand& random)
{
    Block* const block = worker.first;
    verify_block(*block);
    const std::uint64_t kept = pattern_end(*block);
    const unsigned char pattern = pattern_of(*block);
    const std::uint64_t size = random() % 3 == 0 ? size_of_next(random) : sizeof(Block) + random() % block->size;
    auto* const resized = static_cast<Block*>(sp_realloc(block, size));
    if (resized == nullptr) {
        return;
    }
    auto* const bytes = reinterpret_cast<unsigned char*>(resized);
    for (std::uint64_t at = sizeof *resized; at < kept && at < size; ++at) {
        if (bytes[at] != pattern) {
            end(3, "sp_realloc has changed what a block holds", pattern, bytes[at]);
        }
    }
    resized->size = size;
    std::memset(bytes + sizeof *resized, pattern_of(*resized), pattern_end(*resized) - sizeof *resized);
    sp_mark_written(resized, pattern_end(*resized));
    worker.first = resized;
    ++worker.resizes;
    stored(worker);
}

void reuse(Worker& worker, soak::Reused& reused, std::minstd_rand& random)
{
    std::uint64_t wanted = 0, found = 0;
    if (!soak::step(reused, random(), wanted, found)) {
        end(3, "memory that was a synchronisation object", wanted, found);
    }
    if (arguments.defect == "stale" && reused.use == soak::Use::integers) {
        reused.block[4096] ^= 1;
        sp_mark_written(reused.block + 4096, 1);
    }
    ++worker.reuses;
    stored(worker);
}

[[nodiscard]] std::uint64_t operations_of(const Worker& worker) noexcept
{
    return worker.pushes + worker.pops + worker.resizes + worker.reuses + worker.device.reads;
}

void transfer(std::minstd_rand& random)
{
    const unsigned from = random() % account_count;
    const unsigned to = (from + 1 + random() % (account_count - 1)) % account_count;
    std::unique_lock first(account_locks[from < to ? from : to]);
    std::unique_lock second(account_locks[from < to ? to : from]);
    const std::uint64_t amount = random() % (state->accounts[from].balance + 1);
    state->accounts[from].balance -= amount;
    state->accounts[to].balance += amount;
    stored(state->accounts[from].balance);
    if (arguments.defect != "unmarked") {
        stored(state->accounts[to].balance);
    }
}

/// A transfer in two FASEs: a checkpoint between them loses the amount.
void transfer_torn(std::minstd_rand& random)
{
    const unsigned from = random() % account_count;
    const unsigned to = (from + 1 + random() % (account_count - 1)) % account_count;
    std::uint64_t amount = 0;
    {
        const std::lock_guard guard(account_locks[from]);
        amount = random() % (state->accounts[from].balance + 1);
        state->accounts[from].balance -= amount;
        stored(state->accounts[from].balance);
    }
    usleep(100);
    const std::lock_guard guard(account_locks[to]);
    state->accounts[to].balance += amount;
    stored(state->accounts[to].balance);
}

void operate(unsigned number, std::minstd_rand& random)
{
    Worker& worker = state->workers[number];
    if (arguments.defect == "torn") {
        transfer_torn(random);
    }
    soak::Reused& reused = worker.reused[random() % reused_count];
    soak::use(reused);
    {
        const std::lock_guard guard(worker_locks[number]);
        if (arguments.defect != "torn") {
            transfer(random);
        }
        const std::uint64_t length = worker.pushes - worker.pops;
        const auto dice = random() % 16;
        if (has_device && dice == 5) {
            if (!soak::read_device(worker.device, random(), notes->device_reads)) {
                end(3, "a direct read into durable memory failed or was short");
            }
            stored(worker);
        } else if (dice == 0) {
            reuse(worker, reused, random);
        } else if (dice < 4 && length != 0) {
            resize(worker, random);
        } else if (length == 0 || (length < list_length_max && random() % 3 != 0)) {
            push(worker, random);
        } else {
            pop(worker);
        }
        if (arguments.defect != "outside") {
            worker.count = operations_of(worker);
            stored(worker.count);
        }
    }
    if (arguments.defect == "outside") {
        usleep(100);
        worker.count = operations_of(worker);
        stored(worker.count);
    }
    finished[number].store(worker.count);
}

// -- Acknowledging ----------------------------------------------------------------------------

/// One line in one write: word, epoch, the operations of each thread, and of all threads those whose FASE has ended.
void report(const char* word, std::uint64_t epoch, const std::uint64_t (&counts)[threads_max])
{
    char line[256];
    int length = std::snprintf(line, sizeof line, "%s %llu", word, static_cast<unsigned long long>(epoch));
    std::uint64_t done = 0;
    for (unsigned i = 0; i < threads_max; ++i) {
        length += std::snprintf(line + length, sizeof line - static_cast<std::size_t>(length), ":%llu",
                                static_cast<unsigned long long>(counts[i]));
        done += finished[i].load();
    }
    length += std::snprintf(line + length, sizeof line - static_cast<std::size_t>(length), " %llu\n",
                            static_cast<unsigned long long>(done));
    if (write(STDOUT_FILENO, line, static_cast<std::size_t>(length)) != length) {
        end(2, "cannot report");
    }
}

/// Waits until what is finished now is durable, and notes it.
void acknowledge(bool checkpoint)
{
    std::uint64_t counts[threads_max];
    for (unsigned i = 0; i < threads_max; ++i) {
        counts[i] = finished[i].load();
    }
    const std::uint64_t epoch = sp_epoch();
    if (arguments.defect != "early-ack") {
        const int error = checkpoint ? sp_checkpoint() : sp_wait_durable(epoch, -1);
        if (error != 0) {
            end(2, sp_last_error(), 0, static_cast<std::uint64_t>(error));
        }
    } else if (checkpoint) {
        usleep(1000);
    }
    for (unsigned i = 0; i < threads_max; ++i) {
        notes->count[i].store(counts[i]);
    }
    notes->epoch.store(epoch);
    if (arguments.report) {
        report("acknowledged", epoch, counts);
    }
}

// -- Beginning --------------------------------------------------------------------------------

void verify()
{
    std::uint64_t sum = 0;
    for (const Account& account : state->accounts) {
        sum += account.balance;
    }
    expect_equal("the sum of the accounts", account_count * first_balance, sum);
    std::uint64_t blocks = 1;  // the root
    std::uint64_t operations = 0;
    for (unsigned i = 0; i < threads_max; ++i) {
        const Worker& worker = state->workers[i];
        expect_equal("the count of a thread", operations_of(worker), worker.count);
        std::uint64_t length = 0;
        for (const Block* block = worker.first; block != nullptr && length <= list_length_max; block = block->next) {
            verify_block(*block);
            ++length;
        }
        expect_equal("the length of a list", worker.pushes - worker.pops, length);
        blocks += length;
        for (const soak::Reused& reused : worker.reused) {
            std::uint64_t wanted = 0, found = 0;
            if (!soak::verify(reused, wanted, found)) {
                end(3, "memory that was a synchronisation object", wanted, found);
            }
            blocks += reused.block != nullptr ? 1 : 0;
        }
        if (!soak::verify_device(worker.device)) {
            end(4, "what a device stored into a block is lost");
        }
        blocks += worker.device.bytes != nullptr ? 1 : 0;
        operations += worker.count;
        if (worker.count < notes->count[i].load()) {
            end(4, "an acknowledged operation is lost", notes->count[i].load(), worker.count);
        }
        finished[i].store(worker.count);
    }
    sp_heap_statistics heap{};
    if (sp_heap_stats(&heap) != 0) {
        end(3, sp_last_error());
    }
    expect_equal("the live blocks of the heap", blocks, heap.live_blocks);
    notes->operations.store(operations);
}

void begin()
{
    if (sp_start_kind() == SP_START_VOLATILE) {
        end(2, "this run is volatile: name a pool");
    }
    // Before the kind of start, which is another one too where everything is lost.
    if (sp_durable_epoch() < notes->epoch.load() || (sp_start_kind() == SP_START_FRESH && notes->epoch.load() != 0)) {
        end(4, "an acknowledged epoch is lost", notes->epoch.load(), sp_durable_epoch());
    }
    static constexpr std::string_view kinds[] = {"volatile", "fresh", "clean", "crashed"};
    if (const std::string_view kind = kinds[sp_start_kind()]; !arguments.expect.empty() && kind != arguments.expect) {
        std::fprintf(stderr, "soak_program: the start is %s, not %s\n", kind.data(), arguments.expect.data());
        _exit(5);
    }
    notes->recovered_epoch.store(sp_durable_epoch());
    state = static_cast<State*>(sp_root("soak", sizeof *state));
    if (state == nullptr) {
        end(2, sp_last_error());
    }
    if (state->made == 0) {
        if (notes->epoch.load() != 0 && notes->count[0].load() != 0) {
            end(4, "everything that was acknowledged is lost", notes->epoch.load());
        }
        sp_fase_begin();
        for (Account& account : state->accounts) {
            account.balance = first_balance;
            stored(account.balance);
        }
        state->made = 1;
        stored(state->made);
        sp_fase_end();
    }
    verify();
    notes->stage.store(2);
    if (arguments.report) {
        std::uint64_t counts[threads_max];
        for (unsigned i = 0; i < threads_max; ++i) {
            counts[i] = state->workers[i].count;
        }
        report("recovered", notes->recovered_epoch.load(), counts);
    }
}

void open_notes()
{
    const int file = open(arguments.notes, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, sizeof(Notes)) != 0) {
        end(2, "cannot open the notes");
    }
    void* const mapped = mmap(nullptr, sizeof(Notes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) {
        end(2, "cannot map the notes");
    }
    notes = static_cast<Notes*>(mapped);
    notes->stage.store(1);
    if (const char* at = arguments.acknowledged; at != nullptr) {
        char* rest = nullptr;
        notes->epoch.store(std::strtoull(at, &rest, 10));
        for (unsigned i = 0; i < threads_max && *rest == ':'; ++i) {
            at = rest + 1;
            notes->count[i].store(std::strtoull(at, &rest, 10));
        }
    }
}

/// Runs every thread for `operations` operations; forever if that is 0.
void work(std::uint64_t operations, std::uint64_t phase)
{
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < arguments.threads; ++number) {
        threads.emplace_back([=] {
            std::minstd_rand random(static_cast<unsigned>(1 + number + 100 * phase + 10'000 * finished[number].load()));
            for (std::uint64_t i = 0; operations == 0 || i < operations; ++i) {
                operate(number, random);
            }
        });
    }
    while (operations == 0) {
        acknowledge(false);
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

}  // namespace

int main(int argc, char** argv)
{
    if (!soak::parse(argc, argv, threads_max, arguments)) {
        std::fputs("usage: soak_program NOTES [--threads N] [--operations N] [--phases N] [--verify] [--defect WORD] "
                   "[--report] [--acknowledged EPOCH:COUNT:...] [--expect KIND]\n",
                   stderr);
        return 2;
    }
    open_notes();
    begin();
    has_device = arguments.defect != "no-device" && soak::open_device(arguments.notes, arguments.rings);
    notes->device.store(has_device ? 1 : 2);
    if (arguments.verify_only) {
        notes->stage.store(3);
        return 0;
    }
    if (arguments.operations == 0) {
        work(0, 0);
    }
    for (std::uint64_t phase = 0; phase < arguments.phases; ++phase) {
        work(arguments.operations / arguments.phases, phase);
        acknowledge(true);
    }
    notes->stage.store(3);
    return 0;
}
