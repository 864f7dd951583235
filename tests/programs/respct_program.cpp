#include "respct_program.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <pthread.h>
#include <string>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

extern "C" {
#include "program_arguments.h"
}
#include "respct_parts.hpp"

namespace {

constexpr std::uint64_t first_value = 1000;
constexpr int resting = 1 + respct_sections_max;  ///< restart points of threads outside of sections
constexpr int tearing = 2 + respct_sections_max;

struct OneWordLock {
    respct::mutex lock;
};

struct Lock {
    respct_lock_kind kind;
    respct::mutex* one_word;
    pthread_mutex_t* mutex;
    pthread_rwlock_t* rwlock;
};

const respct_plan* the_plan = nullptr;
std::atomic<std::uint64_t> signals_seen{0};
std::array<Lock, respct_locks_max> locks;

std::uint64_t number_of(std::uint64_t place) { return (place + 1) * 0x9e3779b97f4a7c15u; }

/// A lock of libc as a durable type of C.
template <class NativeLock>
NativeLock* found_lock(unsigned number, sp_respct_kind kind)
{
    static const sp_respct_member members[] = {{0, static_cast<std::uint16_t>(kind), 1}};
    static sp_respct_layout layout{typeid(NativeLock).name(), 64, 64, members, 1, 0, 0};
    ++roots;
    void* const place = sp_respct_root(name_of("lock ", number).c_str(), &layout, 1);
    return static_cast<NativeLock*>(must_have(place, "sp_respct_root of a lock"));
}

}  // namespace

std::array<Part, respct_parts_max> parts;
std::uint64_t roots = 0;

// -- Sections and locks -----------------------------------------------------------------------

void section_begin(respct_worker*, unsigned section) { respct::RP(1 + static_cast<int>(section)); }

void section_ended(respct_worker* worker, unsigned section)
{
    ++worker->frame->by_section[section];
    ++worker->frame->count;
}

void section_end(respct_worker* worker) { note_finished(worker->id, worker->frame->count); }

void section_torn(respct_worker* worker, unsigned section) { ++worker->frame->by_section[section]; }

void section_torn_end(respct_worker* worker)
{
    respct::RP(tearing);
    {
        const respct::blocking_call wait;
        usleep(500);
    }
    ++worker->frame->count;
    section_end(worker);
}

void lock_acquire(unsigned number)
{
    const Lock& lock = locks[number];
    switch (lock.kind) {
    case ONE_WORD: lock.one_word->lock(); return;
    case READ_WRITE: must(pthread_rwlock_wrlock(lock.rwlock), "pthread_rwlock_wrlock"); return;
    case PTHREAD:
    case VOLATILE: must(pthread_mutex_lock(lock.mutex), "pthread_mutex_lock"); return;
    }
}

void lock_release(unsigned number)
{
    const Lock& lock = locks[number];
    switch (lock.kind) {
    case ONE_WORD: lock.one_word->unlock(); return;
    case READ_WRITE: must(pthread_rwlock_unlock(lock.rwlock), "pthread_rwlock_unlock"); return;
    case PTHREAD:
    case VOLATILE: must(pthread_mutex_unlock(lock.mutex), "pthread_mutex_unlock"); return;
    }
}

// -- Parts ------------------------------------------------------------------------------------

void words_transfer(unsigned number, respct_worker* worker, unsigned times)
{
    const Part& part = parts[number];
    touch(number, *worker);
    for (unsigned i = 0; i < times; ++i) {
        Logged<std::uint64_t>& from = part.words[random_below(part.plan.parameter)].value;
        Logged<std::uint64_t>& to = part.words[random_below(part.plan.parameter)].value;
        const std::uint64_t amount = random_below(from / 4 + 1);
        from -= amount;
        to += amount;
    }
}

void stack_push(unsigned number, respct_worker* worker)
{
    Head& head = *parts[number].head;
    if (head.count >= 400) {
        stack_pop(number, worker);
        return;
    }
    touch(number, *worker);
    Node* const node = respct::make<Node>();
    *node = {head.top, next_random(), 0, {}};
    node->inverted = ~node->number;
    respct::add_modified(*node);
    head.top = node;
    ++head.count;
    head.sum += node->number;
}

void stack_pop(unsigned number, respct_worker* worker)
{
    Head& head = *parts[number].head;
    Node* const node = head.top;
    if (node == nullptr) {
        return;
    }
    touch(number, *worker);
    head.top = node->next;
    --head.count;
    head.sum -= node->number;
    respct::destroy(node);
}

void log_append(unsigned number, respct_worker* worker, unsigned count, bool told)
{
    const Part& part = parts[number];
    touch(number, *worker);
    for (unsigned i = 0; i < count && part.head->count < part.plan.parameter; ++i) {
        Entry& entry = part.entries[part.head->count];
        entry = {number_of(part.head->count), ~number_of(part.head->count)};
        if (told) {
            respct::add_modified(entry);
        }
        ++part.head->count;
    }
}

void scratch(respct_worker*, std::size_t size_bytes)
{
    void* const block = must_have(sp_malloc(size_bytes), "sp_malloc");
    std::memset(block, 'x', size_bytes);
    respct::add_modified(block, size_bytes);
    sp_free(block);
}

// -- Steps outside of sections ----------------------------------------------------------------

void rest(respct_worker*, unsigned microseconds)
{
    respct::RP(resting);
    const respct::blocking_call wait;
    usleep(static_cast<useconds_t>(random_below(microseconds)));
}

void acknowledge_now(respct_worker*, bool by_checkpoint)
{
    respct::RP(resting);
    const respct::blocking_call wait;
    acknowledge(by_checkpoint);
}

static std::thread begin_helper(const respct_worker& worker, respct_step* section)
{
    return std::thread([=, id = respct_threads_max + worker.id] {
        respct_worker helper{id, Frame(name_of("frame ", id).c_str())};
        random_begin(id + 16 * helper.frame->count);
        section(&helper);
    });
}

void help_by_thread(respct_worker* worker, respct_step* section)
{
    respct::RP(resting);
    const respct::blocking_call wait;
    begin_helper(*worker, section).join();
}

void meet_thread(respct_worker* worker, respct_step* puts, respct_step* takes)
{
    respct::RP(resting);
    std::thread helper = begin_helper(*worker, puts);
    takes(worker);
    respct::RP(resting);
    const respct::blocking_call wait;
    helper.join();
}

void fork_and_end(respct_worker*)
{
    respct::RP(resting);
    const respct::blocking_call wait;
    const pid_t child = fork();
    if (child == 0) {
        syscall(SYS_exit_group, 0);
    }
    must(child < 0 ? errno : 0, "fork");
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
}

// -- Verifying --------------------------------------------------------------------------------

namespace {

std::uint64_t verify_part(const Part& part)
{
    const Head& head = *part.head;
    std::uint64_t count = 0, sum = 0;
    switch (part.plan.kind) {
    case WORDS:
        for (unsigned i = 0; i < part.plan.parameter; ++i) {
            sum += part.words[i].value;
        }
        expect_equal("the sum of the words", first_value * part.plan.parameter, sum);
        return 0;
    case STACK:
        for (const Node* node = head.top; node != nullptr && count <= head.count; node = node->next) {
            expect_equal("a number of a stack", ~node->number, node->inverted);
            sum += node->number;
            ++count;
        }
        expect_equal("the nodes of a stack", head.count, count);
        expect_equal("the sum of a stack", head.sum, sum);
        return count;
    case LOG:
        for (; count < head.count; ++count) {
            expect_equal("an entry of a log", number_of(count), part.entries[count].number);
            expect_equal("an entry of a log, inverted", ~number_of(count), part.entries[count].inverted);
        }
        return 0;
    case CHUNKS: return verify_chunks(part);
    case NAMES: return verify_names(part);
    case QUEUE: verify_queue(part); return 0;
    }
    return 0;
}

/// Nobody else runs. `at_start`: nothing waits to be freed either.
void verify(bool at_start)
{
    std::uint64_t blocks = roots;
    for (unsigned i = 0; i < the_plan->part_count; ++i) {
        blocks += verify_part(parts[i]);
    }
    for (unsigned id = 0; id < respct_workers_max; ++id) {
        const Locals& own = Frame::of(name_of("frame ", id).c_str());
        std::uint64_t sections = 0;
        for (const auto& count : own.by_section) {
            sections += count;
        }
        expect_equal("the sections of a worker", own.count, sections);
        for (unsigned i = 0; i < the_plan->part_count; ++i) {
            expect_equal("how often a worker has touched a part", own.touched[i], parts[i].head->touched[id]);
        }
        expect_count(id, own.count);
    }
    if (at_start) {
        sp_heap_statistics heap;
        must(sp_heap_stats(&heap), "sp_heap_stats");
        expect_equal("the live blocks of the heap", blocks, heap.live_blocks);
    }
}

void find_part(unsigned number)
{
    Part& part = parts[number];
    part = {the_plan->parts[number], found<Head>("part ", number), nullptr, nullptr, nullptr};
    if (part.plan.kind == WORDS) {
        part.words = found<Word>("words ", number, part.plan.parameter);
        for (unsigned i = 0; i < part.plan.parameter && part.head->sum == 0; ++i) {
            part.words[i].value = first_value;
        }
        part.head->sum = 1;
    } else if (part.plan.kind == LOG) {
        part.entries = found<Entry>("entries ", number, part.plan.parameter);
    } else if (part.plan.kind == QUEUE) {
        part.meeting = found<Meeting>("meeting ", number);
    }
}

void find_lock(unsigned number)
{
    static pthread_mutex_t in_ordinary_memory[respct_locks_max];
    Lock& lock = locks[number];
    lock = {the_plan->locks[number], nullptr, nullptr, nullptr};
    switch (lock.kind) {
    case ONE_WORD: lock.one_word = &found<OneWordLock>("lock ", number)->lock; return;
    case PTHREAD: lock.mutex = found_lock<pthread_mutex_t>(number, SP_RESPCT_PTHREAD_MUTEX); return;
    case READ_WRITE: lock.rwlock = found_lock<pthread_rwlock_t>(number, SP_RESPCT_PTHREAD_RWLOCK); return;
    case VOLATILE: lock.mutex = &in_ordinary_memory[number]; return;
    }
}

void begin()
{
    expect_start();
    make_pages();
    for (unsigned id = 0; id < respct_workers_max; ++id) {
        static_cast<void>(Frame::of(name_of("frame ", id).c_str()));
        ++roots;
    }
    for (unsigned i = 0; i < the_plan->lock_count; ++i) {
        find_lock(i);
    }
    for (unsigned i = 0; i < the_plan->part_count; ++i) {
        find_part(i);
    }
    verify(true);
    for (unsigned id = 0; id < respct_workers_max; ++id) {
        note_finished(id, Frame::of(name_of("frame ", id).c_str()).count);
    }
    note_stage(2);
}

// -- Working ----------------------------------------------------------------------------------

void work(unsigned id)
{
    const respct_thread_plan& own = the_plan->threads[id];
    respct_worker worker{id, Frame(name_of("frame ", id).c_str())};
    random_begin(id + 16 * worker.frame->count);
    const int place = worker.frame.resumes_at();
    if (place < 0 || place > tearing) {
        end_program(END_BROKEN, "a restart point that does not belong to the program", tearing, static_cast<std::uint64_t>(place));
    }
    for (std::uint64_t i = 0; arguments.rounds == 0 || i < arguments.rounds || arguments.run_ms != 0; ++i) {
        own.steps[random_below(own.count)](&worker);
    }
    respct::RP(resting);
}

/// Each comes to whichever thread runs, and interrupts the calls that it waits in. 0: none any more.
void begin_signals(unsigned interval_us)
{
    struct sigaction action{};
    action.sa_handler = [](int) { ++signals_seen; };
    must(sigaction(SIGALRM, &action, nullptr), "sigaction");
    const timeval interval{0, static_cast<suseconds_t>(interval_us)};
    const itimerval timer{interval, interval};
    must(setitimer(ITIMER_REAL, &timer, nullptr), "setitimer");
}

void work_all()
{
    const respct::blocking_call wait;
    begin_signals(the_plan->signal_interval_us);
    acknowledger_begin(the_plan->wait_durable, the_plan->acknowledges_early);
    std::vector<std::thread> threads;
    for (unsigned id = 0; id < the_plan->thread_count; ++id) {
        threads.emplace_back(work, id);
    }
    if (process_has_run_long_enough()) {
        for (std::thread& thread : threads) {
            thread.detach();
        }
        return;
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    acknowledger_end();
}

}  // namespace

int run_respct_program(int argc, char** argv, const respct_plan* plan)
{
    the_plan = plan;
    if (!parse_arguments(argc, argv)) {
        std::fputs("program_arguments.h says how to start this\n", stderr);
        return END_CANNOT_RUN;
    }
    notes_begin();
    if (arguments.pool != nullptr && sp_open(arguments.pool, arguments.options) != SP_OK) {
        std::fprintf(stderr, "program: sp_open failed: %s\n", sp_last_error());
        return END_CANNOT_RUN;
    }
    begin();
    if (!arguments.verify_only) {
        work_all();
        if (arguments.run_ms == 0) {
            verify(false);
        }
    }
    begin_signals(0);  // The timer would outlive exec, its handler would not.
    end_as_told(argv[0]);
    return 0;
}
